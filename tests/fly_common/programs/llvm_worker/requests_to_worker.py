"""A module for the worker, and requests: of it, and of the programs."""

from __future__ import annotations

import subprocess

from fly_common.programs import prefetch, toolchain
from fly_common.programs.llvm_worker import client
from fly_common.programs.process import Done
from fly_target.registry import find

OPT = ["-S", "-O3"]
LLC = ["-mcpu=gfx942", "-O2", "-filetype=obj", "-disable-symbolication", "-o", "-", "-"]
KERNEL = b"""target datalayout = "LAYOUT"
target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @k(ptr addrspace(1) %p) #0 {
  %v = load i32, ptr addrspace(1) %p
  %w = mul i32 %v, 3
  store i32 %w, ptr addrspace(1) %p
  ret void
}
attributes #0 = { "target-cpu"="gfx942" }
""".replace(b"LAYOUT", find("gfx942").data_layout.encode())
# LLVM aborts: it can't select an instruction.
ABORTS = (
    KERNEL.replace(b"%w = mul", b"%s = call i32 @llvm.read_register.i32(metadata !0)\n  %w = mul")
    + b'declare i32 @llvm.read_register.i32(metadata)\n!0 = !{!"nosuch"}\n'
)


def ask(name: str, words: list[str], data: bytes) -> Done:
    path = toolchain.find_program(name)
    with prefetch.Programs() as programs:
        programs.start([(path, words)])
        return prefetch.run(path, words, data)


def by_program(name: str, words: list[str], data: bytes) -> Done:
    done = subprocess.run([toolchain.find_program(name), *words], input=data, capture_output=True)
    return Done(done.returncode, done.stdout, done.stderr)


def worker() -> client.Worker:
    assert client._worker is not None
    return client._worker
