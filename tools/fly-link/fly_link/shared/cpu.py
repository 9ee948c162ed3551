"""The kernels of a library for the host's processor, and what its runtime knows of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fly_common.errors import InputError
from fly_common.quoting import quoted
from fly_cpu import building, section
from fly_image.nvidia.cubin import Cubin
from fly_image.nvidia.ptx_image import PtxImage

from fly_link.shared.inputs import Held

TRIPLE = "x86_64-unknown-linux-gnu"
IS_DYNAMIC, IS_CONSTANT = 1, 2  # runtime/cpu.h


@dataclass(frozen=True)
class Kernels:
    """`held` is the input whose LLVM IR it is; `kernels` its kernels in the object's order."""

    held: Held
    object: bytes
    kernels: list[str]
    variables: list[tuple[str, int]]
    sites: list[tuple[str, tuple[str, int, int] | None]]


def compile(inputs: Sequence[Held]) -> Kernels:
    """Compiles the kernels of the first input that has their LLVM IR. InputError if none has, or if
    they can't run on a processor."""
    held = next((one for one in inputs if isinstance(one.image, Cubin | PtxImage)), None)
    if held is None:
        names = ", ".join(f"{one.name} ({one.image.target})" for one in inputs)
        raise InputError(
            f"--cpu needs code for one of NVIDIA's targets, whose LLVM IR it compiles: {names}",
            hint="add an input that was compiled with fly-opt-py --target sm_90a",
        )
    for name, kernel in held.image.kernels.items():
        if kernel.cluster is not None and kernel.cluster != (1, 1, 1):
            raise InputError(
                f"kernel {quoted(name)} runs in clusters of blocks, which a library does not have"
                " on a processor",
                hint="leave --cpu out, or launch the kernel without cluster=",
            )
    module = building.module(section.bitcode(held.image), building.offsets(held.image))
    notes = building.notes(module)
    variables = [
        (
            f"shared memory {name}" if kind in ("shared", "dynamic") else f"variable {name}",
            (IS_DYNAMIC if kind == "dynamic" else 0) | (IS_CONSTANT if kind == "constant" else 0),
        )
        for name, kind in notes["variables"]
    ]
    sites = [(what, tuple(place[0]) if place else None) for what, _, place in notes["sites"]]
    return Kernels(held, building.object_code(module), notes["kernels"], variables, sites)
