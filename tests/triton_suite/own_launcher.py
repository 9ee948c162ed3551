"""A program for a Python with Triton: launches kernels as a user's program does, on a HIP library.

    fly-run --hip gfx942 -- python own_launcher.py FOLDER < requests.json

A request is [key, kernel, arguments, {parameter: constant}, options, grid]. An argument is a
number, or [file, type]: an array of that element type, which the kernel changes in place. It is a
CPU tensor if torch is installed there, otherwise an object with the attributes that Triton uses.
Prints {key: error or null} as JSON.

Triton finds no GPU, so its driver's class is activated without asking torch for one. Everything
else is Triton's: `HIPUtils`, which loads the library and code objects, and `HIPLauncher`, with the
launcher in C that Triton compiles.
"""

import ctypes
import json
import mmap
import sys
from pathlib import Path

import kernels
import triton
from triton.backends.amd.driver import HIPDriver, HIPLauncher, HIPUtils

try:
    import torch
except ImportError:
    torch = None

# Triton's types by torch's names; the others are equal.
TORCH = {
    "fp64": "float64",
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp8e4nv": "float8_e4m3fn",
    "fp8e5": "float8_e5m2",
    "fp8e4b8": "float8_e4m3fnuz",
    "fp8e5b16": "float8_e5m2fnuz",
    **{f"{sign}{bits}": f"{name}{bits}" for sign, name in (("i", "int"), ("u", "uint"))
       for bits in (8, 16, 32, 64)},
}  # fmt: skip


class EmulatedHIP(HIPDriver):
    """Triton's driver without the questions to torch."""

    def __init__(self):
        self.utils = HIPUtils()
        self.launcher_cls = HIPLauncher

    def get_current_device(self):
        return 0

    def get_current_stream(self, device=None):
        return 0


class Array:
    """Memory with an element type, where there is no torch."""

    def __init__(self, memory, kind):
        self.memory, self.dtype = memory, kind

    def data_ptr(self):
        return ctypes.addressof(ctypes.c_char.from_buffer(self.memory))


def array(memory, kind):
    if torch is None:
        return Array(memory, kind)
    return torch.frombuffer(memory, dtype=torch.uint8).view(getattr(torch, TORCH[kind]))


def launch(folder, kernel, arguments, constants, options, grid):
    passed = []
    for one in arguments:
        if isinstance(one, list):
            with open(folder / one[0], "r+b") as file:
                passed.append(array(mmap.mmap(file.fileno(), 0), one[1]))
        else:
            passed.append(one)
    getattr(kernels, kernel)[tuple(grid)](*passed, **constants, **options)


def main():
    folder = Path(sys.argv[1])
    triton.runtime.driver.set_active(EmulatedHIP())
    triton.set_allocator(lambda size, align, stream: array(mmap.mmap(-1, size), "i8"))
    told = {}
    for key, *request in json.load(sys.stdin):
        told[key] = None
        try:
            launch(folder, *request)
        except Exception as error:
            last = str(error.__cause__ or error).strip().splitlines()[-1:]
            told[key] = f"{type(error).__name__}: {''.join(last)}"
    json.dump({"tensors": f"torch {torch.__version__}" if torch else "objects", "told": told},
              sys.stdout)  # fmt: skip


if __name__ == "__main__":
    main()
