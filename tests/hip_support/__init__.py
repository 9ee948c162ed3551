"""Calls HIP's functions as a C program does, for tests of `fly_run.hip_runtime`.

    hip = Hip(FLY_HIP_TARGET="gfx942,gfx1100")
    hip.ok.hipSetDevice(1)
    code = hip.hipFree(12)
    count = hip.get(c_int, hip.ok.hipGetDeviceCount)

Each `Hip` has a state of its own, which the callbacks of the library's table use; the library
itself is not loaded.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import c_size_t
from typing import Any

import numpy as np
from fly_run.hip_runtime import table
from fly_run.hip_runtime.errors import NAMES
from fly_run.hip_runtime.prototypes import prototypes
from fly_run.hip_runtime.runtime import Runtime


class Hip:
    def __init__(self, **environment: str):
        self.runtime = Runtime(environment)
        self._callbacks = dict(zip(prototypes(), table.callbacks(self.runtime), strict=True))
        self.ok = Succeeding(self)

    def __getattr__(self, name: str) -> Callable[..., int | str]:
        """A function that returns the error's name, or the text that the HIP function returns."""
        callback = self._callbacks[name]

        def call(*arguments: Any) -> int | str:
            held = [_plain(one) for one in arguments]
            result = callback(*held)
            if prototypes()[name].returns_text:
                return ctypes.string_at(result).decode()
            return NAMES[result]

        return call

    def get(self, kind: Any, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a function whose first parameter is the address of its result."""
        made = kind()
        function(made, *arguments)
        return made.value

    def malloc(self, size: int) -> int:
        return self.get(c_size_t, self.ok.hipMalloc, size)

    def array(self, values: np.ndarray) -> int:
        """Device memory with these values."""
        address = self.malloc(values.nbytes)
        self.ok.hipMemcpy(address, values, values.nbytes, 1)
        return address

    def values(self, address: int, like: np.ndarray) -> np.ndarray:
        made = np.empty_like(like)
        self.ok.hipMemcpy(made, address, made.nbytes, 2)
        return made

    def load(self, data: bytes, name: str) -> tuple[int, int]:
        """Loads a code object; its module, and its kernel `name`."""
        module = self.get(c_size_t, self.ok.hipModuleLoadData, data)
        return module, self.get(c_size_t, self.ok.hipModuleGetFunction, module, name)

    def launch(
        self,
        function: int,
        grid: int,
        block: int,
        arguments: Sequence[Any],
        shared: int = 0,
        stream: int = 0,
    ) -> int | str:
        """hipModuleLaunchKernel with kernelParams."""
        sizes = (grid, 1, 1, block, 1, 1)
        pointers = parameters(arguments)
        return self.hipModuleLaunchKernel(function, *sizes, shared, stream, pointers, 0)


class Succeeding:
    """The same functions, which must succeed."""

    def __init__(self, hip: Hip):
        self._hip = hip

    def __getattr__(self, name: str) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            result = getattr(self._hip, name)(*arguments)
            assert result == "hipSuccess", (name, result)

        return call


def parameters(arguments: Sequence[Any]) -> Any:
    """The array of pointers to arguments, which are ctypes objects."""
    made = (c_size_t * len(arguments))(*(ctypes.addressof(one) for one in arguments))
    made.kept = arguments
    return made


def _plain(one: Any) -> int:
    if isinstance(one, int):
        return one
    if isinstance(one, np.ndarray):
        return one.ctypes.data
    if isinstance(one, str | bytes):
        # The text lives as long as the process: code objects are used as long as their module.
        data = one.encode() if isinstance(one, str) else one
        _texts.append(ctypes.create_string_buffer(data, len(data) + 1))
        return ctypes.addressof(_texts[-1])
    return ctypes.addressof(one)


_texts: list[Any] = []
