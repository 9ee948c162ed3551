"""Compiles OpenCL C or assembly to an HSACO and runs it on the emulator, for tests of the
engine."""

from __future__ import annotations

import functools
import subprocess
from typing import Any

import launching_on_device
import numpy as np
from fly_common.programs import toolchain
from fly_image.amd.code_object import CodeObject

GFX9 = ("gfx90a", "gfx942", "gfx950")
TARGETS = (*GFX9, "gfx1100", "gfx1201")
LEVELS = ("-O0", "-O3")
# Code objects cached per process: more than all tests make, so that the mutation run, which repeats
# them in forked children, compiles each once.
CACHED = 2048

# OpenCL's own functions are in a library of ROCm; the tests only need these builtins.
PRELUDE = """
#define TID ((int)__builtin_amdgcn_workitem_id_x())
#define GROUP ((int)__builtin_amdgcn_workgroup_id_x())
#define SIZE ((int)__builtin_amdgcn_workgroup_size_x())
#define INDEX (GROUP * SIZE + TID)
#define BARRIER __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); __builtin_amdgcn_s_barrier()
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
"""


@functools.lru_cache(maxsize=CACHED)
def compile_opencl(source: str, target: str, level: str, *more: str) -> CodeObject:
    clang = toolchain.find_program("clang")
    options = ["-x", "cl", "-cl-std=CL2.0", "-target", "amdgcn-amd-amdhsa", "-nogpulib"]
    options += [
        f"-mcpu={target}",
        level,
        *more,
        "-cl-kernel-arg-info",
        "-ffp-contract=off",
        "-cl-fp32-correctly-rounded-divide-sqrt",
        "-o",
        "-",
        "-",
    ]
    done = subprocess.run(
        [str(clang), *options], input=(PRELUDE + source).encode(), capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
    return CodeObject.parse(done.stdout)


@functools.lru_cache(maxsize=CACHED)
def assemble(source: str, target: str) -> CodeObject:
    """Builds an HSACO from assembly text with its own descriptor and metadata."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        made, linked = Path(folder, "k.o"), Path(folder, "k.hsaco")
        mc = toolchain.run_program(
            "llvm-mc",
            ["-triple=amdgcn-amd-amdhsa", f"-mcpu={target}", "-filetype=obj", "-o", str(made)],
            source.encode(),
        )
        assert mc.returncode == 0, mc.stderr.decode()
        lld = toolchain.run_program("ld.lld", ["-shared", str(made), "-o", str(linked)], None)
        assert lld.returncode == 0, lld.stderr.decode()
        return CodeObject.parse(linked.read_bytes())


def launch(
    code: CodeObject,
    arguments: list[Any],
    grid: int | tuple[int, int, int] = 1,
    block: int | tuple[int, int, int] = 64,
    *,
    kernel: str | None = None,
    lds: int = 0,
    device: Any = None,
    read_only: tuple[str, ...] = (),
    cluster: tuple[int, int, int] | None = None,
    **options: Any,
) -> Any:
    """Runs a kernel; arrays are bound in place, NumPy scalars are passed by value. Returns the
    device."""
    from fly_run.devices.options import Options
    from fly_run.emulator.machine import Emulator

    found = code.kernel(kernel)
    device = device or Emulator(code.target, Options(**options))
    kernarg = bytearray(found.kernarg_size)
    shape = grid if isinstance(grid, tuple) else (grid, 1, 1)
    items = block if isinstance(block, tuple) else (block, 1, 1)
    with launching_on_device.Buffers(device) as buffers:
        for number, (argument, value) in enumerate(zip(found.arguments, arguments, strict=True)):
            name = argument.name or f"argument {number}"
            if isinstance(value, np.ndarray):
                data = buffers.add(name, value, name not in read_only).to_bytes(8, "little")
            else:
                data = value.tobytes()
            assert len(data) == argument.size
            kernarg[argument.offset : argument.offset + len(data)] = data
        more = {"cluster": cluster} if cluster else {}
        packed = bytes(kernarg)
        launching_on_device.launch(device, code, found.name, shape, items, packed, lds, **more)
    return device
