"""Measuring one compiled configuration: on the emulator by its counts, elsewhere by time.

Kernels work on copies of the tensors that they write, so the caller's tensors stay as they are, and
each configuration finds what the one before it found.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fly_common.errors import Fault
from fly_common.record import fields_of, record
from fly_host.program import Call as LibraryCall
from fly_host.program import Tensor, every_step

from fly.call.compiled import Compiled

if TYPE_CHECKING:
    from fly_image.image import Image
    from fly_run.launch.repeating import Recorder
    from fly_run.launch.runtime import Opened

    from fly.call.host_options import CompileOptions

WARM_UP, REPETITIONS = 5, 25
TIMED = f"median of {REPETITIONS} repetitions after {WARM_UP}, by the device's events"


@record
class Measurement:
    """What is known of a configuration: its `cost` in `unit`, or why it can't be used (`refused`).
    `is_fatal`: the device could not be used after it. `launches` tells more, for reports."""

    cost: float | None
    unit: str
    method: str
    refused: str = ""
    is_fatal: bool = False
    launches: Sequence[Mapping[str, Any]] = ()

    @property
    def as_bytes(self) -> bytes:
        held = {name: getattr(self, name) for name in fields_of(Measurement)}
        return json.dumps({**held, "launches": list(self.launches)}, ensure_ascii=False).encode()


def from_bytes(data: bytes) -> Measurement:
    return Measurement(**json.loads(data))


@record
class Arguments:
    """A call's arguments by name, as the caller has them (`given`) and as NumPy sees them
    (`viewed`). `reset` names tensors that each repetition must find as they are now."""

    given: Mapping[str, Any]
    viewed: Mapping[str, Any]
    reset: tuple[str, ...] = ()


def method_of(device: str) -> str:
    """How configurations are measured on a device of this name."""
    if device == "emulator":
        from fly.tune import counting

        return counting.METHOD
    return TIMED


def measure(
    compiled: Compiled, arguments: Arguments, device: str, host: CompileOptions
) -> Measurement:
    """Runs a configuration. `device` is as in `@fly.jit`. A fault is a measurement, too; after it,
    this process can't use a GPU. Other errors are raised."""
    compiled.check(arguments.given, arguments.viewed)

    def run(opened: Opened, image: Image) -> Measurement:
        name, unit = opened.device.name, "seconds"
        own = copied(compiled, arguments)
        try:
            if opened.device.instructions is not None:
                return _counted(compiled, own, host)
            seconds, method = _seconds(compiled, image, opened, own, arguments)
            return Measurement(seconds, unit, method)
        except Fault as fault:
            is_fatal = opened.device.own_memory
            return Measurement(None, unit, method_of(name), fault.message, is_fatal)

    return compiled.on_device(run, arguments.viewed.values(), device)


def copied(compiled: Compiled, arguments: Arguments) -> Arguments:
    """The arguments with copies of the tensors that kernels write."""
    from fly.call.arrays.views import as_value

    program = compiled.program
    assert program is not None
    given, viewed = dict(arguments.given), dict(arguments.viewed)
    for parameter in program.parameters:
        name = parameter.name
        if isinstance(parameter, Tensor) and parameter.access != "r" and name in viewed:
            given[name] = _copy(given[name], viewed[name])
            viewed[name] = as_value(given[name], name)
    return Arguments(given, viewed)


def _copy(value: Any, view: Any) -> Any:
    """A copy with the same strides: of torch's tensors by torch, of others by NumPy."""
    if hasattr(value, "clone") and hasattr(value, "data_ptr"):
        return value.detach().clone()
    import numpy as np
    from fly_run.launch.arrays.memory import span_of

    span = span_of(view)
    memory = np.empty(span.nbytes, np.uint8)
    made = np.ndarray(view.shape, view.dtype, memory, span.origin, view.strides)
    made[...] = view
    return made


def _counted(compiled: Compiled, arguments: Arguments, host: CompileOptions) -> Measurement:
    from fly_run.devices.options import Options

    from fly.tune.counting import METHOD, UNIT, Counter

    counter = Counter()
    options = Options(observers=(counter,))
    compiled.run_viewed(arguments.given, arguments.viewed, "emulator", options, host)
    return Measurement(float(round(counter.cycles)), UNIT, METHOD, launches=counter.launches)


def _seconds(
    compiled: Compiled, image: Image, opened: Opened, own: Arguments, original: Arguments
) -> tuple[float, str]:
    """The median time of a call's launches, and how it was measured. A program that calls library
    functions can't be repeated launch by launch: its calls are timed as a whole."""
    from fly_run.launch import execution
    from fly_run.launch.repeating import Recorder, repeat, times_of

    from fly.call.arrays.array_kinds import arrays_for

    program = compiled.program
    assert program is not None
    arrays = arrays_for(own.given.values())
    with opened.turn:
        module = opened.module(image)

        def call(device: Any) -> None:
            execution.run(program, image, module, device, own.given, own.viewed, arrays)

        if any(isinstance(step, LibraryCall) for step in every_step(program.steps)):
            return _whole(opened.device, lambda: call(opened.device)), f"{TIMED}, of whole calls"
        recorder = Recorder(opened.device)
        try:
            call(recorder)
            before = _restorer(recorder, own, original)
            found = repeat(recorder, WARM_UP, REPETITIONS, before)
        finally:
            recorder.finish()
    return times_of(found.whole).median, TIMED


def _whole(device: Any, call: Callable[[], None]) -> float:
    import statistics

    for _ in range(WARM_UP):
        call()
    found = []
    for _ in range(REPETITIONS):
        start = device.event()
        call()
        end = device.event()
        device.synchronize()
        found.append(device.elapsed(start, end))
    return statistics.median(found)


def _restorer(
    recorder: Recorder, own: Arguments, original: Arguments
) -> Callable[[], object] | None:
    """What puts the tensors of `reset` back, in the memory that kernels see."""
    import numpy as np
    from fly_run.devices.protocol import TO_DEVICE
    from fly_run.launch.arrays.memory import span_of

    steps: list[Callable[[], object]] = []
    for name in original.reset:
        mine, theirs = own.given[name], original.given[name]
        if mine is theirs:
            continue  # kernels only read it
        if hasattr(mine, "copy_"):
            with_torch = mine.copy_
            steps.append(lambda put=with_torch, value=theirs: put(value))
        else:
            steps.append(
                lambda to=own.viewed[name], value=original.viewed[name]: np.copyto(to, value)
            )
        if not recorder.device.own_memory or span_of(own.viewed[name]).place is not None:
            continue
        span = span_of(own.viewed[name])
        for address, host, nbytes in recorder.uploads:
            if host <= span.host and span.host + span.nbytes <= host + nbytes:
                there = address + span.host - host
                again = (there, span.host, span.nbytes, TO_DEVICE)
                steps.append(lambda again=again: recorder.device.copy(*again))
    if not steps:
        return None

    def restore() -> None:
        for step in steps:
            step()

    return restore
