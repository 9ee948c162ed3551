"""What a run of a host program asks of its device: for tests of everything before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fly_host.program import Program
from fly_host.readers import interpreter
from fly_image.image import Image
from fly_run.launch import execution

STEP = 1 << 40  # between the addresses of buffers


class Buffer(NamedTuple):
    """Memory that was adopted."""

    name: str
    host: int
    nbytes: int
    writable: bool


class Launch(NamedTuple):
    """A launch as the device gets it."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    packed: bytes


@dataclass
class Recording:
    """A device that runs nothing; it is its own module, and its functions are kernels' names.
    Buffers get the `addresses` of their names, or made up ones."""

    addresses: Mapping[str, int] = field(default_factory=dict)
    target: str = "gfx942"
    name: str = "recording"
    concurrent: bool = False
    own_memory: bool = False
    place: None = None
    instructions: None = None
    buffers: list[Buffer] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    released: list[int] = field(default_factory=list)

    def function(self, name: str) -> str:
        return name

    def adopt(self, pointer: int, nbytes: int, *, writable: bool = True, label: str = "") -> int:
        self.buffers.append(Buffer(label, pointer, nbytes, writable))
        return self.addresses.get(label, STEP * len(self.buffers))

    def adopt_all(self, spans: Sequence[tuple[str, int, int, bool]]) -> list[int]:
        return [self.adopt(at, n, writable=writable, label=name) for name, at, n, writable in spans]

    def release(self, address: int) -> None:
        self.released.append(address)

    def release_all(self, addresses: Sequence[int]) -> None:
        self.released += addresses

    def launch(self, function: str, *asked: Any) -> None:
        grid, block, packed, shared, _ = asked
        self.launches.append(Launch(function, grid, block, shared, packed))

    def synchronize(self, what: object = None) -> None:
        pass


class Recorded(NamedTuple):
    """What was asked of the device, and what came of the program."""

    buffers: list[Buffer]
    launches: list[Launch]
    outcome: execution.Outcome

    @property
    def ran(self) -> list[Any]:
        """All launches, those over an empty grid too."""
        return self.outcome.ran


def record(
    program: Program,
    image: Image,
    values: Mapping[str, Any],
    reader: execution.Reader = interpreter.run,
    **addresses: int,
) -> Recorded:
    """Runs a program on arguments by name. Errors are those of `fly_run.launch.execution.run`."""
    device: Any = Recording(addresses)
    outcome = execution.run(program, image, device, device, values, reader=reader)
    assert len(device.released) == len(device.buffers)
    return Recorded(device.buffers, device.launches, outcome)
