"""Packed 16-bit arithmetic and dot products: VOP3P (CDNA3 ISA manual, section 16.10).

Operands are whole registers: the encoder's adapters have applied `op_sel` and `neg`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fly_run.emulator import state
from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.emit import Lanes
from fly_run.emulator.semantics.base.operation import GFX9, SINCE_GFX11, Operation, rows, valu
from fly_run.emulator.semantics.base.small_float import FP16_OVFL
from fly_run.emulator.semantics.matrix import formats
from fly_run.emulator.semantics.matrix.arithmetic import Term, flush
from fly_run.emulator.semantics.matrix.formats import FORMATS
from fly_run.emulator.semantics.matrix.measured import sum_complements, sum_pairs
from fly_run.emulator.semantics.vector.floating import float as valu_float
from fly_run.emulator.semantics.vector.floating.convert import to_bfloat
from fly_run.emulator.semantics.vector.floating.min_max import (
    of_three,
    of_two,
    picking,
    propagating,
)
from fly_run.emulator.semantics.vector.integer import maximum, minimum

Body = Callable[..., object]
CHUNK = 16


def operations() -> Iterator[Operation]:
    for name, body in INTEGER.items():
        yield valu(f"v_pk_{name}", "i32 = i32, i32", halves("i16", body))
    for name in ("mad_i16", "mad_u16"):
        yield valu(
            f"v_pk_{name}", "i32 = i32, i32, i32", halves("i16", lambda k, a, b, c: a * b + c)
        )
    for name, body in FLOAT.items():
        count = 3 if name == "fma_f16" or "3" in name.partition("_")[0] else 2
        types = f"i32 = {', '.join(['i32'] * count)}"
        yield valu(f"v_pk_{name}", types, halves("half", body), chunk=CHUNK)
    body = halves("half", valu_float.of("half", valu_float.fused))
    yield valu("v_pk_fmac_f16", "i32 += i32, i32", body, chunk=CHUNK)
    for name, (body, accumulates) in DOT.items():
        types = "i32 += i32, i32" if accumulates else "i32 = i32, i32, i32"
        yield valu(name, types, body, chunk=CHUNK)
    yield from _float_dots()


def halves(element: str, body: Body) -> Body:
    """Applies a body to both halves of every register."""

    def run(k: Lanes, *values: Value) -> Value:
        wide = Lanes(k.handler, k.first, 2 * k.chunk)
        result = body(wide, *(value.cast(element, 2 * k.chunk) for value in values))
        assert isinstance(result, Value)
        return result.cast("i32", k.chunk)

    return run


def _saturating(opcode: str) -> Body:
    return lambda k, a, b: k.handler.intrinsic(f"llvm.{opcode}.sat", a, b)


INTEGER: dict[str, Body] = {
    # Integer clamp: the encoder uses these for `clamp`.
    "add_u16.clamp": _saturating("uadd"),
    "add_i16.clamp": _saturating("sadd"),
    "sub_u16.clamp": _saturating("usub"),
    "sub_i16.clamp": _saturating("ssub"),
    "add_u16": lambda k, a, b: a + b,
    "add_i16": lambda k, a, b: a + b,
    "sub_u16": lambda k, a, b: a - b,
    "sub_i16": lambda k, a, b: a - b,
    "mul_lo_u16": lambda k, a, b: a * b,
    "min_i16": lambda k, a, b: minimum("s")(a, b),
    "min_u16": lambda k, a, b: minimum("u")(a, b),
    "max_i16": lambda k, a, b: maximum("s")(a, b),
    "max_u16": lambda k, a, b: maximum("u")(a, b),
    "lshlrev_b16": lambda k, a, b: b << (a & 15),
    "lshrrev_b16": lambda k, a, b: b.lshr(a & 15),
    "ashrrev_i16": lambda k, a, b: b.ashr(a & 15),
}

FLOAT: dict[str, Body] = {
    "add_f16": valu_float.of("half", lambda k, a, b: a + b),
    "mul_f16": valu_float.of("half", lambda k, a, b: a * b),
    "fma_f16": valu_float.of("half", valu_float.fused),
    "min_f16": of_two(picking("min")),
    "max_f16": of_two(picking("max")),
    "min3_num_f16": of_three(picking("min"), picking("min")),
    "max3_num_f16": of_three(picking("max"), picking("max")),
    "minimum3_f16": of_three(propagating("min"), propagating("min")),
    "maximum3_f16": of_three(propagating("max"), propagating("max")),
}


def _parts(value: Value, width: int, signed: bool) -> list[Value]:
    """Returns the fields of each register, as i32."""
    fields = []
    for start in range(0, 32, width):
        moved = value << (32 - width - start)
        fields.append(moved.ashr(32 - width) if signed else moved.lshr(32 - width))
    return fields


def dot_terms(
    a: Value, b: Value, width: int, signed_a: bool, signed_b: bool
) -> Iterator[tuple[Value, Value]]:
    """Yields the factors of a dot product's terms, as i32."""
    yield from zip(_parts(a, width, signed_a), _parts(b, width, signed_b), strict=True)


def _dot(width: int, signed: bool, signed_b: bool | None = None) -> Body:
    """`signed` applies to the parts of `a`, and to those of `b` unless `signed_b` is given."""
    signed_b = signed if signed_b is None else signed_b

    def run(k: Lanes, a: Value, b: Value, c: Value) -> Value:
        total = c
        for x, y in dot_terms(a, b, width, signed, signed_b):
            total = total + x * y
        return total

    return run


def _dot_saturating(width: int, signed_a: bool, signed_b: bool, signed: bool) -> Body:
    """With `clamp`: the exact sum, saturated to 32 bits."""

    def run(k: Lanes, a: Value, b: Value, c: Value) -> Value:
        total = c.sext("i64") if signed else c.zext("i64")
        for x, y in dot_terms(a, b, width, signed_a, signed_b):
            total = total + x.sext("i64") * y.sext("i64")
        low, high = (-(1 << 31), (1 << 31) - 1) if signed else (0, (1 << 32) - 1)
        held = k.handler.intrinsic("llvm.smax", total, total.like(low))
        return k.handler.intrinsic("llvm.smin", held, held.like(high)).trunc("i32")

    return run


def _factors(form: str, a: Value, b: Value) -> Iterator[tuple[Value, Value]]:
    """Yields the pairs of elements, as raw bits."""
    for number in (0, 1):
        yield tuple(formats.extract([word], number, FORMATS[form]) for word in (a, b))  # type: ignore[misc]


def _dot_chain(form: str) -> Body:
    """v_dot2_f32: products exact in f32, summed sequentially in f32. A denormal addend or result is
    flushed in any MODE (LLVM on FDOT2 in SIISelLowering's performFMACombine)."""

    def run(k: Lanes, a: Value, b: Value, c: Value) -> Value:
        total = flush(c)
        for pair in _factors(form, a, b):
            x, y = (formats.value(raw, form) for raw in pair)
            total = valu_float.first_nan(k.handler.intrinsic("llvm.fma", x, y, total), x, y, total)
        return flush(total)

    return run


def _dot_measured(form: str, add: Callable[[list[Term], Value], Value], flushes: bool) -> Body:
    """v_dot2_f32 as a step of the target's matrix instructions; half a step on gfx1201."""

    def run(k: Lanes, a: Value, b: Value, c: Value) -> Value:
        terms = []
        for first, second in _factors(form, a, b):
            (x, x_exponent), (y, y_exponent) = (
                formats.parts(raw, form, flushes) for raw in (first, second)
            )
            terms.append(Term(x, y, x_exponent, y_exponent))
        return add(terms, c)

    return run


def _dot_to_half(form: str) -> Body:
    """v_dot2_f16_f16 and v_dot2_bf16_bf16: sums the products in f32, adds C, and converts to the
    result's format. bf16 denormals, in sources and in results, are zeros of their sign (RDNA3 and
    RDNA4 ISA manuals, MODE). The order of the sums is rocjitsu's (shared/fp_mode.h)."""

    def number(raw: Value) -> Value:
        if form == "f16":
            return raw.trunc("i16").bits("half").convert("fpext", "float")
        return _without_denormal(raw << 16).bits("float")

    def run(k: Lanes, a: Value, b: Value, c: Value) -> Value:
        pairs = [(number(x), number(y)) for x, y in _factors(form, a, b)]
        low, high = (valu_float.first_nan(x * y, x, y) for x, y in pairs)
        products, addend = valu_float.first_nan(low + high, low, high), number(c.zext("i32"))
        total = valu_float.first_nan(products + addend, products, addend)
        if form == "bf16":
            return _without_denormal(to_bfloat(total).zext("i32") << 16).lshr(16).trunc("i16")
        bits = total.convert("fptrunc", "half").bits("i16")
        # The bits of infinity minus one are the largest number of the same sign.
        mode = k.handler.wave.at(state.MODE).load("i32")
        held = (mode & FP16_OVFL).compare("ne", 0).splat(k.chunk)
        finite = (total.bits("i32") & 0x7FFF_FFFF).compare("ult", 0x7F80_0000)
        infinite = (bits & 0x7FFF).compare("eq", 0x7C00)
        return (held & finite & infinite).select(bits - 1, bits)

    return run


def _without_denormal(word: Value) -> Value:
    """Flushes a denormal bf16 in the upper half of an f32's bits."""
    return (word & 0x7F80_0000).compare("eq", 0).select(word & 0x8000_0000, word)


# Models that are measured; otherwise sums of two products are a chain.
MEASURED = ("complements", "pairs")


def _float_dots() -> Iterator[Operation]:
    for form in ("f16", "bf16"):
        options: dict[str, Any] = {"chunk": CHUNK, "kinds": rows(3), "traits": SINCE_GFX11}
        types = "i16 = i32, i32, i16"
        yield valu(f"v_dot2_{form}_{form}", types, _dot_to_half(form), keeps_high=True, **options)
        complements = _dot_measured(form, sum_complements, flushes=form == "bf16")
        pairs = _dot_measured(form, sum_pairs, flushes=False)
        for name, types in (
            (f"v_dot2_f32_{form}", "float = i32, i32, float"),
            (f"v_dot2c_f32_{form}", "float += i32, i32"),
        ):
            for meaning, body, traits in (
                ("chain", _dot_chain(form), GFX9 | {"gfx1250"}),
                ("complements", complements, frozenset({"complements"})),
                ("pairs", pairs, frozenset({"pairs"})),
            ):
                options = {"chunk": CHUNK, "traits": traits}
                if "+=" in types and meaning != "chain":
                    # VOP2 and VOPD have a vector register for the second source; VOP3, which may
                    # have another there, exists only on gfx9.
                    options["kinds"] = ("vv", "sv")
                yield valu(f"{name}@{meaning}", types, body, **options)


DOT: dict[str, tuple[Body, bool]] = {
    "v_dot2c_i32_i16": (_dot(16, True), True),
    "v_dot4c_i32_i8": (_dot(8, True), True),
    "v_dot8c_i32_i4": (_dot(4, True), True),
    "v_dot2_i32_i16": (_dot(16, True), False),
    "v_dot2_u32_u16": (_dot(16, False), False),
    "v_dot4_i32_i8": (_dot(8, True), False),
    "v_dot4_u32_u8": (_dot(8, False), False),
    "v_dot8_i32_i4": (_dot(4, True), False),
    "v_dot8_u32_u4": (_dot(4, False), False),
}
# The encoder uses these for `clamp`.
DOT |= {
    f"v_dot{32 // width}_{kind}.clamp": (_dot_saturating(width, signed, signed, signed), False)
    for width, signed, kind in (
        (16, True, "i32_i16"),
        (16, False, "u32_u16"),
        (8, True, "i32_i8"),
        (8, False, "u32_u8"),
        (4, True, "i32_i4"),
        (4, False, "u32_u4"),
    )
}
# Parts of v_dot4_i32_iu8 and v_dot8_i32_iu4: signed and unsigned factors, a signed sum.
for _a, _b in ((True, True), (True, False), (False, False)):
    for _width in (8, 4):
        _name = f"fly_dot{32 // _width}_{'su'[not _a]}{'su'[not _b]}"
        DOT[_name] = _dot(_width, _a, _b), False
        DOT[f"{_name}.clamp"] = _dot_saturating(_width, _a, _b, True), False
