"""Loads, stores and atomics: SMEM, GLOBAL, FLAT, SCRATCH, MUBUF and DS, by width and kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.access import Access, Atomic, ScalarAccess
from fly_run.emulator.semantics.base.emit import Handler
from fly_run.emulator.semantics.base.operation import Operation

LOADS = {
    "ubyte": Access("load", 1),
    "sbyte": Access("load", 1, signed=True),
    "ushort": Access("load", 2),
    "sshort": Access("load", 2, signed=True),
    "dword": Access("load", 4),
    "dwordx2": Access("load", 8),
    "dwordx3": Access("load", 12),
    "dwordx4": Access("load", 16),
    "ubyte_d16": Access("load", 1, half="low"),
    "ubyte_d16_hi": Access("load", 1, half="high"),
    "sbyte_d16": Access("load", 1, signed=True, half="low"),
    "sbyte_d16_hi": Access("load", 1, signed=True, half="high"),
    "short_d16": Access("load", 2, half="low"),
    "short_d16_hi": Access("load", 2, half="high"),
}
STORES = {
    "byte": Access("store", 1),
    "byte_d16_hi": Access("store", 1, half="high"),
    "short": Access("store", 2),
    "short_d16_hi": Access("store", 2, half="high"),
    "dword": Access("store", 4),
    "dwordx2": Access("store", 8),
    "dwordx3": Access("store", 12),
    "dwordx4": Access("store", 16),
}
# Size in bytes, and whether it is signed; the last ones are gfx12's.
SCALAR_LOADS = {
    "dword": (4, False),
    "dwordx2": (8, False),
    "dwordx4": (16, False),
    "dwordx8": (32, False),
    "dwordx16": (64, False),
    "dwordx3": (12, False),
    "u8": (1, False),
    "i8": (1, True),
    "u16": (2, False),
    "i16": (2, True),
}
SCALAR_STORES = {"dword": 4, "dwordx2": 8, "dwordx4": 16}
LDS_LOADS = {
    "b32": LOADS["dword"],
    "b64": LOADS["dwordx2"],
    "b96": LOADS["dwordx3"],
    "b128": LOADS["dwordx4"],
    "u8": LOADS["ubyte"],
    "i8": LOADS["sbyte"],
    "u16": LOADS["ushort"],
    "i16": LOADS["sshort"],
    "u8_d16": LOADS["ubyte_d16"],
    "u8_d16_hi": LOADS["ubyte_d16_hi"],
    "i8_d16": LOADS["sbyte_d16"],
    "i8_d16_hi": LOADS["sbyte_d16_hi"],
    "u16_d16": LOADS["short_d16"],
    "u16_d16_hi": LOADS["short_d16_hi"],
}
LDS_STORES = {
    "b32": STORES["dword"],
    "b64": STORES["dwordx2"],
    "b96": STORES["dwordx3"],
    "b128": STORES["dwordx4"],
    "b8": STORES["byte"],
    "b16": STORES["short"],
    "b8_d16_hi": STORES["byte_d16_hi"],
    "b16_d16_hi": STORES["short_d16_hi"],
}

Combine = Callable[[Handler, Value, Value], Value]


def _wrap_up(h: Handler, old: Value, limit: Value) -> Value:
    return old.compare("uge", limit).select(0, old + 1)


def _wrap_down(h: Handler, old: Value, limit: Value) -> Value:
    out = old.compare("eq", 0) | old.compare("ugt", limit)
    return out.select(limit, old - 1)


def _masked_or(h: Handler, old: Value, last: Value, first: Value) -> Value:
    """ds_mskor: the first datum masks the bits to clear, the last has the bits to set."""
    return (old & ~first) | last


def _wrap(h: Handler, old: Value, last: Value, first: Value) -> Value:
    return old.compare("uge", first).select(old - first, old + last)


def _exchange_marked(h: Handler, old: Value, data: Value) -> Value:
    """ds_condxchg32: each dword whose highest bit is set is stored without that bit."""
    result = None
    for start in (0, 32):
        part = data.lshr(start)
        marked = (part & (1 << 31)).compare("ne", 0)
        chosen = marked.select(part, old.lshr(start)) & 0xFFFF_FFFF
        chosen = marked.select(chosen & 0x7FFF_FFFF, chosen) << start
        result = chosen if result is None else result | chosen
    assert result is not None
    return result


def _smaller(predicate: str) -> Combine:
    return lambda h, old, data: data.compare(predicate, old).select(data, old)


def float_pick(name: str) -> Combine:
    """Prefers a number to NaN."""
    return lambda h, old, data: h.intrinsic(f"llvm.{name}num", old, data)


def _packed_add(h: Handler, old: Value, data: Value) -> Value:
    """Adds two f16 pairs, each sum rounded once."""
    parts = [value.cast("half", 2).convert("fpext", "float") for value in (old, data)]
    return (parts[0] + parts[1]).convert("fptrunc", "half").cast("i32", 0)


def _packed_add_bfloat(h: Handler, old: Value, data: Value) -> Value:
    """Adds two bf16 pairs in f32, each sum rounded to nearest even. The upper half of a NaN is a
    NaN too, because the addition has made it quiet."""
    x, y = ((v.cast("i16", 2).zext("i32") << 16).bits("float") for v in (old, data))
    total = x + y
    bits = total.bits("i32")
    rounded = bits + (bits.lshr(16) & 1) + 0x7FFF
    return total.is_nan().select(bits, rounded).lshr(16).trunc("i16").cast("i32", 0)


INTEGER_ATOMICS: dict[str, Combine] = {
    "swap": lambda h, old, data: data,
    "add": lambda h, old, data: old + data,
    "sub": lambda h, old, data: old - data,
    "smin": _smaller("slt"),
    "umin": _smaller("ult"),
    "smax": _smaller("sgt"),
    "umax": _smaller("ugt"),
    "and": lambda h, old, data: old & data,
    "or": lambda h, old, data: old | data,
    "xor": lambda h, old, data: old ^ data,
    "inc": _wrap_up,
    "dec": _wrap_down,
}
FLOAT_ATOMICS: dict[str, tuple[str, Combine]] = {
    "add_f32": ("float", lambda h, old, data: old + data),
    "add_f64": ("double", lambda h, old, data: old + data),
    "min_f64": ("double", float_pick("min")),
    "max_f64": ("double", float_pick("max")),
    "pk_add_f16": ("i32", _packed_add),
    "pk_add_bf16": ("i32", _packed_add_bfloat),
}

# DS names: base name → (name of the integer operation, suffix for 32 and 64 bits)
LDS_ATOMICS = {
    "add": ("add", "u"),
    "sub": ("sub", "u"),
    "inc": ("inc", "u"),
    "dec": ("dec", "u"),
    "min_i": ("smin", ""),
    "max_i": ("smax", ""),
    "min_u": ("umin", ""),
    "max_u": ("umax", ""),
    "and": ("and", "b"),
    "or": ("or", "b"),
    "xor": ("xor", "b"),
}


def operations() -> Iterator[Operation]:
    yield from _scalar_memory()
    for space in ("global", "flat", "scratch", "buffer"):
        short = space != "scratch"
        for name, access in LOADS.items():
            yield Operation(f"{space}_load_{name}", space, short=short, detail=access)
        for name, access in STORES.items():
            yield Operation(f"{space}_store_{name}", space, short=short, detail=access)
    for space in ("global", "flat", "buffer"):
        yield from _atomics(space)
    for name, access in LDS_LOADS.items():
        yield Operation(f"ds_read_{name}", "lds", short=True, detail=access)
    for name, access in LDS_STORES.items():
        yield Operation(f"ds_write_{name}", "lds", short=True, detail=access)
    yield from _lds_atomics()
    yield Operation("ds_wrap_rtn_b32", "lds", detail=Atomic("i32", _wrap, True, pairs=True))
    detail = Atomic("i64", _exchange_marked, True)
    yield Operation("ds_condxchg32_rtn_b64", "lds", detail=detail)


def _scalar_memory() -> Iterator[Operation]:
    for prefix, buffer in (("s", False), ("s_buffer", True)):
        for name, (size, signed) in SCALAR_LOADS.items():
            detail = ScalarAccess("load", size, buffer, signed)
            yield Operation(f"{prefix}_load_{name}", "smem", detail=detail)
        for name, size in SCALAR_STORES.items():
            detail = ScalarAccess("store", size, buffer)
            yield Operation(f"{prefix}_store_{name}", "smem", detail=detail)
        for returns, ending in ((False, ""), (True, ".rtn")):
            for element, suffix in (("i32", ""), ("i64", "_x2")):
                for name, combine in (*INTEGER_ATOMICS.items(), ("cmpswap", keep)):
                    compares = name == "cmpswap"
                    atomic = Atomic(element, combine, returns, compares)
                    size = atomic.size * atomic.values
                    detail = ScalarAccess("atomic", size, buffer, atomic=atomic)
                    full = f"{prefix}_atomic_{name}{suffix}{ending}"
                    yield Operation(full, "smem", detail=detail)


def _atomics(space: str) -> Iterator[Operation]:
    """Yields atomics; `.rtn` is the form that returns the old value (the modifier sc0 or glc)."""
    for returns, ending in ((False, ""), (True, ".rtn")):
        for suffix, element in (("", "i32"), ("_x2", "i64")):
            for name, combine in INTEGER_ATOMICS.items():
                detail = Atomic(element, combine, returns)
                yield Operation(f"{space}_atomic_{name}{suffix}{ending}", space, detail=detail)
            detail = Atomic(element, keep, returns, compares=True)
            yield Operation(f"{space}_atomic_cmpswap{suffix}{ending}", space, detail=detail)
        for name, (element, combine) in FLOAT_ATOMICS.items():
            detail = Atomic(element, combine, returns)
            yield Operation(f"{space}_atomic_{name}{ending}", space, detail=detail)


def keep(h: Handler, old: Value, data: Value) -> Value:
    """Compare-and-swap has no combining function."""
    return old


def _lds_atomics() -> Iterator[Operation]:
    for returns, middle in ((False, ""), (True, "rtn_")):
        for width in (32, 64):
            element = f"i{width}"
            for name, (kind, letter) in LDS_ATOMICS.items():
                base, _, sign = name.partition("_")
                full = f"ds_{base}_{middle}{sign or letter}{width}"
                detail = Atomic(element, INTEGER_ATOMICS[kind], returns)
                yield Operation(full, "lds", detail=detail)
            detail = Atomic(element, lambda h, old, data: data - old, returns)
            yield Operation(f"ds_rsub_{middle}u{width}", "lds", detail=detail)
            detail = Atomic(element, keep, returns, compares=True)
            yield Operation(f"ds_cmpst_{middle}b{width}", "lds", detail=detail)
            real = "float" if width == 32 else "double"
            yield Operation(
                f"ds_cmpst_{middle}f{width}",
                "lds",
                detail=Atomic(real, keep, returns, compares=True),
            )
            for name in ("min", "max"):
                detail = Atomic(real, float_pick(name), returns)
                yield Operation(f"ds_{name}_{middle}f{width}", "lds", detail=detail)
            detail = Atomic(real, FLOAT_ATOMICS["add_f32"][1], returns)
            yield Operation(f"ds_add_{middle}f{width}", "lds", detail=detail)
            if returns:
                detail = Atomic(element, INTEGER_ATOMICS["swap"], True)
                yield Operation(f"ds_wrxchg_rtn_b{width}", "lds", detail=detail)
        for width in (32, 64):
            detail = Atomic(f"i{width}", _masked_or, returns, pairs=True)
            yield Operation(f"ds_mskor_{middle}b{width}", "lds", detail=detail)
        for name in ("pk_add_f16", "pk_add_bf16"):
            detail = Atomic("i32", FLOAT_ATOMICS[name][1], returns)
            yield Operation(f"ds_{name[:7]}{middle and 'rtn_'}{name[7:]}", "lds", detail=detail)
