"""The `fly_opt.lowering.interface.Lowering` of the backend `cuda`, for NVIDIA's GPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from fly_common.errors import UsageError
from fly_host.section import SECTION
from fly_target.target import Target

from fly_opt.backends.nvidia import device_libraries, intrinsics
from fly_opt.backends.nvidia.pipeline import cuda
from fly_opt.lowering.interface import Function, Pipeline, PointerSpaces

if TYPE_CHECKING:
    from fly_dialect.bindings import ir
    from fly_dialect.types import Spec
    from fly_host.program import Word

    from fly_opt.passes.host.values import Values
    from fly_opt.passes.instrumentation.accesses import Access
    from fly_opt.passes.llvm.conversion import Conversion
    from fly_opt.pipeline.text import Nest

_PASSES = "fly_opt.backends.nvidia.passes"


# Functions of integers, which convert-math-to-nvvm leaves, and whether LLVM's intrinsic has the
# operand "zero is poison".
INTEGERS = {"math.ctpop": False, "math.ctlz": True, "math.cttz": True}


class CudaLowering:
    pipelines: Mapping[str, Pipeline] = {"cuda": cuda}
    passes: Mapping[str, str] = {
        "convert-fly-to-nvvm": f"{_PASSES}.fly_to_nvvm",
        "fly-check-dialects": f"{_PASSES}.check_dialects",
        "fly-dynamic-shared": f"{_PASSES}.dynamic_shared",
        "fly-flatten-arguments": f"{_PASSES}.flatten_arguments",
        "fly-lower-subgroups": f"{_PASSES}.subgroups",
        "fly-nvvm-atomics": f"{_PASSES}.atomics",
        "fly-nvvm-kernel-attributes": f"{_PASSES}.kernel_attributes",
    }
    upstream_passes: Mapping[str, str] = {
        "convert-gpu-to-nvvm": "lowers a gpu.module to nvvm and the LLVM dialect",
        "convert-math-to-nvvm": "lowers math to calls of NVIDIA's libdevice",
        "convert-nvgpu-to-nvvm": "lowers nvgpu operations to nvvm",
        "convert-nvvm-to-llvm": "lowers nvvm operations without an intrinsic to inline assembly",
    }
    emitters = tuple(f"fly_opt.backends.nvidia.atoms.{name}" for name in ("wgmma", "mma", "copies"))
    translated = ("nvvm.",)
    intrinsics = intrinsics.ALL
    function_attributes: Mapping[str, str] = {
        "nvvm.kernel": "UnitAttr",
        "nvvm.reqntid": "DenseI32ArrayAttr",
        "nvvm.maxntid": "DenseI32ArrayAttr",
        "nvvm.cluster_dim": "DenseI32ArrayAttr",
    }

    def with_own_end(self, pipeline: Nest, target: Target) -> Nest:
        raise UsageError(
            f"for {target.name} no pipeline of MLIR's can end in gpu-module-to-binary",
            hint=f"--target {target.name} runs the target's own",
        )

    def spaces(self) -> PointerSpaces | None:
        return None

    def lowered_type(self, spec: Spec) -> ir.Type | None:
        from fly_opt.backends.nvidia import tensor_maps

        return tensor_maps.lowered_type(spec)

    def conversions(self) -> Mapping[str, Callable[[Conversion, ir.Operation], ir.Value | None]]:
        from fly_opt.backends.nvidia import tensor_maps, warpgroup

        return {
            "fly_nvvm.tma_load": tensor_maps.load,
            "fly_nvvm.tma_multicast": tensor_maps.load_multicast,
            "fly_nvvm.tma_store": tensor_maps.store,
            "fly_nvvm.wgmma_wait": warpgroup.wait,
        }

    def host_values(self) -> Mapping[str, Callable[[Values, ir.Operation], Word]]:
        from fly_opt.backends.nvidia import tensor_maps

        return {"fly_nvvm.make_tensor_map": tensor_maps.descriptor}

    def convert_float(self, op: ir.Operation, target: Target | None) -> bool:
        from fly_opt.passes.math import narrow_floats

        if not narrow_floats.is_conversion(op):
            return False
        from fly_opt.backends.nvidia.narrow_floats import FORMATS

        narrow_floats.convert(op, target, FORMATS)
        return True

    block_scope = "block"

    def accesses(self, op: ir.Operation) -> list[Access]:
        return []

    def function(self, op: ir.Operation) -> Function | None:
        from fly_opt.backends.nvidia import formulas
        from fly_opt.passes.math import approximation
        from fly_opt.passes.math.number import Number

        if op.name in INTEGERS:
            return lambda value: _integer_function(op.name, value)
        if approximation.element(op) != "f32":
            return None
        approximate = approximation.is_allowed(op) and op.name in formulas.APPROXIMATIONS
        found = (formulas.APPROXIMATIONS if approximate else formulas.FUNCTIONS).get(op.name)
        return None if found is None else lambda value: found(Number(value)).value

    def exponential(self, value: ir.Value) -> ir.Value:
        from fly_opt.backends.nvidia import formulas
        from fly_opt.passes.math.number import Number

        return formulas.exp(Number(value)).value

    def significand(self, value: ir.Value) -> ir.Value:
        from fly_opt.backends.nvidia import float_parts

        return float_parts.significand(value)

    def exponent(self, value: ir.Value) -> ir.Value:
        from fly_opt.backends.nvidia import float_parts

        return float_parts.exponent(value)

    def lacks(self, name: str) -> bool:
        return False

    def replaces(self, name: str) -> bool:
        return False

    def replace(self, op: ir.Operation) -> None:
        raise NotImplementedError(op.name)

    def wrong_function(self, function: ir.Operation) -> str | None:
        return None

    def bridge(self, text: str) -> str:
        return text

    def host_program(self, text: str) -> tuple[str, ...]:
        """A block of comments, which llc copies to the PTX."""
        return (f"//.fly.section {SECTION} text", f"//.fly| {text}", "//.fly.end")

    def module_flags(self) -> tuple[str, ...]:
        return ()

    def needed_functions(self, text: str) -> tuple[str, ...]:
        return device_libraries.needed(text)

    def link(self, text: str, functions: tuple[str, ...], target: Target) -> str:
        return device_libraries.link(text, functions, target)

    def identity(self) -> str:
        return device_libraries.identity()


def _integer_function(name: str, value: ir.Value) -> ir.Value:
    from fly_dialect.bindings import ir

    from fly_opt.ir.intrinsics import call

    operands = [value]
    if INTEGERS[name]:
        no = ir.IntegerAttr.get(ir.IntegerType.get_signless(1), 0)
        operands.append(
            ir.Operation.create("llvm.mlir.constant", [no.type], [], {"value": no}).result
        )
    return call(f"llvm.{name.partition('.')[2]}.{value.type}", value.type, operands)


CUDA = CudaLowering()
