"""Native code and generated Python against the interpreter, on random programs: the same launches
with the same packed bytes, the same results, the same errors."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from fly_common.errors import FlyError, InputError
from fly_host.native import calling
from fly_host.native.specialisation import Array, Specialisation, specialise
from fly_host.readers import interpreter, python_code
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from . import random_programs
from .random_programs import Case, Layout
from .recording import (
    Recorder,
    RecordingDriver,
    RecordingEntry,
    RecordingMachine,
    is_tensor,
    limits_of,
    strides_of,
)

torch: Any = pytest.importorskip("torch")


class Failed(NamedTuple):
    kind: type
    text: str


def made(case: Case, value: Any) -> Any:
    return value.make(case.kind) if isinstance(value, Layout) else value


def make(kind: str, extent: int, dtype: str, *_: Any, scale: Any = None) -> Any:
    """The library function of random programs."""
    assert scale in (None, (1, 2.0, True))
    if extent < 0:
        raise InputError(f"an extent of {extent}")
    if kind == "torch":
        return torch.zeros(extent, dtype={"f32": torch.float32, "i32": torch.int32}[dtype])
    import numpy

    return numpy.zeros(extent, {"f32": "f4", "i32": "i4"}[dtype])


def machine_of(case: Case, specialisation: Specialisation, arguments: dict[str, Any]) -> Any:
    recorder = Recorder(specialisation, arguments)
    functions = {"make": lambda *args, **keys: make(case.kind, *args, **keys)}
    return RecordingMachine(recorder, functions)


def specialised(case: Case, arguments: list[Any]) -> Specialisation:
    found = specialise(case.program, arguments, limits_of(case.program))
    if not found.arrays:
        found = Specialisation(case.program, {}, found.limits, Array(case.kind), found.dtypes)
    return found


def shown(value: Any) -> Any:
    """A result as something to compare."""
    if isinstance(value, tuple):
        return tuple(map(shown, value))
    if is_tensor(value):
        size = math.prod(value.shape)
        data = [] if not size else raw(value)
        return str(value.dtype), tuple(value.shape), strides_of(value), data
    return type(value), repr(value)


def raw(array: Any) -> bytes:
    """The bytes of the elements."""
    if hasattr(array, "data_ptr"):
        flat = torch.empty(array.numel(), dtype=array.dtype).copy_(array.reshape(-1))
        return flat.view(torch.uint8).numpy().tobytes()
    return array.tobytes()


def by_python(case: Case, run: Callable[..., Any]) -> Any:
    """What a reader in Python returns, launches and leaves in the arguments."""
    arguments = [made(case, value) for value in case.arguments]
    named = dict(zip((p.name for p in case.program.parameters), arguments, strict=True))
    specialisation = specialised(case, arguments)
    machine = machine_of(case, specialisation, named)
    for name, value in named.items():  # as `check_scalar` makes them
        scalar: Any = case.program.parameter(name)
        if getattr(scalar, "dtype", "") in ("f16", "bf16", "f32", "f64") and not is_tensor(value):
            named[name] = float(value)
    try:
        result = shown(run(case.program, machine, named))
    except FlyError as error:
        result = Failed(type(error), str(error))
    return result, machine.recorder.log, [shown(value) for value in arguments if is_tensor(value)]


def compiled(case: Case) -> tuple[Any, Any, list[Any]]:
    arguments = [made(case, value) for value in case.arguments]
    named = dict(zip((p.name for p in case.program.parameters), arguments, strict=True))
    specialisation = specialised(case, arguments)
    machine = machine_of(case, specialisation, named)
    entry = RecordingEntry(machine.recorder, lambda: native.batches)
    native = calling.compile(specialisation, entry.entry(), machine)
    return native, machine, arguments


@given(st.integers(0, 2**32))
@settings(max_examples=200, phases=[Phase.explicit, Phase.generate])
def test_the_readers_agree(seed: int) -> None:
    agree(random_programs.case(seed))


def agree(case: Case) -> str:
    """Runs a case every way; tells what became of it."""
    expected, log, tensors = by_python(case, interpreter.run)
    assert by_python(case, python_code.run) == (expected, log, tensors)
    native, machine, arguments = compiled(case)
    try:
        found = native.call(*arguments)
        result = found if found is NotImplemented else shown(found)
    except FlyError as error:
        result = Failed(type(error), str(error))
    if result is NotImplemented:
        # Only what fails may be left to Python, and nothing may have happened.
        assert isinstance(expected, Failed), expected
        assert machine.recorder.log == []
        return "miss"
    assert machine.recorder.log == log
    assert result == expected
    assert [shown(value) for value in arguments if is_tensor(value)] == tensors
    against_driver(case, log)
    return "failed" if isinstance(result, Failed) else "returned"


def against_driver(case: Case, log: list[Any]) -> None:
    """The same program through a driver's function: the same packed bytes but for addresses."""
    arguments = [made(case, value) for value in case.arguments]
    named = dict(zip((p.name for p in case.program.parameters), arguments, strict=True))
    specialisation = specialised(case, arguments)
    machine = machine_of(case, specialisation, named)
    driver = RecordingDriver(len(case.program.launches))
    native = calling.compile(specialisation, driver.entry(), machine)
    with contextlib.suppress(FlyError):
        assert native.call(*arguments) is not NotImplemented
    assert len(driver.log) == len(log)
    addresses = {name: at for at, name in machine.recorder.names.items()}
    for (number, numbers, stream, packed), wanted in zip(driver.log, log, strict=True):
        assert (number, numbers, stream) == (wanted[0], wanted[1], wanted[4] or 0)
        hidden = bytearray(packed)
        places = pointer_places(case, specialisation, number)
        for place, (name, _, nbytes, offset) in zip(places, wanted[3], strict=True):
            if nbytes and name in addresses:
                found = int.from_bytes(hidden[place : place + 8], "little")
                assert found == addresses[name] + offset
            hidden[place : place + 8] = bytes(8)
        assert bytes(hidden) == wanted[2]


def pointer_places(case: Case, specialisation: Specialisation, number: int) -> list[int]:
    from .recording import word_size

    places, limits = [], specialisation.limits[number]
    launch = case.program.launches[number]
    for (offset, _), words in zip(limits.arguments, launch.arguments, strict=True):
        at = offset
        for word in words:
            if word.kind == "pointer":
                places.append(at)
            at += word_size(case.program, word)
    return places
