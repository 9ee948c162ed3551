"""`fly-rocdl-cluster-attr`: passes the size of a workgroup cluster on to LLVM."""

from __future__ import annotations

from typing import ClassVar

from fly_common.record import record
from fly_dialect.bindings import ir

from fly_opt.ir.builder import operations
from fly_opt.passes.base import Pass

_SOURCE = "rocdl.cluster_dims"  # set on gpu.func and kept by convert-gpu-to-rocdl
_TARGET = "amdgpu-cluster-dims"  # LLVM's function attribute (AMDGPUUsage)


@record
class ClusterAttribute(Pass):
    """Turns `rocdl.cluster_dims = "x,y,z"` of an llvm.func into LLVM's amdgpu-cluster-dims.

    The translation to LLVM IR does not know this attribute, so it goes into `passthrough`, whose
    other attributes are kept. Runs after convert-gpu-to-rocdl.
    """

    name: ClassVar[str] = "fly-rocdl-cluster-attr"
    only_with: ClassVar[tuple[str, ...]] = ("cluster_dims",)
    anchor: ClassVar[str] = "gpu.module"

    def run(self, op: ir.Operation) -> bool:
        changed = False
        for inner in operations(op):
            if inner.name == "llvm.func" and _SOURCE in inner.attributes:
                _hand_on(inner)
                changed = True
        return changed


def _hand_on(function: ir.Operation) -> None:
    attributes = function.attributes
    pair = ir.ArrayAttr.get([ir.StringAttr.get(_TARGET), attributes[_SOURCE]])
    kept = list(attributes["passthrough"]) if "passthrough" in attributes else []
    attributes["passthrough"] = ir.ArrayAttr.get([*kept, pair])
    del attributes[_SOURCE]
