"""template-kernel-attributes: a pass in place of `fly-kernel-attributes`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fly_dialect.bindings import ir
from fly_opt.backends.amd.passes.kernel_attributes import KernelAttributes


@dataclass(frozen=True)
class TemplateKernelAttributes(KernelAttributes):
    """Sets the target's attributes, and `amdgpu-waves-per-eu` on kernels.

    `waves` is the greatest number of waves that LLVM plans for on a SIMD: fewer waves have more
    registers each.
    """

    name: ClassVar[str] = "template-kernel-attributes"

    waves: int = 8

    def run(self, op: ir.Operation) -> None:
        super().run(op)
        pair = ir.ArrayAttr.get(
            [ir.StringAttr.get("amdgpu-waves-per-eu"), ir.StringAttr.get(f"1,{self.waves}")]
        )
        for module in op.regions[0].blocks[0]:
            if module.operation.name != "gpu.module":
                continue
            for function in module.regions[0].blocks[0]:
                if "rocdl.kernel" in function.attributes:
                    kept = function.attributes["passthrough"]
                    function.attributes["passthrough"] = ir.ArrayAttr.get([*kept, pair])
