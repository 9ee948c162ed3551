"""Launches a case on the emulator or on the host; both return its arrays by position."""

from __future__ import annotations

import ctypes
import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import launching_on_device
import numpy as np
from fly_image.amd.code_object import CodeObject, Kernel

from kernels import build
from kernels.case import Case, Launch, check

Arrays = dict[int, np.ndarray]


def pack(kernel: Kernel, launch: Launch, address: Callable[[int, np.ndarray], int]) -> bytes:
    kernarg = bytearray(kernel.kernarg_size)
    pairs = zip(kernel.arguments, launch.arguments, strict=True)
    for position, (argument, value) in enumerate(pairs):
        if isinstance(value, np.ndarray):
            value = np.uint64(address(position, value))
        data = value.tobytes()
        assert len(data) == argument.size, f"{kernel.name}: argument {position}"
        kernarg[argument.offset : argument.offset + len(data)] = data
    return bytes(kernarg)


def _place(launch: Launch) -> None:
    """Moves the arrays to addresses that are multiples of 256, as a device's buffers are: vector
    types may rely on it."""
    for position, array in launch.arrays().items():
        memory = np.empty(array.nbytes + 256, "u1")
        start = -memory.ctypes.data % 256
        placed = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
        placed[...] = array
        launch.arguments[position] = placed


@functools.cache
def _emulator(target: str) -> Any:
    from fly_run.emulator.machine import Emulator

    return Emulator(target)


@functools.cache
def on_emulator(case: Case, target: str, level: str) -> Arrays:
    """Returns the arrays after the launch, compared with NumPy."""
    return on_device(case, _emulator(target), level)


def on_device(case: Case, device: Any, level: str, wide: bool = False) -> Arrays:
    """Does the same on the caller's emulator; `wide`: in waves of 64 lanes."""
    return run(device, build.device(device.target, level, wide), case.kernel, case.launch())


def run(device: Any, code: CodeObject, kernel: str, launch: Launch, lds: int = 0) -> Arrays:
    """Returns the arrays after the launch, compared with the expected ones; `lds`: bytes in
    addition to the kernel's static LDS."""
    _place(launch)
    before = {i: a.copy() for i, a in launch.arrays().items()}

    with launching_on_device.Buffers(device) as buffers:
        kernarg = pack(
            code.kernel(kernel), launch, lambda at, array: buffers.add(f"argument {at}", array)
        )
        launching_on_device.launch(device, code, kernel, launch.grid, launch.block, kernarg, lds)
    after = launch.arrays()
    check(launch, before, after)
    return after


@functools.cache
def _host_library() -> ctypes.CDLL:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "host.so")
        path.write_bytes(build.host())
        return ctypes.CDLL(str(path))


def on_host(case: Case) -> Arrays:
    """Returns the arrays after the same launch on the host's processor, one workgroup at a time."""
    library, launch = _host_library(), case.launch()
    _place(launch)
    kernarg = pack(
        build.device(*build.LAYOUT).kernel(case.kernel), launch, lambda _, array: array.ctypes.data
    )
    entry = ctypes.cast(getattr(library, f"enter_{case.kernel}"), ctypes.c_void_p)
    triple = ctypes.c_int * 3
    library.host_launch(
        entry, ctypes.c_char_p(kernarg), triple(*launch.grid), triple(*launch.block)
    )
    return launch.arrays()
