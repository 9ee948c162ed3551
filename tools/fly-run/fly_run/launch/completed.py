"""A launch that a device has completed: its sizes, instructions and time."""

from __future__ import annotations

import time
from typing import NamedTuple

from fly_run.devices.protocol import Device, Function, Stream, Triple
from fly_run.launch import reports


class Ran(NamedTuple):
    """A launch that ended. `instructions` counts wave instructions, None where a device can't;
    `seconds` is wall-clock time up to the end of the kernel, or of the launch where nothing waited
    for the kernel."""

    kernel: str
    grid: Triple
    block: Triple
    shared: int
    seconds: float
    instructions: int | None

    @property
    def empty(self) -> bool:
        """Whether there was nothing to run, because an extent is 0."""
        return 0 in self.grid


def launch_packed(
    device: Device,
    function: Function,
    kernel: str,
    grid: Triple,
    block: Triple,
    shared: int,
    packed: bytes,
    stream: Stream | None = None,
    wait: bool = True,
    cluster: Triple | None = None,
) -> Ran:
    """Launches a kernel with packed arguments, and waits for it unless told otherwise. A grid of no
    workgroups is passed over."""
    before, start = device.instructions, time.perf_counter()
    if 0 not in grid:
        reports.launch(device, function, grid, block, packed, shared, stream, cluster)
        if wait:
            device.synchronize()
    after = device.instructions
    count = None if before is None or after is None else after - before
    return Ran(kernel, grid, block, shared, time.perf_counter() - start, count)
