"""Prepared calls: they launch and call libraries, and do nothing else."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from fly_host import program as host
from fly_host.native import calling
from fly_host.native.specialisation import PythonEntry, specialise
from fly_host.native.unavailable import Unavailable
from fly_host.program import Operand, Word

from .recording import RecordingDriver, limits_of
from .test_guards import native, program
from .test_launchers import doubled

torch: Any = pytest.importorskip("torch")


def test_a_prepared_call_launches_the_same_each_time() -> None:
    made, array = doubled("torch")
    found, driver = native(made, array)
    handle = found.prepare(array)
    assert driver.log == []
    first = handle()
    assert handle() is first
    assert len(driver.log) == 2
    assert driver.log[0] == driver.log[1]
    assert int.from_bytes(driver.log[0][3][:8], "little") == first.data_ptr()
    assert handle(1) is NotImplemented
    assert found.prepare(array, array) is NotImplemented
    calls: list[Any] = []
    entry = PythonEntry(lambda *given: calls.append(given))
    python = calling.compile(specialise(made, (array,), limits_of(made)), entry).prepare(array)
    assert python() is python()
    assert len(calls) == 2
    assert calls[0] == calls[1]


def test_a_prepared_call_keeps_its_tensors() -> None:
    import gc
    import weakref

    made, _ = doubled("torch")
    array = torch.ones(4)
    found, _ = native(made, array)
    handle = found.prepare(array)
    gone = weakref.ref(array)
    del array
    gc.collect()
    assert gone() is not None
    del handle
    gc.collect()
    assert gone() is None


def test_streams_of_prepared_calls() -> None:
    launch = host.Launch("k", (0,) * 3, (0,) * 3, 1, (), "s")
    expressions = (("const", 1), ("const", 0))
    made = host.Program("f", "gfx942", (host.Stream("s"),), expressions, (launch,))

    class Stream:
        cuda_stream = 99

    found, driver = native(made, None, stream=lambda: 42)
    for stream in (None, 7, Stream()):
        assert found.prepare(stream)() is None
    assert [log[2] for log in driver.log] == [42, 7, 99]
    for stream in ("x", object(), 1 << 70):
        assert found.prepare(stream) is NotImplemented


def test_empty_grids_of_prepared_calls() -> None:
    made = program(host.Scalar("n", "i64"), expressions=(("scalar", "n"), ("const", 0)))
    launch = made.launches[0]
    one = host.Launch(launch.kernel, (0, 2, 2), (2, 2, 2), 1, launch.arguments)
    made = program(*made.parameters, expressions=(*made.expressions, ("const", 1)), steps=(one,))
    found, driver = native(made, 1)
    assert found.prepare(0)() is None
    assert driver.log == []
    assert found.prepare(3)() is None
    assert driver.log[0][1][:3] == (3, 1, 1)


class Library:
    """A machine that calls functions; `log` has the calls."""

    def __init__(self, **functions: Any):
        self.functions, self.log = functions, list[str]()

    def call(self, step: Any, arguments: list[Any], keywords: Any) -> tuple[Any, ...]:
        self.log.append(step.function)
        made = self.functions[step.function](*arguments, **keywords)
        return made if isinstance(made, tuple) else ()

    def check_made(self, buffer: Any, tensor: Any, shape: Any, strides: Any) -> None:
        assert (tuple(tensor.shape), buffer.name) == (shape, "B")


def calling_a_library(kind: str) -> tuple[host.Program, Any]:
    """f(A) launches on A, makes B of it by a function, launches on B, calls another on B; B."""
    tensor = host.Tensor("A", "f32", (4,), (1,), "rw")
    expressions = (("const", 1), ("const", 0), ("const", 4))
    steps = (
        host.Launch("k", (0,) * 3, (0,) * 3, 1, ((Word("pointer", "A"),),)),
        host.Call("doubled", (Operand("tensor", "A"), Operand("constant", 2)), (), ("B",)),
        host.Launch("k", (0,) * 3, (0,) * 3, 1, ((Word("pointer", "B"),),)),
        host.Call("seen", (), (("out", Operand("tensor", "B")),)),
    )
    buffers = (host.Buffer("B", "f32", (2,), (0,), 2),)
    made = host.Program(
        *("f", "gfx942", (tensor,), expressions, steps, buffers, Operand("tensor", "B"))
    )
    return made, torch.ones(4) if kind == "torch" else numpy.ones(4, numpy.float32)


@pytest.mark.parametrize("driven", [True, False])
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_prepared_calls_call_libraries(kind: str, driven: bool) -> None:
    made, array = calling_a_library(kind)
    seen: list[Any] = []
    machine: Any = Library(
        doubled=lambda A, by: (A * by,),
        seen=lambda out: seen.append((out, float(out[0]))),
    )
    driver, batches = RecordingDriver(2), list[int]()
    entry = driver.entry() if driven else PythonEntry(lambda number, *_: batches.append(number))
    found = calling.compile(specialise(made, (array,), limits_of(made)), entry, machine)
    handle = found.prepare(array)
    assert (machine.log, driver.log, batches) == ([], [], [])
    result = handle()
    assert machine.log == ["doubled", "seen"]
    assert [float(one) for one in result] == [2.0] * 4
    array[:] = 3
    assert handle() is result
    assert [float(one) for one in result] == [6.0] * 4
    assert [value for _, value in seen] == [2.0, 6.0]
    assert all(out is result for out, _ in seen)
    if driven:
        first, second = (int.from_bytes(log[3][:8], "little") for log in driver.log[:2])
        pointers = [array, result] if kind == "torch" else [array.ctypes, result.ctypes]
        where = [one.data_ptr() if kind == "torch" else one.data for one in pointers]
        assert [first, second] == where
        assert driver.log[:2] == driver.log[2:]
    else:
        assert batches == [0, 1, 0, 1]


def test_a_prepared_call_takes_no_gradient() -> None:
    made, _ = calling_a_library("torch")
    array = torch.ones(4, requires_grad=True)
    machine: Any = Library(doubled=lambda A, by: (A * by,), seen=lambda out: None)
    entry = PythonEntry(lambda *_: None)
    handle = calling.compile(specialise(made, (array,), limits_of(made)), entry, machine).prepare(
        array
    )
    assert not handle().requires_grad
    assert handle().tolist() == [2.0] * 4


def test_library_calls_need_somebody_who_calls() -> None:
    made = host.Program("f", "gfx942", (), (), (host.Call("torch.relu", ()),))
    with pytest.raises(Unavailable, match=r"could call torch\.relu"):
        calling.compile(specialise(made, (), []), PythonEntry(print))
