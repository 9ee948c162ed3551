"""`fly-layout-lowering`: lowers the layout algebra to integer arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from fly_common.record import record

from fly_opt.passes.base import Pass
from fly_opt.passes.layout import expansion, memory, tiles, vectors
from fly_opt.passes.layout.lowering import Lowering

if TYPE_CHECKING:
    from fly_dialect.bindings import ir


@record
class LayoutLowering(Pass):
    """Lowers layouts, tuples, views and element accesses to arith on i32 and i64.

    Ops that build, decompose or combine tuples and layouts disappear; get_scalar becomes the
    integer itself; memref.load and memref.store become add_offset with ptr.load or ptr.store;
    load_vec and store_vec become such accesses of vectors; memref.alloca and fragments become
    make_ptr. A partition becomes the thread's part of the view; copy and gemm become calls of their
    atom. A tuple, layout or view that an op of another dialect or a call uses stays, in normal
    form: one make_int_tuple, make_layout, make_composed_layout or make_view. Static offsets are
    added after dynamic ones, so that many accesses share one pointer and differ in constants.
    """

    name: ClassVar[str] = "fly-layout-lowering"

    def run(self, op: ir.Operation) -> None:
        tables = memory.TABLE | vectors.TABLE | tiles.TABLE | expansion.TABLE
        Lowering(tables).run(op)
