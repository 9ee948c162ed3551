"""The `fly_opt.lowering.interface.Lowering` of the backend `rocm`, for AMD's GPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from fly_host.section import SECTION
from fly_target.amd.triple import CODE_OBJECT_VERSION
from fly_target.target import Target

from fly_opt.backends.amd import (
    device_libraries,
    intrinsics,
    older_llvm,
    older_text,
    workgroup,
)
from fly_opt.backends.amd.pipeline import rocm
from fly_opt.lowering.interface import Function, Pipeline, PointerSpaces

if TYPE_CHECKING:
    from fly_dialect.bindings import ir
    from fly_dialect.types import Spec
    from fly_host.program import Word

    from fly_opt.passes.host.values import Values
    from fly_opt.passes.instrumentation.accesses import Access
    from fly_opt.passes.llvm.conversion import Conversion
    from fly_opt.pipeline.text import Nest


class RocmLowering:
    pipelines: Mapping[str, Pipeline] = {"rocm": rocm}
    passes: Mapping[str, str] = {
        "convert-fly-to-rocdl": "fly_opt.backends.amd.passes.fly_to_rocdl",
        "fly-rocdl-cluster-attr": "fly_opt.backends.amd.passes.cluster_attribute",
        "fly-rocdl-lane-moves": "fly_opt.backends.amd.passes.lane_moves",
        "fly-lower-launch-sizes": "fly_opt.backends.amd.passes.launch_sizes",
        "fly-kernel-attributes": "fly_opt.backends.amd.passes.kernel_attributes",
    }
    upstream_passes: Mapping[str, str] = {
        "convert-amdgpu-to-rocdl": "lowers amdgpu operations to rocdl intrinsics",
        "convert-arith-to-amdgpu": "lowers arith conversions of small floats to amdgpu",
        "convert-gpu-to-rocdl": "lowers a gpu.module to rocdl and the LLVM dialect",
        "convert-math-to-rocdl": "lowers math to calls of AMD's device library",
        "rocdl-attach-target": "attaches an AMD target to gpu.modules",
    }
    emitters = tuple(
        f"fly_opt.backends.amd.atoms.{name}" for name in ("buffer", "lds", "mfma", "wmma", "tdm")
    )
    translated = ("rocdl.",)
    intrinsics = intrinsics.ALL
    function_attributes: Mapping[str, str] = workgroup.FUNCTION_ATTRIBUTES

    def with_own_end(self, pipeline: Nest, target: Target) -> Nest:
        from fly_opt.backends.amd import flydsl_pipeline

        return flydsl_pipeline.with_own_end(pipeline, target)

    def spaces(self) -> PointerSpaces:
        from fly_opt.backends.amd import buffers

        return buffers

    def lowered_type(self, spec: Spec) -> ir.Type | None:
        return None

    def conversions(self) -> Mapping[str, Callable[[Conversion, ir.Operation], ir.Value | None]]:
        from fly_opt.backends.amd import buffers

        return {"fly_rocdl.get_buffer_rsrc": buffers.get_descriptor}

    def host_values(self) -> Mapping[str, Callable[[Values, ir.Operation], Word]]:
        return {}

    def convert_float(self, op: ir.Operation, target: Target | None) -> bool:
        from fly_opt.passes.math import narrow_floats

        if not narrow_floats.is_conversion(op):
            return False
        from fly_opt.backends.amd.passes.narrow_floats import FORMATS

        narrow_floats.convert(op, target, FORMATS)
        return True

    block_scope = "workgroup"

    def accesses(self, op: ir.Operation) -> list[Access]:
        from fly_opt.backends.amd import accesses

        return accesses.accesses(op)

    def function(self, op: ir.Operation) -> Function | None:
        """The hardware's approximations of f32, which also flush subnormals to 0."""
        name = intrinsics.APPROXIMATIONS.get(op.name)
        if name is None:
            return None
        from fly_opt.ir.intrinsics import call
        from fly_opt.passes.math import approximation

        if approximation.element(op) != "f32" or not approximation.is_allowed(op):
            return None
        return lambda value: call(name, value.type, [value])

    def exponential(self, value: ir.Value) -> ir.Value:
        """LLVM's intrinsic, which AMDGPU's code generation expands."""
        from fly_opt.ir.intrinsics import call

        return call("llvm.exp.f32", value.type, [value])

    def significand(self, value: ir.Value) -> ir.Value:
        """V_FREXP_MANT_F64."""
        from fly_opt.ir.intrinsics import call

        return call(intrinsics.SIGNIFICAND, value.type, [value])

    def exponent(self, value: ir.Value) -> ir.Value:
        """V_FREXP_EXP_I32_F64."""
        from fly_dialect.bindings import ir

        from fly_opt.ir.intrinsics import call

        return call(intrinsics.EXPONENT, ir.IntegerType.get_signless(32), [value])

    def lacks(self, name: str) -> bool:
        return name in older_llvm.MISSING

    def replaces(self, name: str) -> bool:
        return name in older_llvm.REPLACED

    def replace(self, op: ir.Operation) -> None:
        older_llvm.replace(op)

    def wrong_function(self, function: ir.Operation) -> str | None:
        return workgroup.wrong_workgroup(function)

    def bridge(self, text: str) -> str:
        return older_text.bridge(text)

    def host_program(self, text: str) -> tuple[str, ...]:
        """Puts the program into its section, and restores the current section."""
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        return (f'.pushsection {SECTION},"",@progbits', f'.ascii "{escaped}"', ".popsection")

    def module_flags(self) -> tuple[str, ...]:
        version = f"{CODE_OBJECT_VERSION} : i32"
        return (f'#llvm.mlir.module_flag<error, "amdhsa_code_object_version", {version}>',)

    def needed_functions(self, text: str) -> tuple[str, ...]:
        return device_libraries.needed(text)

    def link(self, text: str, functions: tuple[str, ...], target: Target) -> str:
        return device_libraries.link(text, functions, target)

    def identity(self) -> str:
        return device_libraries.identity()


ROCM = RocmLowering()
