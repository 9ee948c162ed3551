"""Running a program, or one kernel, on a device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from fly_host.program import Program, Stream, Tensor
from fly_host.readers import interpreter
from fly_image.image import Image

from fly_run.devices.protocol import Device, Module
from fly_run.launch.arrays.memory import Memory, place_of, span_of
from fly_run.launch.arrays.protocol import NUMPY, Arrays
from fly_run.launch.arrays.tensors import extents_of
from fly_run.launch.checking import check
from fly_run.launch.completed import Ran
from fly_run.launch.machine import DeviceMachine, Held

if TYPE_CHECKING:
    from fly_host.readers.machine import Machine

Reader = Callable[["Program", "Machine", Mapping[str, Any]], Any]


class Outcome(NamedTuple):
    """What a program returned, and its launches."""

    results: Any
    ran: list[Ran]


def run(
    program: Program,
    image: Image,
    module: Module,
    device: Device,
    values: Mapping[str, Any],
    viewed: Mapping[str, Any] | None = None,
    arrays: Arrays = NUMPY,
    reader: Reader = interpreter.run,
) -> Outcome:
    """Runs a program on arguments by name: arrays of `arrays`, numbers, streams. `viewed` has the
    arrays as NumPy's, which they are already where it is None. The arrays that kernels write hold
    the results when it returns; the device sees them as long as this takes. Arrays in the device's
    own memory are used where they are, and nothing waits for the kernels.

    Errors are those of `checking.check`, of the reader, of the device.
    """
    checked, scalars = check(program, values if viewed is None else viewed)
    tensors = [p for p in program.parameters if isinstance(p, Tensor)]
    place = place_of(checked)
    memory = Memory(device)
    machine = DeviceMachine(program, image, module, device, memory, arrays, place)
    try:
        arguments: dict[str, Any] = dict(scalars)
        spans = [(p.name, span_of(checked[p.name]), p.access != "r") for p in tensors]
        for parameter, address in zip(tensors, memory.adopt_all(spans), strict=True):
            name = parameter.name
            extents = extents_of(parameter, checked[name])
            arguments[name] = Held(values[name], checked[name], extents, address)
        for parameter in program.parameters:
            if isinstance(parameter, Stream) and parameter.name in values:
                arguments[parameter.name] = values[parameter.name]
        results = reader(program, machine, arguments)
        if place is None:
            memory.to_host()
        return Outcome(_outside(results), machine.ran)
    finally:
        memory.close()


def _outside(result: Any) -> Any:
    """A result as the caller sees it."""
    if isinstance(result, tuple):
        return tuple(map(_outside, result))
    return result.value if isinstance(result, Held) else result
