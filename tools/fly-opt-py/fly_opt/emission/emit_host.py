"""The host program of a module as text: the elements `fly-emit-host` and `fly-emit-host-llvm` of a
pipeline."""

from __future__ import annotations

from typing import Any

from fly_common.errors import InputError
from fly_host import text
from fly_host.listing import listing
from fly_host.program import Launch, Program, Scalar, Word
from fly_numerics.element_types import ELEMENT_TYPES

MOST_SHARED = 1 << 16  # bytes of dynamic shared memory, where the kernel's own are not known


def emit(module: Any) -> str:
    """The listing, for people. InputError where the module has no host program."""
    return listing(_program(module))


def emit_llvm(module: Any) -> str:
    """The LLVM IR of a launcher for NumPy arrays, before it is optimised. The kernels' interfaces
    are not known yet: here their arguments stand at multiples of 8 bytes."""
    from fly_host.native.calling import llvm_text
    from fly_host.native.specialisation import KernelLimits, Unavailable
    from fly_target import registry

    program = _program(module)
    most = registry.find(program.target).max_workgroup
    limits = []
    for launch in program.launches:
        places, end = _places(program, launch)
        limits.append(KernelLimits(end, tuple(places), most, MOST_SHARED))
    try:
        return llvm_text(program, limits)
    except Unavailable as error:
        raise InputError(f"there is no native code for {program.entry}: {error}") from None


def _program(module: Any) -> Program:
    attributes = module.operation.attributes
    if "fly.host_program" not in attributes:
        raise InputError(
            "the module has no host program",
            hint="--target X extracts that of its host function",
        )
    return text.read(attributes["fly.host_program"].value)


def _places(program: Program, launch: Launch) -> tuple[list[tuple[int, int]], int]:
    """(offset, size) of each argument of a kernel, and the size of all."""
    places: list[tuple[int, int]] = []
    end = 0
    for words in launch.arguments:
        size = sum(_size(program, word) for word in words)
        places.append((end, size))
        end += -(-size // 8) * 8
    return places, end


def _size(program: Program, word: Word) -> int:
    if word.kind != "scalar":
        return 8 if word.kind == "pointer" else word.size
    parameter = program.parameter(str(word.name))
    assert isinstance(parameter, Scalar)
    return ELEMENT_TYPES[parameter.dtype].bytes
