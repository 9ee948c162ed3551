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


@dataclass
class Memory:
    """The memory that a device sees for one call. `close` ends that; the last adopted goes first,
    so that a call finds the addresses that the one before it had."""

    device: Device
    _adopted: list[int] = field(default_factory=list)

    def adopt(self, span: Span, writable: bool, label: str) -> int:
        """The device address of element zero. An array without elements has no memory: its address
        is null, and faults where a kernel uses it."""
        if not span.nbytes:
            return 0
        address = self.device.adopt(span.host, span.nbytes, writable=writable, label=label)
        self._adopted.append(address)
        return address + span.origin

    def adopt_all(self, spans: Sequence[tuple[str, Span, bool]]) -> list[int]:
        """`adopt` for each span, as (label, span, writable), at the cost of one."""
        asked = [
            (name, span.host, span.nbytes, write) for name, span, write in spans if span.nbytes
        ]
        adopted = self.device.adopt_all(asked)
        self._adopted += adopted
        addresses = iter(adopted)
        return [next(addresses) + span.origin if span.nbytes else 0 for _, span, _ in spans]

    def release(self, address: int) -> None:
        """Takes the memory that begins at a device address back, before the others."""
        if address:
            self._adopted.remove(address)
            self.device.release(address)

    def close(self) -> None:
        adopted, self._adopted = self._adopted, []
        if adopted:
            self.device.release_all(adopted)
