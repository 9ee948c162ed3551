"""Numbers of each type, in memory and in kernels, for tests of all types.

A kernel gets them in one buffer: for each type twice `LANES` numbers, each in at most 16 bytes.
"""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from fly_trace.values.dtypes import DTYPES

import fly.expr as fx

from .exact_numbers import BITS, FLOATS, INTEGERS, NAMES, greatest, rounded, wrapped

LANES = 128


def loaded(memory: Any, name: str, side: int, form: str) -> Any:
    """In a kernel: this thread's number of a type, or a vector of two."""
    t = fx.thread_idx.x
    at = (NAMES.index(name) * 2 + side) * LANES * 16
    kind = fx.Uint8 if name == "bool" else DTYPES[name]
    pointer = fx.recast_iter(kind, fx.get_iter(memory) + at)
    if form == "vector":
        pair = fx.make_view(pointer, fx.make_layout((LANES // 2, 2), (2, 1)))[t, None].load()
        return pair != 0 if name == "bool" else pair
    one = fx.make_view(pointer, fx.make_layout(LANES, 1))[t]
    return one != 0 if name == "bool" else one


def stored(value: Any, k: int, S: Any, U: Any, F: Any, form: str) -> None:
    """In a kernel: stores a result in row `k`. Floats in F, integers in S, u128 in U."""
    t = fx.thread_idx.x
    for lane in fx.range_constexpr(2 if form == "vector" else 1):
        one, at = (value[lane], t * 2 + lane) if form == "vector" else (value, t)
        if one.dtype.is_float:
            F[k, at] = one.to(fx.Float64)
        else:
            wide, where = (fx.Uint128, U) if one.dtype is fx.Uint128 else (fx.Int128, S)
            view = fx.make_view(fx.recast_iter(wide, fx.get_iter(where)), fx.get_layout(F))
            view[k, at] = one.to(wide)


def read(name: str, k: int, lane: int, S: np.ndarray, U: np.ndarray, F: np.ndarray) -> int | float:
    """A result of a type, as `stored` has left it."""
    if name in FLOATS:
        return float(F[k, lane])
    low, high = (U if name == "u128" else S)[k, lane]
    return wrapped(int(high) << 64 | int(low) & 2**64 - 1, "u128" if name == "u128" else "i128")


def memory(numbers: Callable[[str, int], list]) -> np.ndarray:
    """The buffer that a kernel gets."""
    data = b"".join(encoded(name, numbers(name, side)) for name in NAMES for side in (0, 1))
    return np.frombuffer(data, np.uint8).copy()


def samples(name: str, side: int) -> list[bool | int | float]:
    """Eight special numbers against eight others in the first 64 lanes, then any numbers."""
    choose = random.Random(f"{name} {side}")
    if name == "bool":
        special, others = [False, True] * 4, [choose.random() < 0.5 for _ in range(64)]
    elif name in INTEGERS:
        low, high = INTEGERS[name]
        near = 2 ** min(24, BITS[name] - 2) + 1
        special = [0, 1, -1 if low else high, 2, low, high, near, high // 2 + 1]
        others = []
        for _ in range(64):
            size = choose.randrange(BITS[name])
            others.append(choose.randrange(-(1 << size) if low else 0, 1 << size))
    else:
        special = [
            0.0,
            1.0,
            -1.0,
            float(greatest(name)),
            2.0 ** FLOATS[name][0],
            -2.5,
            math.inf,
            math.nan,
        ]
        most = 14.0 if name == "f16" else 40.0
        others = [
            rounded(choose.choice((1, -1)) * 2 ** choose.uniform(-8, most), name) for _ in range(64)
        ]
    order = [lane // 8 if side else lane % 8 for lane in range(64)]
    return [*(special[at] for at in order), *others]


def encoded(name: str, numbers: list) -> bytes:
    """The numbers in memory, in 16 bytes each at most."""
    if name == "bool":
        data = bytes(numbers)
    elif name in INTEGERS:
        data = b"".join(
            wrapped(n, f"u{BITS[name]}").to_bytes(BITS[name] // 8, "little") for n in numbers
        )
    elif name == "bf16":
        data = b"".join(struct.pack("<f", n)[2:] for n in numbers)
    else:
        code = {"f16": "e", "f32": "f", "f64": "d"}[name]
        data = struct.pack(f"<{len(numbers)}{code}", *numbers)
    return data.ljust(LANES * 16, b"\0")


def same(found, expected) -> bool:
    if isinstance(expected, float) and expected != expected:
        return bool(np.isnan(found))
    return found == expected
