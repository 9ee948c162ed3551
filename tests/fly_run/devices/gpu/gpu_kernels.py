"""Devices and kernels for tests of GPUs."""

from __future__ import annotations

import struct

import numpy as np
from fly_host.tiles import Tile
from fly_run.devices.gpu.cuda import Cuda
from fly_run.devices.gpu.device import Gpu
from fly_run.devices.gpu.hip import Hip
from fly_run.devices.protocol import FROM_DEVICE, TO_DEVICE
from gpu_support.drivers import FakeGpu, Illegal, vadd
from gpu_support.images import FakeImage, kernel
from gpu_support.prototypes import CUDA, HIP

ONE = (1, 1, 1)


def illegal(gpu, launch):
    raise Illegal


KERNELS = {
    "add": kernel("add", "p", "p", "p", 8),
    "wild": kernel("wild", "p"),
    "none": kernel("none"),
    "shared": kernel("shared", "p", shared_bytes=1024),
}


def opened(kind, target=None, ordinal=None, away=False, **options):
    """A device; `away`: the thread uses another one."""
    if kind is Hip:
        options.setdefault("architectures", ("gfx942:sramecc+", "gfx942", "gfx90a"))
    gpu = FakeGpu(**options)
    gpu.kernels |= {"add": vadd, "wild": illegal, "none": lambda *_: None}
    gpu.kernels["shared"] = lambda *_: None
    gpu.variables["table"] = bytes(range(16))
    driver = kind(gpu.library(CUDA if kind is Cuda else HIP))
    gpu._current.context = 2 if away else 0
    target = target or ("sm_90a" if kind is Cuda else "gfx942")
    return gpu, Gpu(driver, target, ordinal)


def image(device, **fields):
    return FakeImage(KERNELS, device.target, **fields)


def run_add(gpu, device, n=1000, stream=None):
    """Runs `add` by the protocol, as its module's docstring says; whether the sum is right."""
    a, b = np.random.default_rng(n).random((2, n), np.float32)
    c = np.zeros(n, np.float32)
    places = [device.alloc(one.nbytes, name) for one, name in ((a, "A"), (b, "B"), (c, "C"))]
    for place, array in zip(places, (a, b), strict=False):
        device.copy(place, array.ctypes.data, array.nbytes, TO_DEVICE, stream)
    packed = struct.pack("<3Qq", *places, n)
    function = device.load(image(device)).function("add")
    device.launch(function, (-(-n // 64), 1, 1), (64, 1, 1), packed, 0, stream)
    device.copy(c.ctypes.data, places[2], c.nbytes, FROM_DEVICE, stream)
    device.synchronize(stream)
    for place in places:
        device.free(place)
    return bool((c == a + b).all())


# -- descriptors of tensors

MATRIX = Tile(1 << 20, "bf16", 2, (100, 30), (208,), (64, 8), 128)
