"""Scalar floating point (gfx11.5 and gfx12): arithmetic, comparisons and conversions of f32 and f16
in scalar registers (RDNA3.5 and RDNA4 ISA manuals, SOP1, SOP2, SOPC). gfx11.5 has S_MIN_F32 and
S_MAX_F32, which depend on MODE.IEEE, instead of gfx12's S_MIN_NUM_F32 and S_MAX_NUM_F32.

They apply the bodies of the vector operations to one lane.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.emit import Handler, Lanes
from fly_run.emulator.semantics.base.operation import Operation, scalar
from fly_run.emulator.semantics.vector.floating import convert
from fly_run.emulator.semantics.vector.floating import float as valu_float
from fly_run.emulator.semantics.vector.floating.min_max import (
    choosing,
    of_two,
    picking,
    propagating,
    two_numbers,
)
from fly_run.emulator.semantics.vector.vopc import FLOAT_CONDITIONS

Body = Callable[..., Any]
SHORT = {"half": "f16", "float": "f32"}


def operations() -> Iterator[Operation]:
    for element, short in SHORT.items():
        for name, (count, body) in ARITHMETIC.items():
            sources = ", ".join(["i32"] * count)
            accumulates = "+=" if name == "fmac" else "="
            inner = valu_float.of(element, body)
            yield scalar(f"s_{name}_{short}", f"i32 {accumulates} {sources}", on(element, inner))
        for name, body in valu_float.EXACT.items():
            yield scalar(f"s_{name}_{short}", "i32 = i32", on(element, body))
        for name in ("min", "max"):
            body = two_numbers(choosing(name))
            yield scalar(f"s_{name}_num_{short}", "i32 = i32, i32", on(element, body))
            body = of_two(picking(name))
            yield scalar(f"s_{name}_{short}", "i32 = i32, i32", on(element, body))
            body = of_two(propagating(name))
            yield scalar(f"s_{name}imum_{short}", "i32 = i32, i32", on(element, body))
        for name, predicate in FLOAT_CONDITIONS.items():
            if name in ("f", "tru"):
                continue
            body = _compare(element, predicate)
            yield scalar(f"s_cmp_{name}_{short}", "= i32, i32", body, detail="scc")
    for kind in ("fmaak", "fmamk"):
        yield scalar(f"s_{kind}_f32", "i32 = i32, i32, i32", on("float", valu_float.fused))
    for name, (source, vector) in CONVERSIONS.items():
        yield scalar(f"s_{name}", "i32 = i32", on(source, convert.TABLE[vector][1]))
    yield scalar("s_cvt_hi_f32_f16", "i32 = i32", _convert_high)
    body = on("float", convert.TABLE["v_cvt_pkrtz_f16_f32"][1])
    yield scalar("s_cvt_pk_rtz_f16_f32", "i32 = i32, i32", body)


ARITHMETIC: dict[str, tuple[int, Body]] = {
    name: valu_float.ARITHMETIC[name] for name in ("add", "sub", "mul", "fmac")
}
# name → type of the source, the vector operation
CONVERSIONS = {
    "cvt_f32_i32": ("i32", "v_cvt_f32_i32"),
    "cvt_f32_u32": ("i32", "v_cvt_f32_u32"),
    "cvt_i32_f32": ("float", "v_cvt_i32_f32"),
    "cvt_u32_f32": ("float", "v_cvt_u32_f32"),
    "cvt_f16_f32": ("float", "v_cvt_f16_f32"),
    "cvt_f32_f16": ("half", "v_cvt_f32_f16"),
}


def typed(value: Value, element: str) -> Value:
    """Reads a scalar register's 32 bits as one lane of `element`."""
    if element == "half":
        value = value.trunc("i16")
    return value.bits(element).splat(1)


def _plain(result: Value) -> Value:
    """Returns the scalar register value for one lane."""
    width = {"half": "i16", "i16": "i16"}.get(result.element, "i32")
    return result.cast(width, 0).zext("i32")


def on(element: str, body: Body) -> Body:
    """Applies a vector body to scalar registers; the high half of a 16-bit result is zero."""

    def run(h: Handler, *values: Value) -> Value:
        lane = Lanes(h, h.constant("i64", 0), 1)
        return _plain(body(lane, *(typed(value, element) for value in values)))

    return run


def _compare(element: str, predicate: str) -> Body:
    def run(h: Handler, a: Value, b: Value) -> Value:
        x, y = (typed(value, element) for value in (a, b))
        if element == "half":
            x, y = x.convert("fpext", "float"), y.convert("fpext", "float")
        return x.compare(predicate, y).cast("i1", 0)

    return run


def _convert_high(h: Handler, a: Value) -> Value:
    half = typed(a.lshr(16), "half")
    return _plain(half.convert("fpext", "float"))
