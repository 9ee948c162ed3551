"""Times of launches that are repeated with the same arguments on the same memory.

    recorder = Recorder(device)
    execution.run(program, image, module, recorder, values)     the first run, which is recorded
    times = repeat(recorder, warm_up=10, repetitions=100)
    recorder.finish()

An event lies between each two launches, and nothing waits for them. Caches hold what the repetition
before left in them.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from fly_run.devices.protocol import TO_DEVICE, Device, Function, Stream, Triple


class Launch(NamedTuple):
    """A launch, as a device gets it: with the size of clusters only if the launch says it."""

    function: Function
    grid: Triple
    block: Triple
    packed: bytes
    shared: int = 0
    stream: Stream | None = None
    cluster: Triple | None = None

    def on(self, device: Device) -> None:
        """Launches it."""
        function, grid, block, packed, shared, stream, cluster = self
        if cluster is None:
            device.launch(function, grid, block, packed, shared, stream)
        else:
            device.launch(function, grid, block, packed, shared, stream, cluster)


class Recorder:
    """A device that remembers what it launches, and keeps its memory until `finish`. `uploads` are
    the copies to the device, as (device address, host address, bytes)."""

    def __init__(self, device: Device):
        self.device = device
        self.launches: list[Launch] = []
        self.uploads: list[tuple[int, int, int]] = []
        self._freed: list[int] = []
        self._released: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.device, name)

    def launch(self, *asked: Any) -> None:
        self.device.launch(*asked)
        self.launches.append(Launch(*asked))

    def copy(
        self,
        destination: int,
        source: int,
        nbytes: int,
        direction: str,
        stream: Stream | None = None,
    ) -> None:
        self.device.copy(destination, source, nbytes, direction, stream)
        if direction == TO_DEVICE:
            self.uploads.append((destination, source, nbytes))

    def free(self, address: int) -> None:
        self._freed.append(address)

    def release(self, address: int) -> None:
        self._released.append(address)

    def release_all(self, addresses: Sequence[int]) -> None:
        self._released += addresses

    def finish(self) -> None:
        """Frees the memory. The device stays open."""
        freed, self._freed = self._freed, []
        released, self._released = self._released, []
        for address in freed:
            self.device.free(address)
        self.device.release_all(released)

    def close(self) -> None:
        self.finish()
        self.device.close()


@dataclass(frozen=True)
class Repeated:
    """Seconds of each repetition: of each launch, and of all launches together."""

    launches: list[list[float]]
    whole: list[float]


def repeat(
    recorder: Recorder,
    warm_up: int,
    repetitions: int,
    before: Callable[[], object] | None = None,
) -> Repeated:
    """Repeats the recorded launches, `warm_up` times without a look at the clock. `before` is
    called before each repetition, outside of what is timed."""
    device = recorder.device
    before = before or (lambda: None)
    for _ in range(warm_up):
        before()
        for launch in recorder.launches:
            launch.on(device)
    device.synchronize()
    stream = recorder.launches[0].stream if recorder.launches else None
    marks = []
    for _ in range(repetitions):
        before()
        marks.append([device.event(stream)])
        for launch in recorder.launches:
            launch.on(device)
            marks[-1].append(device.event(launch.stream))
    device.synchronize()
    rows = [[device.elapsed(*pair) for pair in itertools.pairwise(row)] for row in marks]
    whole = [device.elapsed(row[0], row[-1]) for row in marks]
    return Repeated([list(column) for column in zip(*rows, strict=True)], whole)


class Times(NamedTuple):
    """Seconds."""

    median: float
    least: float
    p10: float
    p90: float
    most: float


def times_of(seconds: Sequence[float]) -> Times:
    """The quantiles of some measurements, interpolated between neighbours."""
    if len(seconds) == 1:
        return Times(*[seconds[0]] * 5)
    tenths = statistics.quantiles(seconds, n=10, method="inclusive")
    return Times(statistics.median(seconds), min(seconds), tenths[0], tenths[-1], max(seconds))
