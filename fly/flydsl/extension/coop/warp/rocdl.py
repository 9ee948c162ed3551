"""Reductions and scans of a wave's lanes by DPP, on gfx9: rows of 16 lanes, then the rows.

Numbers of 32 bits are moved by one instruction. Other widths and other chips have the forms for any
target. All else is that of any target, too.
"""

from __future__ import annotations

from typing import Any

from fly_trace.gpu import lane_moves
from fly_trace.values.dtypes import I32
from fly_trace.values.scalars import Scalar

from fly.flydsl._mlir.dialects import rocdl as _dialect
from fly.flydsl.compiler.backends import current_target
from fly.flydsl.expr.gpu import lane_id
from fly.flydsl.extension.coop._common import (
    combine,
    identity,
    number,
    resolve_warp_width,
    seed,
    thread_partial,
)
from fly.flydsl.extension.coop._items import converted, is_sequence
from fly.flydsl.extension.coop.warp import reduce as _reduce
from fly.flydsl.extension.coop.warp import scan as _scan
from fly.flydsl.extension.coop.warp.batched import (
    warp_reduce_batched,
    warp_reduce_batched_to_blocked,
    warp_reduce_batched_to_striped,
)
from fly.flydsl.extension.coop.warp.classes import WarpReduce, WarpReduceBatched, WarpScan
from fly.flydsl.extension.coop.warp.exchange import WarpExchange, WarpExchangeAlgorithm
from fly.flydsl.extension.coop.warp.reduce import (
    warp_broadcast,
    warp_head_segmented_reduce,
    warp_tail_segmented_reduce,
)
from fly.flydsl.extension.coop.warp.sorts import (
    WarpBitonicSort,
    WarpMergeSort,
    warp_bitonic_sort,
    warp_merge_sort,
)
from fly.flydsl.extension.coop.warp.transfers import (
    WarpLoad,
    WarpLoadAlgorithm,
    WarpStore,
    WarpStoreAlgorithm,
)
from fly.flydsl.numbers.types import ir_type

__all__ = [
    "WarpBitonicSort",
    "WarpExchange",
    "WarpExchangeAlgorithm",
    "WarpLoad",
    "WarpLoadAlgorithm",
    "WarpMergeSort",
    "WarpReduce",
    "WarpReduceBatched",
    "WarpScan",
    "WarpStore",
    "WarpStoreAlgorithm",
    "warp_bitonic_sort",
    "warp_broadcast",
    "warp_exclusive_scan",
    "warp_head_segmented_reduce",
    "warp_inclusive_scan",
    "warp_merge_sort",
    "warp_reduce",
    "warp_reduce_batched",
    "warp_reduce_batched_to_blocked",
    "warp_reduce_batched_to_striped",
    "warp_scan",
    "warp_scan_with_aggregate",
    "warp_tail_segmented_reduce",
]

_ROW, _HALF, _WAVE = 16, 32, 64
_ROW_HALF_MIRROR = 0x141  # the control of DPP: ISA of CDNA3, "Data Parallel Processing"


def applies(value: Any, op: Any) -> bool:
    """Whether DPP moves the value, for a `ReductionOp`."""
    return (
        current_target().arch.startswith("gfx9")
        and not callable(op)
        and isinstance(value, Scalar)
        and value.dtype.bits == 32
    )


def _other_quad(value: Any) -> Any:
    """A value of the other quad among 8 lanes: DPP has no exclusive or with 4, but a mirror."""
    bits = value if value.dtype is I32 else value.bitcast(I32)
    raw = bits.ir_value()
    moved = I32(_dialect.update_dpp(ir_type(I32), raw, raw, _ROW_HALF_MIRROR, 15, 15, False))
    return moved if value.dtype is I32 else moved.bitcast(value.dtype)


def _inclusive(value: Any, op: Any, width: int) -> Any:
    neutral = identity(op, value.dtype)
    for step in (1, 2, 4, 8):
        if step < width:
            lower = lane_moves.row_shifted(value, step, neutral)
            if width < _ROW:  # the row has lanes of other groups
                lower = (lane_id() % width >= step).select(lower, neutral)
            value = combine(op, lower, value)
    if width > _ROW:
        value = combine(op, lane_moves.row_below(value, neutral), value)
    if width > _HALF:
        value = combine(op, lane_moves.half_below(value, neutral), value)
    return value


def _exclusive(inclusive: Any, op: Any, width: int) -> Any:
    neutral = identity(op, inclusive.dtype)
    if width <= _ROW:
        below = lane_moves.row_shifted(inclusive, 1, neutral)
    else:
        below = lane_moves.shifted(inclusive, neutral)
    if width in (_ROW, _WAVE):
        return below
    return (lane_id() % width > 0).select(below, neutral)


def warp_reduce(value: Any, op: Any, *, width: int | None = None, valid_items: Any = None) -> Any:
    """As the form for any target."""
    width = resolve_warp_width(width, "warp_reduce width")
    found = number(thread_partial(value, op))
    if valid_items is not None or not applies(found, op):
        return _reduce.warp_reduce(value, op, width=width, valid_items=valid_items)
    if width == _WAVE:
        return lane_moves.of_lane(_inclusive(found, op, width), _WAVE - 1)
    offset = 1
    while offset < width:
        # From 4 on, all lanes of a quad have one value.
        other = _other_quad(found) if offset == 4 else lane_moves.xor(found, offset)
        found = combine(op, found, other)
        offset *= 2
    return found


def _scan_of(value: Any, op: Any, width: int) -> Any:
    """The inclusive scan of each group's lanes, by DPP if possible."""
    return (_inclusive if applies(value, op) else _scan.inclusive_of)(value, op, width)


def _scanned(value: Any, op: Any, width: int, init: Any, valid_items: Any) -> tuple[Any, Any, Any]:
    """The inclusive and the exclusive scan, and the total without `init`."""
    if valid_items is not None or is_sequence(value) or not applies(number(value), op):
        return _scan.scanned(value, op, width, init, valid_items, _scan_of)
    inclusive = _inclusive(number(value), op, width)
    if init is not None:
        init = converted(init, inclusive.dtype)
    exclusive = seed(_exclusive(inclusive, op, width), op, init)
    if width == _WAVE:
        total = lane_moves.of_lane(inclusive, _WAVE - 1)
    else:
        total = _scan.last_of(inclusive, width)
    return seed(inclusive, op, init), exclusive, total


def warp_inclusive_scan(
    value: Any, op: Any, *, width: int | None = None, init: Any = None, valid_items: Any = None
) -> Any:
    """As the form for any target."""
    width = resolve_warp_width(width, "warp_inclusive_scan width")
    return _scanned(value, op, width, init, valid_items)[0]


def warp_exclusive_scan(
    value: Any, op: Any, *, width: int | None = None, init: Any = None, valid_items: Any = None
) -> Any:
    """As the form for any target."""
    width = resolve_warp_width(width, "warp_exclusive_scan width")
    return _scanned(value, op, width, init, valid_items)[1]


def warp_scan(
    value: Any, op: Any, *, width: int | None = None, init: Any = None, valid_items: Any = None
) -> tuple[Any, Any]:
    """As the form for any target."""
    width = resolve_warp_width(width, "warp_scan width")
    return _scanned(value, op, width, init, valid_items)[:2]


def warp_scan_with_aggregate(
    value: Any, op: Any, *, width: int | None = None, init: Any = None, valid_items: Any = None
) -> tuple[Any, Any, Any]:
    """As the form for any target."""
    width = resolve_warp_width(width, "warp_scan_with_aggregate width")
    return _scanned(value, op, width, init, valid_items)
