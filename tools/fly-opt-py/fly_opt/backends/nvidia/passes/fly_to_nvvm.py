"""`convert-fly-to-nvvm`: converts the fly dialect to LLVM's."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from fly_common.record import record

from fly_opt.backends.nvidia import tensor_maps
from fly_opt.ir.builder import operations
from fly_opt.passes.base import Pass
from fly_opt.passes.llvm import fly_to_llvm

if TYPE_CHECKING:
    from fly_dialect.bindings import ir


@record
class ConvertFlyToNVVM(Pass):
    """Turns fly pointers into LLVM pointers, fly memory ops into LLVM's, atoms into instructions.

    See `fly_opt.passes.llvm.fly_to_llvm`.
    """

    name: ClassVar[str] = "convert-fly-to-nvvm"

    def run(self, op: ir.Operation) -> None:
        for inner in operations(op):
            if inner.name == "gpu.func":
                tensor_maps.mark_parameters(inner)
        fly_to_llvm.convert(op)
