"""Operations that gfx11 and gfx12 have and gfx9 does not: masks of 32 lanes, 64-bit scalar sums,
and more vector operations (RDNA3 and RDNA4 ISA manuals).

Operations that differ only by name are in `aliases`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.emit import Lanes
from fly_run.emulator.semantics.base.operation import SINCE_GFX11, Operation, rows, scalar, valu
from fly_run.emulator.semantics.scalar.alu import LOGIC, save_exec, write_exec
from fly_run.emulator.semantics.vector import packed
from fly_run.emulator.semantics.vector.floating import float as valu_float
from fly_run.emulator.semantics.vector.floating.convert import pack, to_integer
from fly_run.emulator.semantics.vector.floating.min_max import (
    choosing,
    of_three,
    of_two,
    picking,
    propagating,
    three_numbers,
)
from fly_run.emulator.semantics.vector.integer import maximum, minimum

Body = Callable[..., object]


def operations() -> Iterator[Operation]:
    for operator, body in LOGIC.items():
        name = f"s_{operator}_saveexec_b32"
        yield scalar(name, "i32 = i32", save_exec(body, "i32"), detail="scc", short=True)
    for name, (types, body) in SCALAR.items():
        yield scalar(name, types, body)
    for name, (types, body) in VECTOR.items():
        yield valu(name, types, body, chunk=16, keeps_high=types.startswith("i16"))
    for kind, kinds in valu_float.WITH_LITERAL.items():
        body, types = valu_float.of("half", valu_float.fused), "half = half, half, half"
        yield valu(f"v_fma{kind}_f16", types, body, chunk=16, kinds=kinds, keeps_high=True)
    for operator in ("andn1", "andn2"):
        body = write_exec(LOGIC[operator], "i32")
        yield scalar(
            f"s_{operator}_wrexec_b32",
            "i32 = i32",
            body,
            detail="scc",
            short=True,
            traits=SINCE_GFX11,
        )
    yield from _minima()
    yield from _propagating()


SCALAR: dict[str, tuple[str, Body]] = {
    "s_add_nc_u64": ("i64 = i64, i64", lambda h, a, b: a + b),
    "s_sub_nc_u64": ("i64 = i64, i64", lambda h, a, b: a - b),
    "s_mul_u64": ("i64 = i64, i64", lambda h, a, b: a * b),
    "s_pack_hl_b32_b16": ("i32 = i32, i32", lambda h, a, b: a.lshr(16) | (b << 16)),
}


def _fused_dx9(k: Lanes, a: Value, b: Value, c: Value) -> Value:
    """An fma where 0 times anything is 0."""
    zero = a.compare("oeq", 0.0) | b.compare("oeq", 0.0)
    return zero.select(c, valu_float.fused(k, a, b, c))


def _pack_integers(signed: bool) -> Body:
    """Converts f32 to 16-bit integers, truncated and saturated."""

    def run(k: Lanes, a: Value, b: Value) -> Value:
        low, high = (to_integer(value, "i16", signed) for value in (a, b))
        return pack(low, high)

    return run


VECTOR: dict[str, tuple[str, Body]] = {
    "v_mov_b16": ("i16 = i16", lambda k, a: a),
    "v_not_b16": ("i16 = i16", lambda k, a: ~a),
    "v_and_b16": ("i16 = i16, i16", lambda k, a, b: a & b),
    "v_or_b16": ("i16 = i16, i16", lambda k, a, b: a | b),
    "v_xor_b16": ("i16 = i16, i16", lambda k, a, b: a ^ b),
    "v_cndmask_b16": ("i16 = i16, i16, mask", lambda k, a, b, m: m.select(b, a)),
    "v_fma_dx9_zero_f32": ("float = float, float, float", _fused_dx9),
    "v_fmac_dx9_zero_f32": ("float += float, float", _fused_dx9),
    "v_cvt_pk_i16_f32": ("i32 = float, float", _pack_integers(True)),
    "v_cvt_pk_u16_f32": ("i32 = float, float", _pack_integers(False)),
    "v_xor3_b32": ("i32 = i32, i32, i32", lambda k, a, b, c: a ^ b ^ c),
    "v_cvt_i32_i16": ("i32 = i16", lambda k, a: a.sext("i32")),
    "v_cvt_u32_u16": ("i32 = i16", lambda k, a: a.zext("i32")),
}


def _then(first: Callable[[Value, Value], Value], second: Callable[[Value, Value], Value]) -> Body:
    return lambda k, a, b, c: second(first(a, b), c)


def _minima() -> Iterator[Operation]:
    """v_maxmin, v_minmax: one applied to the other's result."""
    for first, second in (("max", "min"), ("min", "max")):
        for sign, letter in (("s", "i"), ("u", "u")):
            kinds = {"max": maximum(sign), "min": minimum(sign)}
            body = _then(kinds[first], kinds[second])
            yield valu(f"v_{first}{second}_{letter}32", "i32 = i32, i32, i32", body, chunk=16)
        for element, short in (("half", "f16"), ("float", "f32")):
            types = f"{element} = {element}, {element}, {element}"
            options: dict[str, Any] = {"chunk": 16, "keeps_high": element == "half"}
            options["kinds"] = rows(3)
            body = of_three(picking(first), picking(second))
            yield valu(f"v_{first}{second}_{short}", types, body, **options)
            body = three_numbers(choosing(first), choosing(second))
            yield valu(f"v_{first}{second}_num_{short}", types, body, **options)
            body = of_three(propagating(first), propagating(second))
            name = f"v_{first}imum{second}imum_{short}"
            yield valu(name, types, body, **options)


def _propagating() -> Iterator[Operation]:
    """gfx12's v_minimum, v_maximum, which propagate NaN."""
    for name in ("min", "max"):
        body = of_two(propagating(name))
        for element, short in valu_float.SHORT.items():
            types = f"{element} = {element}, {element}"
            options: dict[str, Any] = {} if element == "float" else {"kinds": rows(2)}
            options["keeps_high"] = element == "half"
            yield valu(f"v_{name}imum_{short}", types, body, chunk=16, **options)
        types, three = "half = half, half, half", of_three(propagating(name), propagating(name))
        options = {"chunk": 16, "kinds": rows(3), "keeps_high": True}
        yield valu(f"v_{name}imum3_f16", types, three, **options)
        options = {"chunk": 16, "kinds": rows(2)}
        yield valu(f"v_pk_{name}imum_f16", "i32 = i32, i32", packed.halves("half", body), **options)
