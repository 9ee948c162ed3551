"""fly-kernel-attributes: function attributes that code generation needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from fly_common.record import record
from fly_target.target import Target

from fly_opt.passes.base import Pass, refuse
from fly_opt.passes.target.set_target import target_of

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

CLUSTER_DIMS, CLUSTER = "fly.cluster_dims", "amdgpu-cluster-dims"


@record
class KernelAttributes(Pass):
    """Sets the target's attributes on functions, and memory attributes on atomics.

    - `target-cpu` on every function with a body: LLVM inlines only between equal targets.
    - `amdgpu-flat-work-group-size` on kernels: the block if it is static, otherwise the range that
      the hardware supports. It bounds the registers a wave may use.
    - `amdgpu-num-vgpr`: the vector registers, on a target of which LLVM can't use all.
    - What `fly.passthrough` says of a kernel; it replaces those that are named here.
    - `amdgpu-cluster-dims`: `fly.cluster_dims` of a kernel, refused for a target without clusters.
    - `uniform-work-group-size`: grids consist of whole blocks.
    - `denormal-fp-math`: denormals are preserved, as in NumPy. This is LLVM's default, but a front
      end may choose another.
    - Atomics on global memory: no fine-grained and no remote memory. The buffers bound by this
      chain are ordinary device allocations, so `atomicrmw fadd` of f32 on gfx942 is one instruction
      instead of a compare-and-swap loop. On gfx90a that instruction flushes denormals; LLVM keeps
      the loop there, and so do we, because flushing would change results.
    """

    name: ClassVar[str] = "fly-kernel-attributes"

    def run(self, op: ir.Operation) -> None:
        target = target_of(op)
        if target is None:
            raise refuse(op, "the module has no target", "run fly-set-target{chip=…} first")
        for module in op.regions[0].blocks[0]:
            if module.operation.name == "gpu.module":
                _mark(module.operation, target)


def _mark(module: ir.Operation, target: Target) -> None:
    from fly_dialect.bindings import ir

    unit = ir.UnitAttr.get()

    def promise(op: ir.Operation) -> ir.WalkResult:
        if op.name == "llvm.atomicrmw" and _is_global(op.operands[0].type):
            op.attributes["rocdl.no_fine_grained_memory"] = unit
            op.attributes["rocdl.no_remote_memory"] = unit
        return ir.WalkResult.ADVANCE

    for child in module.regions[0].blocks[0]:
        function = child.operation
        if function.name != "llvm.func" or not len(function.regions[0].blocks):
            continue
        words = {"target-cpu": target.cpu, "denormal-fp-math": "ieee,ieee"}
        if "rocdl.kernel" in function.attributes:
            if "rocdl.flat_work_group_size" not in function.attributes:
                size = ir.StringAttr.get(f"1,{target.max_workgroup}")
                function.attributes["rocdl.flat_work_group_size"] = size
            words["uniform-work-group-size"] = "true"
        assert target.amd is not None
        if target.amd.generated_vgprs is not None:
            words["amdgpu-num-vgpr"] = str(target.amd.generated_vgprs)
        kept = [*passed(function), *_cluster(function)]
        stated = {ir.ArrayAttr(one)[0].value for one in kept if isinstance(one, ir.ArrayAttr)}
        if CLUSTER in stated and not target.amd.clusters:
            raise refuse(
                function,
                f"{target.name} has no clusters of workgroups",
                "launch the kernel without cluster=, or compile it for gfx1250",
            )
        pairs = [
            ir.ArrayAttr.get([ir.StringAttr.get(key), ir.StringAttr.get(value)])
            for key, value in words.items()
            if key not in stated
        ]
        function.attributes["passthrough"] = ir.ArrayAttr.get([*kept, *pairs])
        function.walk(promise)


def _cluster(function: ir.Operation) -> list[ir.Attribute]:
    """LLVM's attribute for the `fly.cluster_dims` of a kernel, which is removed."""
    from fly_dialect.bindings import ir

    if CLUSTER_DIMS not in function.attributes:
        return []
    dims = function.attributes[CLUSTER_DIMS]
    del function.attributes[CLUSTER_DIMS]
    return [ir.ArrayAttr.get([ir.StringAttr.get(CLUSTER), dims])]


def passed(function: ir.Operation) -> list[ir.Attribute]:
    """The attributes for LLVM that a function has: in `passthrough`, and for kernels, whose
    conversion drops that, in `fly.passthrough`, which is removed."""
    found: list[ir.Attribute] = []
    for name in ("passthrough", "fly.passthrough"):
        if name in function.attributes:
            found += list(function.attributes[name])
    if "fly.passthrough" in function.attributes:
        del function.attributes["fly.passthrough"]
    return found


def _is_global(kind: ir.Type) -> bool:
    return str(kind) == "!llvm.ptr<1>"
