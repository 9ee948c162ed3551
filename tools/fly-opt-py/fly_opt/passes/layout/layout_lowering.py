"""`fly-layout-lowering`: lowers the layout algebra to integer arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fly_opt.passes.base import Pass
from fly_opt.passes.layout import expansion, memory, tiles, vectors
from fly_opt.passes.layout.lowering import Lowering

if TYPE_CHECKING:
    from fly_dialect.bindings import ir


@dataclass(frozen=True)
class LayoutLowering(Pass):
    """Lowers layouts, tuples, views and element accesses to arith on i32 and i64.

    Ops that build, take apart or combine tuples and layouts disappear; get_scalar gives the integer
    itself; memref.load and memref.store become add_offset and ptr.load, ptr.store, load_vec and
    store_vec such accesses of vectors; memref.alloca and fragments become make_ptr. A partition is
    the thread's part of the view; copy and gemm become the calls of their atom. A tuple, layout or
    view that an op of another dialect or a call uses stays, in normal form: one make_int_tuple,
    make_layout, make_composed_layout, make_view. An offset that is known when compiling is added
    after one that is not, so that many accesses share one pointer and differ in constants.
    """

    name: ClassVar[str] = "fly-layout-lowering"

    def run(self, op: ir.Operation) -> None:
        tables = memory.TABLE | vectors.TABLE | tiles.TABLE | expansion.TABLE
        Lowering(tables).run(op)
