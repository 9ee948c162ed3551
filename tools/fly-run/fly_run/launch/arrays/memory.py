"""The memory of arrays, as devices see it.

There are three ways. A device of host memory adopts the arrays. A device of its own memory gets
copies, which are copied back at the end: `staging`. Arrays that are in the device's memory already
are used where they are.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from fly_common.errors import InputError

from fly_run.devices.protocol import Device
from fly_run.launch.arrays.staging import Staging

if TYPE_CHECKING:
    import numpy as np

    from fly_run.launch.arrays.device_arrays import Place


class Span(NamedTuple):
    """The bytes that an array's elements cover: `nbytes` from address `host` on. Element zero is
    `origin` bytes in (it is not at the start where a stride is negative). `place` is where they are
    if that is not host memory."""

    host: int
    nbytes: int
    origin: int
    place: Place | None = None


def span_of(array: np.ndarray) -> Span:
    """The bytes that `array`'s elements cover."""
    start, place = array.ctypes.data, getattr(array, "place", None)
    if array.size == 0:
        return Span(start, 0, 0, place)
    steps = [
        (extent - 1) * stride for extent, stride in zip(array.shape, array.strides, strict=True)
    ]
    low, high = sum(min(step, 0) for step in steps), sum(max(step, 0) for step in steps)
    return Span(start + low, high - low + array.itemsize, -low, place)


def place_of(arrays: Mapping[str, np.ndarray]) -> Place | None:
    """Where a call's arrays are; None for host memory. InputError where they are in different
    places."""
    # No array is a device's before the module was imported that describes those.
    if "fly_run.launch.arrays.device_arrays" not in sys.modules:
        return None
    from fly_run.launch.arrays.device_arrays import common_place

    return common_place(arrays.items())


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
    _staging: Staging | None = field(init=False)

    def __post_init__(self) -> None:
        self._staging = Staging(self.device) if self.device.own_memory else None

    def adopt(self, span: Span, label: str, fresh: bool = False) -> Adopted:
        """Adopts writable memory for as long as the result is referenced. What `fresh` memory holds
        does not matter."""
        if not span.nbytes:
            return Adopted(self, None, 0)
        if span.place is not None:
            return Adopted(self, None, self._there(label, span))
        if self._staging is not None:
            start = self._staging.stage(label, span.host, span.nbytes, True, fresh)
        else:
            start = self.device.adopt(span.host, span.nbytes, writable=True, label=label)
            self._adopted.append(start)
        return Adopted(self, start, start + span.origin)

    def adopt_all(self, spans: Sequence[tuple[str, Span, bool]]) -> list[int]:
        """The device address of element zero for each span, as (label, span, writable). An array
        without elements has no memory: its address is null, and faults where a kernel uses it."""
        asked = [
            (name, span.host, span.nbytes, write)
            for name, span, write in spans
            if span.nbytes and span.place is None
        ]
        if self._staging is not None:
            adopted = self._staging.stage_all(asked)
        else:
            adopted = self.device.adopt_all(asked)
            self._adopted += adopted
        addresses = iter(adopted)
        found: list[int] = []
        for name, span, _ in spans:
            if not span.nbytes:
                found.append(0)
            elif span.place is not None:
                found.append(self._there(name, span))
            else:
                found.append(next(addresses) + span.origin)
        return found

    def _there(self, name: str, span: Span) -> int:
        """The address of element zero of an array in device memory."""
        from fly_run.launch.arrays.device_arrays import show

        if span.place != self.device.place:
            assert span.place is not None
            has = "works on host memory" if self._staging is None else "has other memory"
            raise InputError(
                f"argument {name} is on {show(span.place)}, but {self.device.name} {has}",
                hint=f"pass {name}.cpu(), or choose the device: {show(span.place)}",
            )
        return span.host + span.origin

    def release(self, start: int) -> None:
        """Takes the memory that begins at a device address back, if `close` has not done so."""
        if self._staging is not None:
            self._staging.drop(start)
        elif start in self._adopted:
            self._adopted.remove(start)
            self.device.release(start)

    def to_host(self) -> None:
        """Brings what kernels wrote to the host's arrays."""
        if self._staging is not None:
            self._staging.to_host()

    def to_device(self) -> None:
        """Brings what the host wrote to the device."""
        if self._staging is not None:
            self._staging.to_device()

    def close(self) -> None:
        """Afterwards the device does not see the memory."""
        if self._staging is not None:
            self._staging.close()
        adopted, self._adopted = self._adopted, []
        if adopted:
            self.device.release_all(adopted)
