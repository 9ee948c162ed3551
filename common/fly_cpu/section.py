"""The LLVM IR in an image: the section `.fly.llvm`, for NVPTX, that fly-llc was given."""

from __future__ import annotations

from fly_common.errors import InputError
from fly_common.programs import toolchain
from fly_image.image import Image
from fly_image.nvidia.cubin import Cubin
from fly_image.nvidia.ptx_image import PtxImage

SECTION = ".fly.llvm"


def bitcode(image: Image) -> bytes:
    """Returns the section of an image. InputError for an image without it."""
    if not isinstance(image, Cubin | PtxImage):
        raise InputError(
            f"the device cpu runs code for NVIDIA's targets (sm_…), and this is for {image.target}",
            hint="the emulator runs code for AMD's: --device emulator",
        )
    found = image.sections.get(SECTION)
    if not found:
        raise InputError(
            f"the {'PTX' if isinstance(image, PtxImage) else 'cubin'} has no section {SECTION},"
            " whose LLVM IR the device cpu compiles for the host",
            hint="fly-llc adds it; code of other compilers needs a GPU: --device cuda",
        )
    return found


def text(bitcode: bytes) -> str:
    """Returns the module as text, in which values have names. InputError for a damaged one."""
    done = toolchain.run_program("opt", ["-S", "-passes=instnamer", "-o", "-", "-"], bitcode)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        why = said[0].partition("error: ")[2] or said[0] if said else "no message"
        raise InputError(f"the section {SECTION} is not valid LLVM IR: {why}")
    return done.stdout.decode()
