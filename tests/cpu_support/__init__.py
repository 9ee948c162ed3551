"""Runs kernels that are given as LLVM IR for NVPTX on the device `cpu`.

out = np.zeros(32, np.int32)
run(kernel("store i32 7, ptr addrspace(1) %p0", 1), [out])
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from fly_image.nvidia import ptx_image
from fly_llc import Options, compile
from fly_run.cpu.device import Cpu

TARGET = "sm_90a"
_HEAD = """
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"
"""
_END = f'\nattributes #0 = {{ "target-cpu"="{TARGET}" "target-features"="+ptx88" }}\n'
# The number of the thread in the grid of one dimension, and in its block.
INDEX = """
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %ntid = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %ctaid = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %base = mul i32 %ctaid, %ntid
  %i.32 = add i32 %base, %tid
  %i = sext i32 %i.32 to i64
"""


def kernel(body: str, pointers: int, globals: str = "", name: str = "k") -> str:
    """A module with one kernel of pointers %p0, %p1, … Its body needs no `ret`."""
    given = ", ".join(f"ptr addrspace(1) %p{n}" for n in range(pointers))
    end = "" if body.rstrip().endswith(("ret void", "unreachable")) else "\n  ret void"
    return f"{globals}\ndefine ptx_kernel void @{name}({given}) #0 {{\n{body}{end}\n}}\n"


def image(text: str) -> ptx_image.PtxImage:
    """The PTX of a module, with the section for the device."""
    return ptx_image.read(compile(f"{_HEAD}{text}{_END}".encode(), Options()))


def load(text: str) -> tuple[Cpu, Any]:
    """A device, and the module in it."""
    device = Cpu(TARGET)
    return device, device.load(image(text))


def launch(
    device: Cpu,
    module: Any,
    arrays: Sequence[np.ndarray],
    grid: Any = 1,
    block: Any = 32,
    shared: int = 0,
    writable: Sequence[bool] = (),
    name: str | None = None,
) -> None:
    """Launches a kernel whose arguments are the addresses of arrays, called A, B, … in faults."""
    sizes = [one if isinstance(one, tuple) else (one, 1, 1) for one in (grid, block)]
    rights = [*writable, *[True] * (len(arrays) - len(writable))]
    spans = [
        (letter, array.ctypes.data, array.nbytes, right)
        for letter, array, right in zip("ABCDEFGH", arrays, rights, strict=False)
    ]
    adopted = device.adopt_all(spans)
    try:
        packed = struct.pack(f"<{len(arrays)}Q", *adopted)
        device.launch(module.function(name), *sizes, packed, shared)
    finally:
        device.release_all(adopted)


def run(text: str, arrays: Sequence[np.ndarray], *sizes: Any, **more: Any) -> None:
    """Compiles a module and launches its kernel once."""
    device, module = load(text)
    launch(device, module, arrays, *sizes, **more)
