"""Integer operations of gfx1250: 64-bit sums and products, sums followed by a minimum or maximum,
saturation to four bits, lookups in tables.

LLVM selects the sums with minimum or maximum for sadd.sat and uadd.sat, so they saturate (its
pattern for V_ADD_MAX_I32 and similar). Lookups: the first source is the table's upper part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.emit import Lanes
from fly_run.emulator.semantics.base.operation import Operation, rows, valu
from fly_run.emulator.semantics.vector.integer import maximum, minimum
from fly_run.emulator.semantics.vector.packed import halves

Body = Callable[..., object]
CHUNK = 16
PICK = {"max": maximum, "min": minimum}


def operations() -> Iterator[Operation]:
    for name, (types, body) in WIDE.items():
        yield valu(name, types, body, split=True, only_short=True)
    types = "i32 = i32, i32, i32"
    yield valu("v_mad_u32", types, lambda k, a, b, c: a * b + c, only_short=True)
    for sign, letter in (("s", "i"), ("u", "u")):
        for name, pick in PICK.items():
            body, types = _added(sign, pick(sign)), "i32 = i32, i32, i32"
            yield valu(f"v_add_{name}_{letter}32", types, body, chunk=CHUNK)
            options: dict[str, Any] = {"chunk": CHUNK, "kinds": rows(3)}
            packed = halves("i16", body)
            yield valu(f"v_pk_add_{name}_{letter}16", types, packed, **options)
            packed = halves("i16", _three(pick(sign)))
            yield valu(f"v_pk_{name}3_{letter}16", types, packed, **options)
            types = "i64 = i64, i64"
            yield valu(f"v_{name}_{letter}64", types, _two(pick(sign)), chunk=CHUNK)
    for name, signed in (("i4_i8", True), ("u4_u8", False)):
        body, options = _saturated(signed), {"chunk": CHUNK, "kinds": rows(1), "keeps_high": True}
        yield valu(f"v_sat_pk4_{name}", "i16 = i32", body, **options)
    # A field of a table of 16, in two i64: its upper part and its lower. The extra source is the
    # index, the immediate the field's width.
    yield valu("fly_look_up", "i32 = i64, i64, i32", _looked_up, chunk=CHUNK, kinds=rows(3))


Pair = tuple[Value, Value]


def _sum(a: Pair, b: Pair) -> Pair:
    low = a[0] + b[0]
    return low, a[1] + b[1] + low.compare("ult", a[0]).zext("i32")


def _difference(a: Pair, b: Pair) -> Pair:
    return a[0] - b[0], a[1] - b[1] - a[0].compare("ult", b[0]).zext("i32")


def _product(a: Value, b: Value, extension: str) -> Pair:
    upper = (a.convert(extension, "i64") * b.convert(extension, "i64")).lshr(32).trunc("i32")
    return a * b, upper


def _wide_product(a: Pair, b: Pair) -> Pair:
    low, high = _product(a[0], b[0], "zext")
    return low, high + a[0] * b[1] + a[1] * b[0]


# On pairs of i32, for address arithmetic, as in `vector.address`.
WIDE: dict[str, tuple[str, Body]] = {
    "v_add_nc_u64": ("i64 = i64, i64", lambda k, a, b: _sum(a, b)),
    "v_sub_nc_u64": ("i64 = i64, i64", lambda k, a, b: _difference(a, b)),
    "v_mul_u64": ("i64 = i64, i64", lambda k, a, b: _wide_product(a, b)),
    "v_mad_nc_u64_u32": (
        "i64 = i32, i32, i64",
        lambda k, a, b, c: _sum(_product(a, b, "zext"), c),
    ),
    "v_mad_nc_i64_i32": (
        "i64 = i32, i32, i64",
        lambda k, a, b, c: _sum(_product(a, b, "sext"), c),
    ),
}


def _two(pick: Callable[[Value, Value], Value]) -> Body:
    return lambda k, a, b: pick(a, b)


def _three(pick: Callable[[Value, Value], Value]) -> Body:
    return lambda k, a, b, c: pick(pick(a, b), c)


def _added(sign: str, pick: Callable[[Value, Value], Value]) -> Body:
    def run(k: Lanes, a: Value, b: Value, c: Value) -> Value:
        return pick(k.handler.intrinsic(f"llvm.{sign}add.sat", a, b), c)

    return run


def _saturated(signed: bool) -> Body:
    """Four bytes become four fields of four bits."""

    def run(k: Lanes, a: Value) -> Value:
        total = None
        for place in range(4):
            byte = (a << (24 - 8 * place)).ashr(24) if signed else a.lshr(8 * place) & 255
            if signed:
                byte = maximum("s")(byte, byte.like(-8))
            held = (minimum("s")(byte, byte.like(7 if signed else 15)) & 15) << (4 * place)
            total = held if total is None else total | held
        assert total is not None
        return total.trunc("i16")

    return run


def _looked_up(k: Lanes, upper: Value, lower: Value, index: Value) -> Value:
    width = k.immediate()
    place = index.zext("i64") * width.splat(k.chunk)
    low = place.compare("ult", 64)
    inside = place & 63
    f = k.handler
    # The field may begin in the lower part and end in the upper.
    across = f.intrinsic("llvm.fshr", upper, lower, inside)
    found = low.select(across, upper.lshr(inside))
    mask = (width.like(1) << width) - 1
    return (found & mask.splat(k.chunk)).trunc("i32")
