"""Native code for the host program of an image: what it is made from, and how a device that sees
host memory runs what it asks for.

    native = compile(program, image, example, opened)
    native.call(a, b, 1000)             the results, or NotImplemented: the Python way decides
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from fly_common.errors import FlyError
from fly_host.native import calling, specialisation
from fly_host.native.specialisation import Batch, PythonEntry
from fly_host.native.unavailable import Unavailable
from fly_host.program import Buffer, Call, Launch, Program, Tensor, Triple
from fly_host.readers.values import Extents
from fly_image.image import Image
from fly_image.limits import limits_of

from fly_run.launch import machine, reports
from fly_run.launch.checking import check
from fly_run.launch.completed import Ran, launch_packed
from fly_run.launch.execution import Outcome

if TYPE_CHECKING:
    from fly_host.native.calling import Native
    from fly_host.native.specialisation import Options

    from fly_run.devices.protocol import Function
    from fly_run.launch.runtime import Opened

_HEADER = struct.Struct("<8q")
_PLACES = {2: "cuda", 10: "cuda"}  # DLPack's device types → torch's; torch calls HIP's cuda


def compile(
    program: Program,
    image: Image,
    arguments: Sequence[object],
    current: Callable[[], Opened],
    located: Callable[[FlyError], None] | None = None,
    options: Options | None = None,
    ran: list[Ran] | None = None,
) -> Native:
    """Native code for calls like the one with these arguments, in the order of the parameters.
    `current()` is the device that launches run on; `located` adds to a kernel's fault, or to a
    driver's error, what the caller knows of the kernel. Launches are timed one by one and added to
    `ran` where it is given. fly_host.native.Unavailable where there can be no native code."""
    made = specialisation.specialise(program, arguments, limits_of(program, image))
    services, opened = Services(program, image), current()
    module = opened.module(image)
    functions = [module.function(launch.kernel) for launch in program.launches]
    _check_places(made, opened)
    if opened.device.own_memory and reports.has(image):
        raise Unavailable("its kernels report, which is read after each launch")
    entry = opened.device.driver_entry(functions) if ran is None else None
    if entry is not None:
        if located is not None:
            entry = replace(entry, error=_locating(entry.error, located))
        return calling.compile(made, entry, services, options)
    runner = Runner(program, image, current, located, ran)
    native = calling.compile(made, PythonEntry(runner.run), services, options)
    runner.ready = [runner.prepare(batch) for batch in native.batches]
    return native


def _locating(
    error: Callable[[int, int], object], located: Callable[[FlyError], None]
) -> Callable[[int, int], None]:
    """The `error` of an entry, whose exceptions are `located`."""

    def raises(launch: int, status: int) -> None:
        try:
            error(launch, status)
        except FlyError as found:
            located(found)
            raise

    return raises


def _check_places(made: specialisation.Specialisation, opened: Opened) -> None:
    """Unavailable where tensors are not where the device sees them: Python copies them there, or
    says why not."""
    place = opened.device.place
    for name, array in (*made.arrays.items(), ("what the program makes", made.made)):
        found = _PLACES.get(array.device[0])
        if (None if found is None else (found, array.device[1])) != place:
            raise Unavailable(f"{name} is not in the memory of {opened.device.name}")


def run(program: Program, image: Image, values: Mapping[str, Any], opened: Opened) -> Outcome:
    """Runs a program once by native code; see `fly_run.launch.execution.run`.
    fly_host.native.Unavailable where there is none, or where it does not take these arguments."""
    _, scalars = check(program, values)
    given = [scalars.get(p.name, values.get(p.name)) for p in program.parameters]
    ran: list[Ran] = []
    results = compile(program, image, given, lambda: opened, ran=ran).call(*given)
    if results is NotImplemented:
        raise Unavailable("native code does not take these arguments")
    return Outcome(results, ran)


class Services:
    """The `fly_host.readers.machine.Services` of a program, whose tensors are the caller's own
    arrays."""

    def __init__(self, program: Program, image: Image):
        self.program, self.image = program, image

    def look_at(
        self,
        launch: Launch,
        grid: Triple,
        block: Triple,
        shared: int,
        integers: list[list[int | None]],
    ) -> None:
        machine.look_at(self.program, self.image, launch, grid, block, shared, integers)

    def allocate(
        self, buffer: Buffer, shape: tuple[int, ...], strides: tuple[int, ...], elements: int
    ) -> None:
        machine.check_room(buffer, shape, strides, elements)

    def call(self, call: Call, arguments: list[Any], keywords: dict[str, Any]) -> tuple[Any, ...]:
        return machine.call_library(self.program, call, arguments, keywords)

    def check_made(
        self, buffer: Buffer, tensor: Any, shape: tuple[int, ...], strides: tuple[int, ...]
    ) -> None:
        machine.check_layout(buffer, _extents(tensor), shape, strides)


def _extents(tensor: Any) -> Extents:
    """Shape and strides of a torch tensor or a NumPy array."""
    if hasattr(tensor, "stride"):
        return Extents(tuple(tensor.shape), tuple(tensor.stride()))
    strides = tuple(stride // tensor.itemsize for stride in tensor.strides)
    return Extents(tensor.shape, strides)


class _Ready(NamedTuple):
    """What a batch's launches need that is the same for each call. `spans` holds name and access of
    each tensor; `launches` for each launch where it is, its arguments' size, its function, the
    position of its stream among the program's, and the places and tensors of addresses."""

    words: struct.Struct
    spans: tuple[tuple[str, bool], ...]
    launches: tuple[tuple[int, int, str, int | None, tuple[tuple[int, int], ...]], ...]


class Runner:
    """Runs batches of launches: the `run` of a PythonEntry."""

    def __init__(
        self,
        program: Program,
        image: Image,
        current: Callable[[], Opened],
        located: Callable[[FlyError], None] | None = None,
        ran: list[Ran] | None = None,
    ):
        self.program, self.image = program, image
        self.current, self.located, self.ran = current, located, ran
        read = {p.name for p in program.parameters if isinstance(p, Tensor) and p.access == "r"}
        self._read = read
        self.ready: list[_Ready] = []

    def run(self, batch: int, buffers: bytes, launches: bytes, *streams: Any) -> None:
        """Runs the launches of a batch, by its number; see
        `fly_host.native.specialisation.Batch`."""
        words, names, every = self.ready[batch]
        memory = words.unpack(buffers)
        spans, origins = [], []
        for number, (name, writable) in enumerate(names):
            host, nbytes, origin = memory[3 * number : 3 * number + 3]
            origins.append(origin)
            if nbytes:
                spans.append((name, host, nbytes, writable))
        opened = self.current()
        device = opened.device
        with opened.turn:
            module = opened.module(self.image)
            adopted = device.adopt_all(spans)
            try:
                addresses = self._addresses(memory, origins, adopted)
                for at, size, kernel, stream, pointers in every:
                    _, x, y, z, bx, by, bz, shared = _HEADER.unpack_from(launches, at)
                    if not ((x and y and z) or self.ran is not None):
                        continue
                    packed = bytearray(launches[at + 64 : at + 64 + size])
                    for offset, position in pointers:
                        value = int.from_bytes(packed[offset : offset + 8], "little", signed=True)
                        value += addresses[position]
                        packed[offset : offset + 8] = value.to_bytes(8, "little", signed=True)
                    function: Function = module.function(kernel)
                    grid, block = (x, y, z), (bx, by, bz)
                    given = None if stream is None else streams[stream]
                    if self.ran is None:
                        made = (grid, block, bytes(packed), shared, given)
                        reports.launch(device, function, *made)
                    else:
                        made = (kernel, grid, block, shared, bytes(packed), given)
                        self.ran.append(launch_packed(device, function, *made))
                device.synchronize()
            except FlyError as error:
                if self.located is not None:
                    self.located(error)
                raise
            finally:
                device.release_all(adopted)

    def _addresses(
        self, memory: tuple[int, ...], origins: list[int], adopted: list[int]
    ) -> list[int]:
        """Where the device sees element zero of each tensor; null for one without elements."""
        if len(adopted) == len(origins) and not any(origins):
            return adopted
        given = iter(adopted)
        return [
            next(given) + origin if memory[3 * number + 1] else 0
            for number, origin in enumerate(origins)
        ]

    def prepare(self, batch: Batch) -> _Ready:
        """What the batch's launches need in each call."""
        names = tuple((name, name not in self._read) for name in batch.tensors)
        every, at, every_stream = [], 0, specialisation.streams(self.program)
        for number, size, pointers in zip(batch.launches, batch.sizes, batch.pointers, strict=True):
            launch = self.program.launches[number]
            kernel = self.image.kernel(launch.kernel)
            stream = None if launch.stream is None else every_stream.index(launch.stream)
            places = tuple((offset - 64, position) for offset, position in pointers)
            every.append((at, kernel.argument_bytes, kernel.name, stream, places))
            at += size
        return _Ready(struct.Struct(f"<{3 * len(names)}q"), names, tuple(every))
