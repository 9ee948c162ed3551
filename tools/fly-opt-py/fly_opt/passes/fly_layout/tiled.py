"""Tiled copies and multiplications: a thread's part of a view, by `fly_dialect.tiled`."""

from __future__ import annotations

from typing import Any

from fly_dialect import algebra, tiled
from fly_dialect.computation import View
from fly_dialect.dialect import attributes_of, spec_of
from fly_dialect.infer_tiled import operand_id, tiled_copy_operand, tiled_mma_operand
from fly_dialect.layout import ComposedLayout, Layout

from fly_opt.passes.fly_layout.lowering import Lower, Lowering
from fly_opt.passes.fly_layout.memory import moved


def _part(low: Lowering, view: View, offset: Any, layout: Layout) -> View:
    """The part of a view that begins at `offset`. A composed layout keeps where it begins; of a
    plain one the base moves there."""
    if not isinstance(view.layout, ComposedLayout):
        return View(moved(low, view, offset).base, layout)
    whole = view.layout.with_linear(layout)
    return View(
        view.base, ComposedLayout(whole.inner, algebra.add(whole.offset, offset), whole.outer)
    )


def _copy_partition(side: tiled.Side) -> Lower:
    def lower(low: Lowering, op: Any) -> bool:
        copy, view, thread = op.operands
        source = low.view(view)
        spec, linear = tiled_copy_operand([spec_of(copy.type)]), source.layout.linear
        offset, layout = tiled.copy_partition(spec, side, linear, low.meaning(thread))
        return low.keep(op, _part(low, source, offset, layout))

    return lower


def _retile(low: Lowering, op: Any) -> bool:
    copy, fragment = op.operands
    view = low.view(fragment)
    layout = tiled.copy_retile(tiled_copy_operand([spec_of(copy.type)]), view.layout.linear)
    return low.keep(op, View(view.base, layout))


def _mma_partition(low: Lowering, op: Any) -> bool:
    mma, view, thread = op.operands
    source, operand = low.view(view), operand_id(attributes_of(op))
    spec, linear = tiled_mma_operand([spec_of(mma.type)]), source.layout.linear
    offset, layout = tiled.mma_partition(spec, operand, linear, low.meaning(thread))
    return low.keep(op, _part(low, source, offset, layout))


def _partition_shape(low: Lowering, op: Any) -> bool:
    mma, shape = op.operands
    spec, operand = tiled_mma_operand([spec_of(mma.type)]), operand_id(attributes_of(op))
    return low.keep(op, tiled.mma_partition_shape(spec, operand, low.meaning(shape)))


TABLE: dict[str, Lower] = {
    "tiled_copy.partition_src": _copy_partition("src"),
    "tiled_copy.partition_dst": _copy_partition("dst"),
    "tiled_copy.retile": _retile,
    "tiled_mma.partition": _mma_partition,
    "tiled_mma.partition_shape": _partition_shape,
}
