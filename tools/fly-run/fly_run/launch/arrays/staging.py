"""Copies of host arrays in a device's own memory, for the time of one call."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fly_common.errors import FlyError

from fly_run.devices.protocol import FROM_DEVICE, TO_DEVICE, Device


class Region(NamedTuple):
    """`nbytes` bytes of host memory at `host`, and their copy at `address`."""

    label: str
    address: int
    host: int
    nbytes: int
    writable: bool

    def holds(self, host: int, nbytes: int) -> bool:
        return self.host <= host and host + nbytes <= self.host + self.nbytes


@dataclass
class Staging:
    """Host memory of a call, by regions. Arrays that overlap are in one region, so that a kernel
    sees through one what it writes through another."""

    device: Device
    _regions: dict[int, Region] = field(default_factory=dict)  # by address
    _users: dict[int, int] = field(default_factory=dict)  # of each region

    def stage(self, label: str, host: int, nbytes: int, writable: bool, fresh: bool) -> int:
        """The device address of host memory. `fresh`: without its content."""
        for region in self._regions.values():
            if region.holds(host, nbytes):  # what a library call returned may be its argument
                self._users[region.address] += 1
                return region.address + host - region.host
        address = self.device.alloc(nbytes, label)
        region = self._regions[address] = Region(label, address, host, nbytes, writable)
        self._users[address] = 1
        if not fresh:
            self._copy(region, TO_DEVICE)
            self.device.synchronize()
        return address

    def stage_all(self, spans: Sequence[tuple[str, int, int, bool]]) -> list[int]:
        """`stage` for each span, as (label, host, nbytes, writable)."""
        made: list[Region] = []
        for label, host, nbytes, writable in sorted(spans, key=lambda span: span[1]):
            end = host + nbytes
            if made and host < made[-1].host + made[-1].nbytes:
                last = made.pop()
                whole = max(end, last.host + last.nbytes) - last.host
                both = f"{last.label}, {label}"
                made.append(Region(both, 0, last.host, whole, last.writable or writable))
            else:
                made.append(Region(label, 0, host, nbytes, writable))
        for region in made:
            address = self.device.alloc(region.nbytes, region.label)
            self._regions[address] = region._replace(address=address)
            self._users[address] = 1
        if made:
            self.to_device(every=True)
        found: list[int] = []
        for _, host, nbytes, _ in spans:
            region = next(one for one in self._regions.values() if one.holds(host, nbytes))
            found.append(region.address + host - region.host)
        return found

    def drop(self, address: int) -> None:
        """Ends what `stage` did for this address. The last one frees the region, without a look at
        what is in it."""
        for region in self._regions.values():
            if region.address <= address < region.address + region.nbytes:
                self._users[region.address] -= 1
                if not self._users[region.address]:
                    del self._regions[region.address], self._users[region.address]
                    self.device.free(region.address)
                return

    def to_host(self) -> None:
        """Copies back what kernels may have written, and waits for it."""
        if not self._regions:
            return
        for region in self._regions.values():
            if region.writable:
                self._copy(region, FROM_DEVICE)
        self.device.synchronize()

    def to_device(self, every: bool = False) -> None:
        """Copies what the host may have written, or everything, and waits for it: kernels may run
        in streams that do not wait for the copies' one."""
        if not self._regions:
            return
        for region in self._regions.values():
            if region.writable or every:
                self._copy(region, TO_DEVICE)
        self.device.synchronize()

    def _copy(self, region: Region, direction: str) -> None:
        ends = (region.address, region.host)
        destination, source = ends if direction == TO_DEVICE else ends[::-1]
        self.device.copy(destination, source, region.nbytes, direction)

    def close(self) -> None:
        """Frees all regions. After a fault the device may refuse that; the fault was raised."""
        regions, self._regions, self._users = self._regions, {}, {}
        for address in reversed(regions):
            with contextlib.suppress(FlyError):
                self.device.free(address)
