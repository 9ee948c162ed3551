"""Read-modify-write operations, lane by lane in ascending order of wave and lane."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from oracle.arithmetic import floats
from oracle.vector import floating

u16, u32, u64 = np.uint16, np.uint32, np.uint64


@dataclass(frozen=True)
class Atomic:
    """`kind`: the element type. `function`: (old, data) → new, on arrays of one element; for
    compare and swap `data` is (new, expected). `ufunc`: the equivalent without a result, if NumPy
    has it."""

    kind: str
    function: Callable
    ufunc: np.ufunc | None = None
    sources: int = 1

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return int(self.kind[1:]) // 8


def increment(old, data):
    return np.where(old >= data, old.dtype.type(0), old + old.dtype.type(1))


def decrement(old, data):
    return np.where((old == 0) | (old > data), data, old - old.dtype.type(1))


def _integer(bits: int) -> dict[str, Atomic]:
    u, i = f"u{bits}", f"i{bits}"
    return {
        "add": Atomic(u, lambda o, d: o + d, np.add),
        "sub": Atomic(u, lambda o, d: o - d, np.subtract),
        "rsub": Atomic(u, lambda o, d: d - o),
        "smin": Atomic(i, np.minimum, np.minimum),
        "umin": Atomic(u, np.minimum, np.minimum),
        "smax": Atomic(i, np.maximum, np.maximum),
        "umax": Atomic(u, np.maximum, np.maximum),
        "and": Atomic(u, lambda o, d: o & d, np.bitwise_and),
        "or": Atomic(u, lambda o, d: o | d, np.bitwise_or),
        "xor": Atomic(u, lambda o, d: o ^ d, np.bitwise_xor),
        "inc": Atomic(u, increment),
        "dec": Atomic(u, decrement),
        "swap": Atomic(u, lambda o, d: d),
        "cmpswap": Atomic(u, lambda o, new, expected: np.where(o == expected, new, o), None, 2),
    }


def _halves(old, data, dtype):
    a, b = old.view(dtype), data.view(dtype)
    return (a + b).view(u32)


def _brains(old, data):
    """bf16 pairs: added in f32, which is wide enough that double rounding is harmless."""
    result = np.zeros_like(old)
    for shift in (u32(0), u32(16)):
        a, b = ((x >> shift << u32(16)).astype(u32).view(np.float32) for x in (old, data))
        result |= floating.to_brain(a + b).astype(u32) << shift
    return result


GLOBAL: dict[str, Atomic] = {}
for _name in _integer(32):
    if _name != "rsub":  # only in DS
        GLOBAL[_name] = _integer(32)[_name]
        GLOBAL[f"{_name}_x2"] = _integer(64)[_name]
GLOBAL["add_f32"] = Atomic("f32", lambda o, d: o + d, np.add)
GLOBAL["add_f64"] = Atomic("f64", lambda o, d: o + d, np.add)
GLOBAL["min_f64"] = Atomic("f64", lambda o, d: floats.minimum(o, d, True))
GLOBAL["max_f64"] = Atomic("f64", lambda o, d: floats.maximum(o, d, True))
GLOBAL["pk_add_bf16"] = Atomic("u32", _brains)
GLOBAL["pk_add_f16"] = Atomic("u32", lambda o, d: _halves(o, d, np.float16))

# DS has other names: the type is a suffix, and some operations are named differently.
DS: dict[str, Atomic] = {}
for _bits in (32, 64):
    _table = _integer(_bits)
    for _name in ("add", "sub", "rsub", "inc", "dec"):
        DS[f"{_name}_u{_bits}"] = _table[_name]
    for _name in ("and", "or", "xor"):
        DS[f"{_name}_b{_bits}"] = _table[_name]
    for _name in ("min", "max"):
        DS[f"{_name}_i{_bits}"] = _table[f"s{_name}"]
        DS[f"{_name}_u{_bits}"] = _table[f"u{_name}"]
    DS[f"wrxchg_b{_bits}"] = _table["swap"]
    # DS_CMPST: the first data operand is the comparand (the second in memory's cmpswap).
    DS[f"cmpst_b{_bits}"] = Atomic(
        f"u{_bits}", lambda o, expected, new: np.where(o == expected, new, o), None, 2
    )
    DS[f"mskor_b{_bits}"] = Atomic(f"u{_bits}", lambda o, mask, d: (o & ~mask) | d, None, 2)
    DS[f"add_f{_bits}"] = Atomic(f"f{_bits}", lambda o, d: o + d, np.add)
    DS[f"min_f{_bits}"] = Atomic(f"f{_bits}", lambda o, d: floats.minimum(o, d, True))
    DS[f"max_f{_bits}"] = Atomic(f"f{_bits}", lambda o, d: floats.maximum(o, d, True))
    DS[f"cmpst_f{_bits}"] = Atomic(
        f"f{_bits}", lambda o, expected, new: np.where(o == expected, new, o), None, 2
    )
DS["pk_add_f16"] = GLOBAL["pk_add_f16"]
DS["pk_add_bf16"] = GLOBAL["pk_add_bf16"]


def apply(
    atomic: Atomic,
    data: np.ndarray,
    offsets: np.ndarray,
    sources: list[np.ndarray],
    wants_old: bool,
) -> np.ndarray | None:
    """Applies to region bytes `data` at 1-D byte `offsets`, in order. Returns old values if
    wanted."""
    dtype = np.dtype(atomic.kind[0] + str(int(atomic.kind[1:]) // 8))
    if (offsets % dtype.itemsize).any():
        raise ValueError("misaligned atomic")
    cells = data[: data.size // 8 * 8].view(dtype)
    index = offsets // dtype.itemsize
    sources = [source.view(dtype) for source in sources]
    if not wants_old and atomic.ufunc is not None:
        atomic.ufunc.at(cells, index, sources[0])
        return None
    old = np.empty(len(index), dtype)
    for k, at in enumerate(index):
        old[k] = cells[at]
        cells[at] = atomic.function(old[k : k + 1], *(s[k : k + 1] for s in sources))[0]
    return old
