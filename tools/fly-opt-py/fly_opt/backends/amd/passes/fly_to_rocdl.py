"""`convert-fly-to-rocdl`: converts the fly dialect to LLVM's and AMD's."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from fly_common.record import record

from fly_opt.passes.base import Pass
from fly_opt.passes.llvm import fly_to_llvm

if TYPE_CHECKING:
    from fly_dialect.bindings import ir


@record
class ConvertFlyToROCDL(Pass):
    """Turns fly pointers into LLVM pointers, fly memory ops into LLVM's, atoms into instructions.

    See `fly_opt.passes.llvm.fly_to_llvm`. A pointer through a buffer descriptor becomes a pair of
    the descriptor and an offset in elements.
    """

    name: ClassVar[str] = "convert-fly-to-rocdl"

    def run(self, op: ir.Operation) -> None:
        fly_to_llvm.convert(op)
