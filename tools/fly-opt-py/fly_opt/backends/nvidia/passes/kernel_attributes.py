"""fly-nvvm-kernel-attributes: function attributes that code generation needs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from fly_common.record import record
from fly_target.nvidia.triple import PTX_FEATURE
from fly_target.target import Target

from fly_opt.passes.base import Pass, refuse
from fly_opt.passes.target.set_target import target_of

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

CLUSTER_DIMS = "fly.cluster_dims"
MOST_BLOCKS = 8  # of a cluster on every GPU that has any (CUDA C++ Programming Guide)
_KNOWN = "gpu.known_block_size"
_BLOCK = ("nvvm.reqntid", "nvvm.maxntid")


@record
class KernelAttributes(Pass):
    """Sets the target's attributes on functions.

    - `target-cpu` and the PTX version on every function with a body: LLVM inlines only between
      equal targets, and fly-llc reads both.
    - `nvvm.reqntid` on kernels with a static block. Others get `nvvm.maxntid`, the most threads
      that a launch may ask for: it bounds the registers of a thread, without which a launch of
      many threads could fail.
    - `nvvm.cluster_dim`: `fly.cluster_dims` of a kernel; PTX's `.reqnctapercluster`.
    - Parameters that are tensor maps are passed by value.
    - Denormals are preserved, as in NumPy: LLVM's default, stated explicitly.
    """

    name: ClassVar[str] = "fly-nvvm-kernel-attributes"

    def run(self, op: ir.Operation) -> None:
        target = target_of(op)
        if target is None:
            raise refuse(op, "the module has no target", "run fly-set-target{chip=…} first")
        for module in op.regions[0].blocks[0]:
            if module.operation.name == "gpu.module":
                for child in module.operation.regions[0].blocks[0]:
                    _mark(child.operation, target)


def _cluster(function: ir.Operation, target: Target) -> None:
    """The size of a kernel's clusters, which its launches then have without being told."""
    from fly_dialect.bindings import ir

    sizes = [int(one) for one in ir.StringAttr(function.attributes[CLUSTER_DIMS]).value.split(",")]
    del function.attributes[CLUSTER_DIMS]
    if "sm_90+" not in target.traits:
        raise refuse(
            function,
            f"{target.name} has no clusters of blocks",
            "launch the kernel without cluster=, or compile it for sm_90a",
        )
    if math.prod(sizes) > MOST_BLOCKS:
        raise refuse(
            function,
            f"a cluster of {'×'.join(map(str, sizes))} blocks: {target.name} has at most"
            f" {MOST_BLOCKS} in one",
            "launch the kernel with a smaller cluster=",
        )
    function.attributes["nvvm.cluster_dim"] = ir.DenseI32ArrayAttr.get(sizes)


def _mark(function: ir.Operation, target: Target) -> None:
    from fly_dialect.bindings import ir

    from fly_opt.backends.nvidia import tensor_maps

    if function.name != "llvm.func" or not len(function.regions[0].blocks):
        return
    attributes = function.attributes
    if CLUSTER_DIMS in attributes:
        _cluster(function, target)
    if "nvvm.kernel" in attributes:
        if _KNOWN in attributes:  # convert-gpu-to-nvvm makes it a bound only
            attributes["nvvm.reqntid"] = attributes[_KNOWN]
            if "nvvm.maxntid" in attributes:
                del attributes["nvvm.maxntid"]
        elif not any(name in attributes for name in _BLOCK):
            attributes["nvvm.maxntid"] = ir.DenseI32ArrayAttr.get([target.max_workgroup, 1, 1])
        tensor_maps.pass_by_value(function)
    words = {
        "target-cpu": target.cpu,
        "target-features": PTX_FEATURE,
        "denormal-fp-math": "ieee,ieee",
    }
    pairs = [
        ir.ArrayAttr.get([ir.StringAttr.get(key), ir.StringAttr.get(value)])
        for key, value in words.items()
    ]
    kept = list(attributes["passthrough"]) if "passthrough" in attributes else []
    attributes["passthrough"] = ir.ArrayAttr.get([*kept, *pairs])
