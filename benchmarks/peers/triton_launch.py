"""What a call of a Triton kernel costs; prints JSON: ns by way.

    TRITON_LIBHIP_PATH=STUB python triton_launch.py FILE TENSORS INTEGERS REPEATS [allocating]

FILE has a function `kernel`; STUB is a HIP library that does nothing. Triton compiles its launcher
with the C compiler that it finds. See ../launch.py, which makes the first two. With "allocating",
the last tensor is made in each call, by torch.empty_like.
"""

import importlib.util
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import launch
import torch
import triton
from launch import calling
from triton.backends.amd import driver as amd
from triton.backends.compiler import GPUTarget


class Driver(amd.HIPDriver):
    """Triton's driver on a device that the stub does not describe. Its launcher is Triton's own."""

    def __init__(self):
        self.utils = amd.HIPUtils()
        self.launcher_cls = amd.HIPLauncher
        self.get_current_device = lambda: 0
        self.get_current_stream = lambda device: 0
        self.utils.load_binary = lambda *_: (1, 1, 0, 0, 1024)
        self.utils.get_device_properties = lambda device: {"max_shared_mem": 65536}

    def get_current_target(self):
        return GPUTarget("hip", "gfx942", 64)


path, tensors, integers, repeats = sys.argv[1], *map(int, sys.argv[2:5])
allocating = sys.argv[5:] == ["allocating"]
triton.runtime.driver.set_active(Driver())
spec = importlib.util.spec_from_file_location("peer", path)
assert spec
assert spec.loader
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
kernel, grid = module.kernel, (1, 1, 1)
arguments = (*[torch.zeros(12, 20)] * tensors, *range(2, 2 + integers))
compiled = kernel[grid](*arguments)
whole = f"function[{grid}]"  # a new function each time, as users write it
if allocating:
    given = ", ".join(f"a{n}" for n in range(tensors - 1))
    numbers = ", ".join(f"a{n}" for n in range(tensors - 1, tensors - 1 + integers))
    arguments = (*arguments[1:], torch.empty_like)
    call = f"{whole}({given}, a{len(arguments) - 1}(a0), {numbers})"
    found = {"Triton kernel[grid]": launch.per_call(calling(kernel, arguments, call), repeats)}
else:
    found = {
        "Triton kernel[grid]": launch.per_call(
            calling(kernel, arguments, f"{whole}({{}})"), repeats
        )
    }
    handle = (*grid, 0, compiled.function, compiled.packed_metadata, None, None, None, *arguments)
    found["Triton launcher"] = launch.per_call(calling(compiled.run, handle), repeats)
print(json.dumps(found))
