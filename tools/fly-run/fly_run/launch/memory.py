"""The memory of arrays, as devices see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from fly_run.devices.protocol import Device

if TYPE_CHECKING:
    import numpy as np


class Span(NamedTuple):
    """The bytes that an array's elements cover: `nbytes` from host address `host` on. Element zero
    is `origin` bytes in (it is not at the start where a stride is negative)."""

    host: int
    nbytes: int
    origin: int


def span_of(array: np.ndarray) -> Span:
    """The bytes that `array`'s elements cover."""
    start = array.ctypes.data
    if array.size == 0:
        return Span(start, 0, 0)
    steps = [
        (extent - 1) * stride for extent, stride in zip(array.shape, array.strides, strict=True)
    ]
    low, high = sum(min(step, 0) for step in steps), sum(max(step, 0) for step in steps)
    return Span(start + low, high - low + array.itemsize, -low)


class Adopted:
    """Memory that a device sees until `release`, or until nothing refers to this object any more.
    `address` is that of element zero; null for an array without elements."""

    def __init__(self, memory: Memory, start: int | None, address: int):
        self.memory, self.start, self.address = memory, start, address

    def release(self) -> None:
        """Ends it; the second time this does nothing."""
        start, self.start = self.start, None
        if start is not None:
            self.memory.release(start)

    __del__ = release


@dataclass
class Memory:
    """The memory that a device sees for one call. `close` ends that; the last adopted goes first,
    so that a call finds the addresses that the one before it had."""

    device: Device
    _adopted: list[int] = field(default_factory=list)

    def adopt(self, span: Span, label: str) -> Adopted:
        """Adopts writable memory for as long as the result is referenced."""
        if not span.nbytes:
            return Adopted(self, None, 0)
        start = self.device.adopt(span.host, span.nbytes, writable=True, label=label)
        self._adopted.append(start)
        return Adopted(self, start, start + span.origin)

    def adopt_all(self, spans: Sequence[tuple[str, Span, bool]]) -> list[int]:
        """The device address of element zero for each span, as (label, span, writable). An array
        without elements has no memory: its address is null, and faults where a kernel uses it."""
        asked = [
            (name, span.host, span.nbytes, write) for name, span, write in spans if span.nbytes
        ]
        adopted = self.device.adopt_all(asked)
        self._adopted += adopted
        addresses = iter(adopted)
        return [next(addresses) + span.origin if span.nbytes else 0 for _, span, _ in spans]

    def release(self, start: int) -> None:
        """Takes the memory that begins at a device address back, if `close` has not done so."""
        if start in self._adopted:
            self._adopted.remove(start)
            self.device.release(start)

    def close(self) -> None:
        adopted, self._adopted = self._adopted, []
        if adopted:
            self.device.release_all(adopted)
