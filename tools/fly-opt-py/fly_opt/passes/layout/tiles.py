"""Lowers tiled copies and multiplications to each thread's part (see `fly_dialect.tiled`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fly_dialect import tiled
from fly_dialect.dialect import attributes_of, spec_of
from fly_dialect.inference.computation import View
from fly_dialect.inference.tiled import operand_id, tiled_copy_operand, tiled_mma_operand
from fly_dialect.layouts.layout import ComposedLayout, Layout

from fly_opt.passes.layout.lowering import Lower, Lowering
from fly_opt.passes.layout.memory import moved

if TYPE_CHECKING:
    from fly_dialect.bindings import ir


def _part(low: Lowering, view: View, offset: Any, layout: Layout) -> View:
    """Returns the part of a view that starts at `offset` of the layout that takes the coordinate. A
    composed layout keeps the offset; for a plain one the base is moved."""
    if isinstance(view.layout, ComposedLayout):
        return View(view.base, tiled.moved_composition(view.layout, offset, layout))
    return View(moved(low, view, offset).base, layout)


def _partition_copy(side: tiled.Side) -> Lower:
    def lower(low: Lowering, op: ir.Operation) -> bool:
        spec = tiled_copy_operand([spec_of(op.operands[0].type)])
        view, thread = low.view(op.operands[1]), low.meaning(op.operands[2])
        part = tiled.copy_partition(spec, side, view.layout.linear, thread)
        return low.keep(op, _part(low, view, *part))

    return lower


def _retile(low: Lowering, op: ir.Operation) -> bool:
    spec = tiled_copy_operand([spec_of(op.operands[0].type)])
    view = low.view(op.operands[1])
    return low.keep(op, View(view.base, tiled.copy_retile(spec, view.layout.linear)))


def _partition_mma(low: Lowering, op: ir.Operation) -> bool:
    spec = tiled_mma_operand([spec_of(op.operands[0].type)])
    view, thread = low.view(op.operands[1]), low.meaning(op.operands[2])
    operand = operand_id(attributes_of(op))
    part = tiled.mma_partition(spec, operand, view.layout.linear, thread)
    return low.keep(op, _part(low, view, *part))


def _partition_shape(low: Lowering, op: ir.Operation) -> bool:
    spec = tiled_mma_operand([spec_of(op.operands[0].type)])
    operand, shape = operand_id(attributes_of(op)), low.meaning(op.operands[1])
    return low.keep(op, tiled.mma_partition_shape(spec, operand, shape))


TABLE: dict[str, Lower] = {
    "tiled_copy.partition_src": _partition_copy("src"),
    "tiled_copy.partition_dst": _partition_copy("dst"),
    "tiled_copy.retile": _retile,
    "tiled_mma.partition": _partition_mma,
    "tiled_mma.partition_shape": _partition_shape,
}
