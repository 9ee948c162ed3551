"""Compiles test kernels to HSACOs: OpenCL with clang, assembly with llvm-mc and ld.lld."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from pathlib import Path

from oracle.program.hsaco import llvm_program

KERNELS = Path(__file__).parents[2] / "kernels"
TARGETS = ("gfx90a", "gfx942", "gfx950")
RDNA = ("gfx1100", "gfx1201", "gfx1250")
# Those of them whose waves may have 64 lanes, and the directive of a kernel that has such waves.
EITHER = ("gfx1100", "gfx1201")
WIDE = ".amdhsa_wavefront_size32 0"


@functools.cache
def opencl(source: str, target: str, level: int) -> bytes:
    """`source`: a file's name in tests/kernels; `level`: clang's -O. Warnings are suppressed."""
    options = ["-x", "cl", "-cl-std=CL2.0", "-cl-fp32-correctly-rounded-divide-sqrt"]
    options += ["-target", "amdgcn-amd-amdhsa", f"-mcpu={target}"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.hsaco")
        arguments = [*options, "-nogpulib", "-w", f"-O{level}", str(KERNELS / source)]
        _run(["clang", *arguments, "-o", str(path)])
        return path.read_bytes()


@functools.lru_cache(maxsize=256)
def assemble(text: str, target: str) -> bytes:
    """Assembles text to an HSACO, for waves of 64 lanes if its kernels say so (WIDE)."""
    with tempfile.TemporaryDirectory() as folder:
        source, middle, path = (Path(folder, name) for name in ("k.s", "k.o", "k.hsaco"))
        source.write_text(text)
        triple = ["-triple=amdgcn-amd-amdhsa", f"-mcpu={target}"]
        if WIDE in text:
            triple.append("-mattr=+wavefrontsize64")
        _run(["llvm-mc", *triple, "-filetype=obj", str(source), "-o", str(middle)])
        _run(["ld.lld", "-shared", str(middle), "-o", str(path)])
        return path.read_bytes()


def _run(command: list[str]) -> None:
    done = subprocess.run([llvm_program(command[0]), *command[1:]], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr[:4000]}")
