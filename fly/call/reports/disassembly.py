"""Images as assembly: by LLVM's or NVIDIA's disassembler."""

from __future__ import annotations

from fly_common import artifact
from fly_common.errors import InputError, MissingError
from fly_common.programs import cuda_toolkit, process, toolchain

_SUFFIXES = {artifact.HSACO: "hsaco", artifact.CUBIN: "cubin", artifact.PTX: "ptx"}


def suffix(data: bytes) -> str:
    """Returns the suffix of an image's file; "hsaco" for a damaged one."""
    return _SUFFIXES.get(artifact.identify(data), "hsaco")


def text(data: bytes) -> str:
    """Returns the disassembly of an image. PTX is text already. Raises MissingError if there is no
    disassembler."""
    kind = suffix(data)
    if kind == "ptx":
        return data.decode(errors="replace")
    if kind == "cubin":
        name, done = "nvdisasm", _nvdisasm(data)
    else:
        name, done = "llvm-objdump", toolchain.run_program("llvm-objdump", ["-d", "-"], data)
    if done.returncode:
        raise InputError(f"{name}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode(errors="replace")


def _nvdisasm(data: bytes) -> process.Done:
    program = cuda_toolkit.find_program("nvdisasm")
    try:
        return process.run(program, ["--print-code", "/dev/stdin"], data)
    except OSError as error:
        raise MissingError(f"{program} can't be run: {error.strerror}") from None
