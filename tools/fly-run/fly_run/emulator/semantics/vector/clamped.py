"""Integer instructions with `clamp`: the exact result, saturated to the range of its type (LLVM,
"Syntax of AMDGPU Instruction Modifiers", clamp).

The lowering uses these for instructions with the modifier. Saturating additions that compilers
emit are next to the plain ones (`integer`, `packed`). A carry is the same with and without the
modifier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.emit import Lanes
from fly_run.emulator.semantics.base.operation import Operation, rows, signature, valu
from fly_run.emulator.semantics.vector.byte_operations import sum_of_differences
from fly_run.emulator.semantics.vector.integer import (
    maximum,
    minimum,
    signed24,
    unsigned24,
)
from fly_run.emulator.semantics.vector.packed import dot_terms, halves
from fly_run.emulator.semantics.vector.rare import quad_differences
from fly_run.emulator.semantics.vector.wide_integer import WIDE

Body = Callable[..., object]
CHUNK = 16


def operations() -> Iterator[Operation]:
    for name, (types, body) in TABLE.items():
        inputs = signature(types)["inputs"]
        masks = inputs.count("mask")
        options = {"kinds": rows(len(inputs) - masks, masks), "chunk": CHUNK}
        keeps = name in ("v_mad_u16", "v_mad_i16")
        yield valu(f"{name}.clamp", types, body, keeps_high=keeps, **options)


def _held(value: Value, element: str, signed: bool) -> Value:
    """Saturates a wider integer to the range of a type."""
    width = int(element[1:])
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)
    if signed:
        value = maximum("s")(value, value.like(low))
    sign = "s" if signed else "u"
    return minimum(sign)(value, value.like(high)).trunc(element)


def _multiply_add(element: str, wide: str, signed: bool) -> Body:
    """The factors are as wide as the result."""
    extension = "sext" if signed else "zext"

    def run(k: Lanes, *values: Value) -> Value:
        a, b, c = (value.convert(extension, wide) for value in values)
        return _held(a * b + c, element, signed)

    return run


def _multiply_add_24(signed: bool) -> Body:
    """With or without an addend."""
    extension, cut = ("sext", signed24) if signed else ("zext", unsigned24)

    def run(k: Lanes, a: Value, b: Value, *rest: Value) -> Value:
        total = cut(a).convert(extension, "i64") * cut(b).convert(extension, "i64")
        for c in rest:
            total = total + c.convert(extension, "i64")
        return _held(total, "i32", signed)

    return run


def _multiply_add_16(signed: bool) -> Body:
    extension, sum_ = ("sext", "llvm.sadd.sat") if signed else ("zext", "llvm.uadd.sat")

    def run(k: Lanes, a: Value, b: Value, c: Value) -> Value:
        product = a.convert(extension, "i32") * b.convert(extension, "i32")
        return k.handler.intrinsic(sum_, product, c)

    return run


def _differences(width: int, shift: int = 0, masked: bool = False) -> Body:
    """A sum of differences fits 32 bits; with the addend it may not."""
    body = sum_of_differences(width, shift, masked)

    def run(k: Lanes, a: Value, b: Value, c: Value) -> Value:
        total = body(k, a, b, c.like(0))
        assert isinstance(total, Value)
        return k.handler.intrinsic("llvm.uadd.sat", total, c)

    return run


def _wide_multiply_add(signed: bool) -> Body:
    """v_mad_u64_u32, v_mad_i64_i32: the mask tells that the sum overflowed 64 bits."""
    plain = WIDE["v_mad_i64_i32" if signed else "v_mad_u64_u32"][1]

    def run(k: Lanes, a: Value, b: Value, c: Value) -> tuple[Value, Value]:
        total, over = plain(k, a, b, c)  # type: ignore[misc]
        # A signed sum overflows towards the sign of both summands.
        limit = c.ashr(63) ^ ((1 << 63) - 1) if signed else c.like(-1)
        return over.select(limit, total), over

    return run


def _with_carry(name: str, limit: int) -> Body:
    """An unsigned sum with a carry, or difference with a borrow, saturated to 32 bits."""
    plain = WIDE[name][1]

    def run(k: Lanes, *values: Value) -> tuple[Value, Value]:
        total, over = plain(k, *values)  # type: ignore[misc]
        return over.select(limit, total), over

    return run


def _dot(width: int) -> Body:
    """The addend is the result's register, the last source."""

    def run(k: Lanes, a: Value, b: Value, c: Value) -> Value:
        total = c.sext("i64")
        for x, y in dot_terms(a, b, width, True, True):
            total = total + x.sext("i64") * y.sext("i64")
        return _held(total, "i32", True)

    return run


_THREE_16, _THREE = "i16 = i16, i16, i16", "i32 = i32, i32, i32"

TABLE: dict[str, tuple[str, Body]] = {
    "v_mad_u16": (_THREE_16, _multiply_add("i16", "i32", False)),
    "v_mad_i16": (_THREE_16, _multiply_add("i16", "i32", True)),
    "v_mad_legacy_u16": (_THREE_16, _multiply_add("i16", "i32", False)),
    "v_mad_legacy_i16": (_THREE_16, _multiply_add("i16", "i32", True)),
    "v_pk_mad_u16": (_THREE, halves("i16", _multiply_add("i16", "i32", False))),
    "v_pk_mad_i16": (_THREE, halves("i16", _multiply_add("i16", "i32", True))),
    "v_mul_u32_u24": ("i32 = i32, i32", _multiply_add_24(False)),
    "v_mul_i32_i24": ("i32 = i32, i32", _multiply_add_24(True)),
    "v_mad_u32_u24": (_THREE, _multiply_add_24(False)),
    "v_mad_i32_i24": (_THREE, _multiply_add_24(True)),
    "v_mad_u32_u16": ("i32 = i16, i16, i32", _multiply_add_16(False)),
    "v_mad_i32_i16": ("i32 = i16, i16, i32", _multiply_add_16(True)),
    "v_mad_u64_u32": ("i64, mask = i32, i32, i64", _wide_multiply_add(False)),
    "v_mad_i64_i32": ("i64, mask = i32, i32, i64", _wide_multiply_add(True)),
    "v_sad_u8": (_THREE, _differences(8)),
    "v_sad_hi_u8": (_THREE, _differences(8, shift=16)),
    "v_sad_u16": (_THREE, _differences(16)),
    "v_sad_u32": (_THREE, _differences(32)),
    "v_msad_u8": (_THREE, _differences(8, masked=True)),
    "v_qsad_pk_u16_u8": ("i64 = i64, i32, i64", quad_differences(False, held=True)),
    "v_mqsad_pk_u16_u8": ("i64 = i64, i32, i64", quad_differences(True, held=True)),
    **{
        f"v_{name}": (WIDE[f"v_{name}"][0], _with_carry(f"v_{name}", limit))
        for names, limit in (
            (("add_co_u32", "addc_co_u32"), -1),
            (("sub_co_u32", "subrev_co_u32", "subb_co_u32", "subbrev_co_u32"), 0),
        )
        for name in names
    },
    **{
        f"v_dot{32 // width}c_i32_i{width}": ("i32 += i32, i32", _dot(width))
        for width in (16, 8, 4)
    },
}
