"""Matrix instructions as FlyDSL builds them: a result type and a list of operands.

rocdl.mfma_f32_16x16x16f16(T.f32x4, [a, b, c, 0, 0, 0])
"""

from __future__ import annotations

from typing import Any

from fly_trace.core import tracing
from fly_trace.values.dtypes import I32

from fly.flydsl._mlir.dialects import rocdl as _dialect
from fly.flydsl.expr.rocdl.universal import known
from fly.flydsl.numbers.raw import lift, lower

# Operands: a, b, c, and the immediates cbsz, abid, blgp.
_PLAIN = [
    "mfma_f32_32x32x8f16",
    "mfma_f32_32x32x8bf16_1k",
    "mfma_f32_32x32x16_f16",
    "mfma_f32_32x32x16_bf16",
    "mfma_f32_16x16x16f16",
    "mfma_f32_16x16x16bf16_1k",
    "mfma_f32_16x16x32_fp8_fp8",
    "mfma_i32_16x16x32_i8",
    "mfma_f32_16x16x32_f16",
    "mfma_f32_16x16x32_bf16",
]
# Operands: a, b, c, and the formats of a and b, the byte of a's scales and the scales, b's.
_SCALED = ("mfma_scale_f32_16x16x128_f8f6f4", "mfma_scale_f32_32x32x64_f8f6f4")

__all__ = [*_PLAIN, *_SCALED]

_PERMUTATIONS = {
    0: "none",
    1: "bcast_first_32",
    2: "bcast_second_32",
    4: "bcast_first_16",
    5: "bcast_second_16",
}
FORMATS = {0: "fp8_e4m3", 1: "fp8_e5m2", 2: "fp6_e2m3", 3: "fp6_e3m2", 4: "fp4_e2m1"}


def attribute(value: Any, words: dict[int, str], name: str) -> Any:
    """An attribute of MLIR for a number that stands for a word."""
    if value is not None and not isinstance(known(value), int):
        return value
    builder = tracing.kernel("a matrix instruction")
    return builder.attribute(f"#rocdl<{name} {words[int(known(value) or 0)]}>")


def operand(value: Any) -> Any:
    """A value of MLIR; a number of Python as an i32."""
    return lower(I32(value)) if isinstance(value, int) else lower(lift(value))


def _plain(name: str) -> Any:
    def function(result_type: Any, operands: Any, **_: Any) -> Any:
        a, b, c, *rest = operands
        cbsz, abid = (*(int(known(one)) for one in rest[:2]), 0, 0)[:2]
        blgp = rest[2] if len(rest) > 2 else 0
        permutation = attribute(blgp, _PERMUTATIONS, "mfma_perm_b")
        make = getattr(_dialect, name)
        return lift(make(result_type, *map(operand, (a, b, c)), cbsz, abid, permutation))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`rocdl.{name}` of [a, b, c, cbsz, abid, blgp]."
    return function


def _scaled(name: str) -> Any:
    def function(result_type: Any, operands: Any, **_: Any) -> Any:
        a, b, c, *rest = operands
        formats = [attribute(one, FORMATS, "matrix_format") for one in (*rest[:2], 0, 0)[:2]]
        defaults = [0, a, 0, b]
        byte_a, scale_a, byte_b, scale_b = [*rest[2:6], *defaults[len(rest[2:6]) :]]
        make = getattr(_dialect, name)
        values = [operand(one) for one in (a, b, c)]
        made = make(
            result_type,
            *values,
            *formats,
            int(known(byte_a)),
            operand(scale_a),
            int(known(byte_b)),
            operand(scale_b),
        )
        return lift(made)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"`rocdl.{name}` of [a, b, c, formats of a and b, byte, scales, byte, scales]."
    )
    return function


globals().update({name: _plain(name) for name in _PLAIN})
globals().update({name: _scaled(name) for name in _SCALED})
