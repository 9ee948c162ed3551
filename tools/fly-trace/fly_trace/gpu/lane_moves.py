"""Moves of values among lanes by patterns that are known while tracing.

They are gpu.shuffle ops with an attribute that names the pattern, so that a backend may use an
instruction for it. Lanes are seen in rows of 16. A number is moved in words of 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fly_trace.core import tracing
from fly_trace.gpu.device import lane_id, num_warp_threads
from fly_trace.values.conversion import convert
from fly_trace.values.dtypes import I32, I64, I128, U32
from fly_trace.values.functions.math_functions import where
from fly_trace.values.scalars import Scalar

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

    from fly_trace.session.builder import Builder

ATTRIBUTE = "fly.lane_move"
ROW = 16


def xor(value: Scalar, mask: int) -> Scalar:
    """The value of lane `lane ^ mask`, for a mask below 32."""
    return _moved(f"xor:{mask}", "xor", value, mask)


def row_shifted(value: Scalar, step: int, other: Scalar) -> Scalar:
    """The value of lane `lane - step` if that is in the same row, else `other`."""
    lane = lane_id()
    inside = convert(lane % ROW, U32) >= step
    return _moved(
        f"row_shift:{step}", "idx", value, where(inside, lane - step, lane), inside, other
    )


def row_below(value: Scalar, other: Scalar | None = None) -> Scalar:
    """In odd rows the value of the last lane of the row below, in the others `other`; without it
    they have no certain value."""
    lane = lane_id()
    is_odd = (lane & ROW) != 0
    source = where(is_odd, (lane & ~31) | (ROW - 1), lane)
    return _moved("row_below", "idx", value, source, is_odd, other)


def half_below(value: Scalar, other: Scalar | None = None) -> Scalar:
    """From lane 32 on the value of lane 31, in the others `other`; without it they have no certain
    value. The wave has 64 lanes."""
    return _moved("half_below", "idx", value, 31, lane_id() >= 32, other)


def shifted(value: Scalar, other: Scalar) -> Scalar:
    """The value of lane `lane - 1` of the wave, in lane 0 `other`."""
    lane = lane_id()
    return _moved("shift", "idx", value, where(lane > 0, lane - 1, lane), lane > 0, other)


def of_lane(value: Scalar, lane: Any) -> Scalar:
    """The value of one lane of the wave, the same for all."""
    return _moved("lane", "idx", value, lane)


def _moved(
    pattern: str,
    mode: str,
    value: Scalar,
    offset: Any,
    valid: Any = None,
    other: Scalar | None = None,
) -> Scalar:
    """The value of another lane, by gpu.shuffle; where `valid` is false, `other`."""
    builder = tracing.kernel("a primitive of a wave")
    where_from, lanes = builder.ssa(convert(offset, I32)), builder.ssa(num_warp_threads())
    types = [builder.type("i32"), builder.type("i1")]
    attributes = {
        "mode": builder.attribute(f"#gpu<shuffle_mode {mode}>"),
        ATTRIBUTE: builder.attribute(f'"{pattern}"'),
    }

    def move(word: ir.Value, instead: ir.Value | None) -> ir.Value:
        operands = [word, where_from, lanes]
        found: Any = builder.op("gpu.shuffle", types, operands, attributes).results[0]
        if instead is None:
            return found
        return builder.one("arith.select", "i32", builder.ssa(valid), found, instead)

    return _by_words(builder, value, other, move)


def _by_words(
    builder: Builder,
    value: Scalar,
    other: Scalar | None,
    move: Callable[[ir.Value, ir.Value | None], ir.Value],
) -> Scalar:
    dtype = value.dtype
    words = _words(builder, value)
    instead = [None] * len(words) if other is None else _words(builder, convert(other, dtype))
    moved = [move(word, one) for word, one in zip(words, instead, strict=True)]
    if dtype.bits <= 32:
        raw = moved[0]
        if dtype.bits < 32:
            raw = builder.one("arith.trunci", f"i{dtype.bits}", raw)
    else:
        whole = f"i{dtype.bits}"
        raw = builder.one("arith.extui", whole, moved[0])
        for number, word in enumerate(moved[1:], 1):
            place = builder.constant(32 * number, I64 if dtype.bits == 64 else I128)
            wide = builder.one("arith.extui", whole, word)
            shifted = builder.one("arith.shli", whole, wide, place)
            raw = builder.one("arith.ori", whole, raw, shifted)
    return Scalar(dtype, builder.one("arith.bitcast", dtype.ir, raw) if dtype.is_float else raw)


def _words(builder: Builder, value: Scalar) -> list[Any]:
    """The bits of a number as i32 values, the lowest first."""
    dtype, raw = value.dtype, builder.ssa(value)
    bits = f"i{dtype.bits}"
    if dtype.is_float:
        raw = builder.one("arith.bitcast", bits, raw)
    if dtype.bits == 32:
        return [raw]
    if dtype.bits < 32:
        return [builder.one("arith.extui", "i32", raw)]
    whole = I64 if dtype.bits == 64 else I128
    parts = [raw]
    for place in range(32, dtype.bits, 32):
        parts.append(builder.one("arith.shrui", bits, raw, builder.constant(place, whole)))
    return [builder.one("arith.trunci", "i32", part) for part in parts]
