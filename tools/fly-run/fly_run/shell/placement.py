"""Where a call's arrays are in memory: behind addresses that are numbers, and between margins.

address:x.npy       the array is in the device's memory for the call; the argument is its address
--margin BYTES      kernels may read around an array, as those do that fetch ahead. The emulator
                    refuses that otherwise; on a GPU, what is there is up to the driver
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fly_common.errors import UsageError

from fly_run.devices.protocol import Device
from fly_run.launch.arrays.memory import Memory, span_of

if TYPE_CHECKING:
    import numpy as np

PAGE = 4096  # a margin is a multiple of it, so that arrays are as aligned as they would be
_ALIGNMENT = 64


@contextlib.contextmanager
def addresses(device: Device, arrays: Mapping[str, np.ndarray]) -> Iterator[dict[str, int]]:
    """The device addresses of arrays by name, while kernels may read and write them; at the end
    the arrays hold what kernels wrote."""
    memory = Memory(device)
    try:
        spans = [(name, span_of(array), True) for name, array in arrays.items()]
        found = memory.adopt_all(spans) if spans else []
        yield dict(zip(arrays, found, strict=True))
        memory.to_host()
    finally:
        memory.close()


def whole(margin: int) -> int:
    """The margin in whole pages."""
    return -(-margin // PAGE) * PAGE


def between_margins(array: np.ndarray, margin: int) -> np.ndarray:
    """A copy of an array, of the same strides, with `margin` zeros before and behind it."""
    import numpy as np

    size = span_of(array).nbytes
    memory = np.zeros(size + 2 * margin + _ALIGNMENT, np.uint8)
    start = margin + -(memory.ctypes.data + margin) % _ALIGNMENT
    copy = np.ndarray(array.shape, array.dtype, memory, start, array.strides)
    copy[...] = array
    return copy


def with_margins(device: Any, margin: int, arrays: Iterable[np.ndarray]) -> Any:
    """The device, where kernels may read around arrays made by `between_margins`. UsageError if it
    checks no accesses."""
    if not hasattr(device, "adopt_within"):
        raise UsageError(f"--margin: {device.name} does not check accesses", hint="leave it out")
    return Margins(device, whole(margin), frozenset(span_of(array).host for array in arrays))


class Margins:
    """The emulator as a device of which kernels may read `margin` bytes around the arrays that
    begin at `starts`, addresses of the host."""

    def __init__(self, device: Any, margin: int, starts: frozenset[int]):
        self._device, self._margin, self._starts = device, margin, starts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def adopt(self, pointer: int, nbytes: int, *, writable: bool = True, label: str = "") -> int:
        if pointer not in self._starts:
            return self._device.adopt(pointer, nbytes, writable=writable, label=label)
        return self._device.adopt_within(self._margin, pointer, nbytes, writable, label)

    def adopt_all(self, spans: Sequence[tuple[str, int, int, bool]]) -> list[int]:
        return [self.adopt(at, size, writable=write, label=name) for name, at, size, write in spans]
