"""Launches by the device protocol, for the suites' launchers."""

from __future__ import annotations

from typing import Any

import numpy as np
from fly_image.image import Image


class Buffers:
    """Maps arrays into a device for the duration of a block.

    with Buffers(device) as buffers:
        address = buffers.add("A", array)
    """

    def __init__(self, device: Any):
        self._device, self._addresses = device, []

    def add(self, name: str, array: np.ndarray, writable: bool = True) -> int:
        address = self._device.adopt(array.ctypes.data, array.nbytes, writable=writable, label=name)
        self._addresses.append(address)
        return address

    def __enter__(self) -> Buffers:
        return self

    def __exit__(self, *_: object) -> None:
        for address in reversed(self._addresses):
            self._device.release(address)


def loaded(device: Any, image: Image) -> Any:
    """Returns the image as a module of the device, loaded once."""
    modules = vars(device).setdefault("modules_of_tests", {})
    if image.digest not in modules:
        modules[image.digest] = device.load(image)
    return modules[image.digest]


def launch(
    device: Any,
    image: Image,
    kernel: str,
    grid: Any,
    block: Any,
    packed: bytes,
    shared: int = 0,
    **more: Any,
) -> None:
    """Runs one launch to completion."""
    device.launch(loaded(device, image).function(kernel), grid, block, packed, shared, **more)
    device.synchronize()
