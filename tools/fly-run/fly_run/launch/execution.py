"""Runs bound launches on a device."""

from __future__ import annotations

import time
from typing import NamedTuple

from fly_run.devices.protocol import Device, Module
from fly_run.launch.binding import Bound, BoundLaunch


class Ran(NamedTuple):
    """A completed launch. `instructions` counts wave instructions, None if the device can't;
    `seconds` is wall-clock time including `synchronize`."""

    launch: BoundLaunch
    seconds: float
    instructions: int | None


def run(bound: Bound, module: Module, device: Device) -> list[Ran]:
    """Runs the launches in order; the host arrays hold the results when it returns. Launches over
    an empty grid are skipped. The arrays are mapped into the device for the duration of the
    call."""
    adopted: list[int] = []
    addresses: dict[str, int] = {}
    try:
        for name, host, nbytes, origin, writable in bound.buffers:
            # A buffer without elements has no memory; a null address faults if a kernel uses it.
            addresses[name] = 0
            if nbytes:
                address = device.adopt(host, nbytes, writable=writable, label=name)
                adopted.append(address)
                addresses[name] = address + origin
        return [_launch(item, addresses, module, device) for item in bound.launches]
    finally:
        # In reverse order, so that the next call gets the same addresses.
        for address in reversed(adopted):
            device.release(address)


def _launch(item: BoundLaunch, addresses: dict[str, int], module: Module, device: Device) -> Ran:
    before, start = device.instructions, time.perf_counter()
    if not item.empty:
        function = module.function(item.kernel)
        packed = item.kernarg_at(addresses)
        device.launch(function, item.grid, item.block, packed, item.dynamic_lds)
        device.synchronize()
    after = device.instructions
    count = None if before is None or after is None else after - before
    return Ran(item, time.perf_counter() - start, count)
