"""The peers of launch.py: what calls cost in FlyDSL and Triton, on a HIP library that does nothing.

Each size is measured by a process of its own, which runs peers/flydsl_launch.py or
peers/triton_launch.py on a function that is written here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PEERS = ("flydsl", "triton")

HIP = (
    *("DeviceSynchronize", "EventCreateWithFlags", "EventDestroy", "EventRecord"),
    *("EventSynchronize", "Free", "GetDevice", "GetErrorName", "GetLastError"),
    *("HostGetDevicePointer", "HostRegister", "HostUnregister", "Malloc", "Memcpy", "MemcpyAsync"),
    *("Memset", "MemsetD16Async", "MemsetD32Async", "ModuleGetFunction", "ModuleLaunchKernel"),
    *("ModuleLoadData", "ModuleOccupancyMaxActiveBlocksPerMultiprocessor", "ModuleUnload"),
    *("SetDevice", "StreamCreate", "StreamDestroy", "StreamSynchronize", "StreamWaitEvent"),
)
# What Triton's driver asks for: the version, and every other function by its name.
TRITON = """
define i32 @nothing() {
  ret i32 0
}
define i32 @hipDriverGetVersion(ptr %version) {
  store i32 70000000, ptr %version
  ret i32 0
}
define i32 @hipGetProcAddress(ptr %name, ptr %found, i32 %version, i64 %flags, ptr %status) {
  store ptr @nothing, ptr %found
  ret i32 0
}
"""


def measure(
    peer: str, python: str, folder: Path, size: tuple[int, int, bool], repeats: int
) -> dict[str, float]:
    """A peer's ns by way; {} where it is not there, or fails, which is told."""
    there = [python, "-c", f"import {peer}, torch"]
    if subprocess.run(there, capture_output=True, check=False).returncode:
        return {}
    tensors, integers, output = size
    tensors += output
    path = folder / f"{peer}_{tensors}_{integers}.py"
    path.write_text(SOURCES[peer](tensors, integers))
    command = [python, str(ROOT / f"benchmarks/peers/{peer}_launch.py"), str(path)]
    command += [str(tensors), str(integers), str(repeats), *["allocating"] * output]
    environment = {**os.environ, **ENVIRONMENTS[peer](folder)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{peer} {tensors}+{integers}: {done.stderr.strip()[-300:]}", file=sys.stderr)
        return {}
    return json.loads(done.stdout.splitlines()[-1])


def flydsl_source(tensors: int, integers: int) -> str:
    names = [f"T{n}" for n in range(tensors)]
    numbers = [f"i{n}" for n in range(integers)]
    given = ", ".join(
        [f"{name}: fx.Tensor" for name in names] + [f"{name}: fx.Int32" for name in numbers]
    )
    return (
        "import flydsl.compiler as fly\nimport flydsl.expr as fx\n\n"
        f"@fly.kernel\ndef kernel({given}):\n    if fx.thread_idx.x < i0:\n"
        "        fx.memref_store(fx.memref_load(T0, 0), T0, 0)\n\n"
        f"@fly.jit\ndef host({given}):\n"
        f"    kernel({', '.join([*names, *numbers])}).launch(grid=(1, 1, 1), block=(64, 1, 1))\n"
    )


def triton_source(tensors: int, integers: int) -> str:
    given = ", ".join([*(f"T{n}" for n in range(tensors)), *(f"i{n}" for n in range(integers))])
    return (
        "import triton\nimport triton.language as tl\n\n"
        f"@triton.jit\ndef kernel({given}):\n    if tl.program_id(0) < i0:\n"
        "        tl.store(T0, tl.load(T0))\n"
    )


SOURCES = {"flydsl": flydsl_source, "triton": triton_source}


def _library(path: Path, text: str, words: list[str]) -> None:
    """A shared library of LLVM IR."""
    from fly_common.programs import toolchain

    made = toolchain.run_program("llc", ["-filetype=obj", "-relocation-model=pic"], text.encode())
    stub = path.with_suffix(".o")
    stub.write_bytes(made.stdout)
    lld = toolchain.find_program("ld.lld")
    subprocess.run([lld, "-shared", *words, "-o", path, stub], check=True)


def flydsl_environment(folder: Path) -> dict[str, str]:
    from fly_common.programs import toolchain

    hip = folder / "hip"
    library = hip / "lib/libamdhip64.so.7"
    if not library.exists():
        (hip / "llvm/bin").mkdir(parents=True)
        (hip / "lib").mkdir()
        (hip / "llvm/bin/ld.lld").symlink_to(toolchain.find_program("ld.lld"))
        (hip / "versions").write_text("hip_4.2 { global: *; };\n")
        text = "\n".join(f"define i32 @hip{name}() {{\n  ret i32 0\n}}" for name in HIP)
        words = ["-soname=libamdhip64.so.7", f"--version-script={hip / 'versions'}"]
        _library(library, text, words)
    return {
        "ROCM_PATH": str(hip),
        "ARCH": "gfx942",
        "LD_PRELOAD": str(library),
        "LD_LIBRARY_PATH": str(hip / "lib"),
        "FLYDSL_RUNTIME_ENABLE_CACHE": "0",
    }


def triton_environment(folder: Path) -> dict[str, str]:
    library = folder / "libamdhip64.so"
    if not library.exists():
        _library(library, TRITON, [])
    return {
        "TRITON_LIBHIP_PATH": str(library),
        "TRITON_CACHE_DIR": str(folder / "triton"),
        "TRITON_DEFAULT_FP_FUSION": "1",
    }


ENVIRONMENTS = {"flydsl": flydsl_environment, "triton": triton_environment}
