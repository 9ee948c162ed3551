"""nvFuser's host IR JIT tests (tests/cpp/test_host_ir_jit.cpp) as host programs, written anew: each
is run by the interpreter, as generated Python and as native code, and gives the sizes, strides and
elements that are expected. `tests/fly_host/domains/test_nvfuser_cases.py` has the numbers alone.

There is no device: the kernel of these programs copies the tensor of its first argument to that of
its second one.
"""

from __future__ import annotations

import ctypes
import re
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest
from fly_common.errors import InputError
from fly_host import program as host
from fly_host.domains.domain import parse
from fly_host.domains.inference import infer
from fly_host.graph import Graph
from fly_host.native import calling
from fly_host.native.specialisation import Array, Options, Specialisation, specialise
from fly_host.program import Operand, View, Word
from fly_host.readers import interpreter, python_code
from fly_host.validation import validate
from fly_run.launch.machine import call_library
from host_chains.nvfuser_cases import CASES

from .recording import Recorder, RecordingEntry, RecordingMachine, limits_of, strides_of

torch: Any = pytest.importorskip("torch")
KINDS = pytest.mark.parametrize("kind", ["numpy", "torch"])


class Copying(Recorder):
    """The copy kernel."""

    def launched(self, number: int, numbers: Any, packed: Any, pointers: Any, stream: Any) -> None:
        super().launched(number, numbers, packed, [], stream)
        (source, first, nbytes, _), (target, *rest) = pointers
        assert (source, target, nbytes) == (first, rest[0], rest[1])
        ctypes.memmove(target, source, nbytes)


class Machine(RecordingMachine):
    """It calls registered functions, and keeps what it made until that is freed."""

    def call(self, call: Any, arguments: Any, keywords: Any) -> tuple[Any, ...]:
        return call_library(self.program, call, arguments, keywords)

    def free(self, tensor: Any) -> None:
        del self.made[id(tensor)]


class Maker:
    """A program while it is made."""

    def __init__(self, *parameters: Any):
        self.graph, self.parameters = Graph(), parameters
        self.steps: list[Any] = []
        self.tensors: list[Any] = []

    def buffer(self, shape: list[int], allocation: str = "", dtype: str = "f32") -> str:
        """A buffer of this shape (indices of expressions), whose checks come first."""
        found = infer(self.graph, shape, parse(allocation))
        assert found.strides is not None, found.reason
        name = f"T{len(self.tensors)}"
        self.steps += [host.Check(check.condition, check.message) for check in found.checks]
        self.tensors.append(host.Buffer(name, dtype, found.shape, found.strides, found.elements))
        return name

    def allocate(self, shape: list[int], allocation: str = "", dtype: str = "f32") -> str:
        name = self.buffer(shape, allocation, dtype)
        self.steps.append(host.Allocate(name))
        return name

    def copy(self, source: str, target: str) -> None:
        one, zero = self.graph.const(1), self.graph.const(0)
        words = ((Word("pointer", source),), (Word("pointer", target),))
        self.steps.append(host.Launch("copy", (one,) * 3, (one,) * 3, zero, words))

    def call(self, function: str, *names: str, result: str | None = None, **keywords: str) -> None:
        operands = tuple(Operand("tensor", name) for name in names)
        named = tuple((key, Operand("tensor", name)) for key, name in keywords.items())
        results = () if result is None else (result,)
        self.steps.append(host.Call(function, operands, named, results))

    def extents(self, name: str, rank: int) -> list[int]:
        return [self.graph.extent(name, axis) for axis in range(rank)]

    def program(self, *results: str | Operand) -> host.Program:
        found = [Operand("tensor", one) if isinstance(one, str) else one for one in results]
        made = host.Program(
            *("f", "gfx942", self.parameters, tuple(self.graph.expressions)),
            *(tuple(self.steps), tuple(self.tensors)),
            found[0] if len(found) == 1 else tuple(found) or None,
            tuple(f"result{number}" for number in range(len(found))),
        )
        validate(made)
        return made


def tensor(name: str, rank: int) -> host.Tensor:
    return host.Tensor(name, "f32", (None,) * rank, (None,) * rank)


def readers(made: host.Program, kind: str, *given: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Each reader of a program for arguments like these, by name."""
    limits = limits_of(made)
    special = specialise(made, given, limits)
    special = Specialisation(made, special.arrays, limits, Array(kind), special.dtypes)
    names = [parameter.name for parameter in made.parameters]

    def python(run: Any) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            named = dict(zip(names, arguments, strict=True))
            return run(made, Machine(Copying(special, named)), named)

        return call

    yield "interpreter", python(interpreter.run)
    yield "generated Python", python(python_code.run)
    for options in (Options(), Options(in_process=False)):
        machine = Machine(Copying(special, dict(zip(names, given, strict=True))))
        yield "native code", compiled(special, machine, options).call


def compiled(special: Specialisation, machine: Machine, options: Options) -> calling.Native:
    entry = RecordingEntry(machine.recorder, lambda: native.batches)
    native = calling.compile(special, entry.entry(), machine, options)
    return native


def refuses(reader: str, run: Callable[..., Any], message: str, *arguments: Any) -> None:
    """Native code leaves such a call to Python."""
    if reader == "native code":
        assert run(*arguments) is NotImplemented
        return
    with pytest.raises(InputError, match="^" + re.escape(message)):
        run(*arguments)


def array(kind: str, *shape: int) -> Any:
    values = numpy.random.default_rng(1).integers(-4, 5, shape).astype(numpy.float32)
    return torch.from_numpy(values) if kind == "torch" else values


def layout(made: Any) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Sizes, strides, and how many bytes were allocated."""
    if isinstance(made, torch.Tensor):
        return tuple(made.shape), strides_of(made), made.untyped_storage().nbytes()
    base = made.base if made.base is not None else made
    return tuple(made.shape), strides_of(made), base.nbytes


def equal(one: Any, other: Any) -> bool:
    return type(one) is type(other) and numpy.array_equal(numpy.asarray(one), numpy.asarray(other))


@KINDS
def test_set(kind: str) -> None:
    maker = Maker(tensor("A", 2))
    maker.copy("A", maker.allocate(maker.extents("A", 2)))
    given = array(kind, 32, 16)
    for name, run in readers(maker.program("T0"), kind, given):
        found = run(given)
        assert layout(found) == ((32, 16), (16, 1), 4 * 512), name
        assert equal(found, given), name


@KINDS
def test_container_of_several_sets(kind: str) -> None:
    maker = Maker(*(tensor(name, 2) for name in "ABC"))
    for name in "ABC":
        maker.copy(name, maker.allocate(maker.extents(name, 2)))
    given = [array(kind, *shape) for shape in ((4, 8), (3, 1), (1, 5))]
    for name, run in readers(maker.program("T0", "T1", "T2"), kind, *given):
        found = run(*given)
        assert [layout(one)[:2] for one in found] == [
            ((4, 8), (8, 1)),
            ((3, 1), (1, 1)),
            ((1, 5), (5, 1)),
        ], name
        assert all(map(equal, found, given)), name


def test_deallocate() -> None:
    """After the call there is the memory of what it returns, and after that nothing."""
    maker = Maker()
    for shape in ((8, 64), (16, 32), (32, 64)):
        maker.allocate([maker.graph.const(extent) for extent in shape])
    maker.steps += [host.Free("T0"), host.Free("T1")]

    def taken() -> int:
        arrays = tracemalloc.DomainFilter(True, numpy.lib.tracemalloc_domain)
        traces = tracemalloc.take_snapshot().filter_traces([arrays]).traces
        return sum(trace.size for trace in traces)

    for name, run in readers(maker.program("T2"), "numpy"):
        run()
        tracemalloc.start()
        try:
            found = run()
            assert layout(found) == ((32, 64), (64, 1), 4 * 2048), name
            assert taken() == 4 * 2048, name
            del found
            assert taken() == 0, name
        finally:
            tracemalloc.stop()


@KINDS
def test_dynamic_sized_tensor_allocate(kind: str) -> None:
    maker = Maker(tensor("A", 2))
    maker.allocate(maker.extents("A", 2), "split(0, 16) split(0, 2)")
    given = array(kind, 64, 32)
    for name, run in readers(maker.program("T0"), kind, given):
        assert layout(run(given)) == ((64, 32), (32, 1), 4 * 2048), name
        assert layout(run(array(kind, 32, 5))) == ((32, 5), (5, 1), 4 * 160), name
        # 24 rows are no multiple of 16, and 16 are one part, which has no half.
        for rows, split in ((24, "split(0, 16): the extent 24"), (16, "split(0, 2): the extent 1")):
            refuses(name, run, f"{split} is not a multiple of ", array(kind, rows, 5))


@KINDS
@pytest.mark.parametrize(
    ("swapped", "allocation", "sizes", "strides"),
    [
        (False, "reorder(1, 0)", (64, 32), (1, 64)),
        (True, "", (32, 64), (64, 1)),
        (False, "reorder(-1, -2)", (64, 32), (1, 64)),
    ],
    ids=["reorder", "permute", "allocation domain reorder"],
)
def test_orders(kind: str, swapped: bool, allocation: str, sizes: Any, strides: Any) -> None:
    maker = Maker(tensor("A", 2))
    shape = maker.extents("A", 2)
    maker.allocate(shape[::-1] if swapped else shape, allocation)
    given = array(kind, 64, 32)
    for name, run in readers(maker.program("T0"), kind, given):
        assert layout(run(given)) == (sizes, strides, 4 * 2048), name


@KINDS
def test_broadcast(kind: str) -> None:
    maker = Maker()
    maker.allocate([maker.graph.const(64), maker.graph.const(32)], "broadcast(1)")
    expanded = "broadcast(0) broadcast(0) expand(0, 64) expand(1, 32)"
    maker.allocate([maker.graph.const(16)], expanded)
    for name, run in readers(maker.program("T0", "T1"), kind):
        first, second = run()
        assert layout(first) == ((64, 1, 32), (32, 0, 1), 4 * 2048), name
        assert layout(second) == ((64, 32, 16), (0, 0, 1), 4 * 16), name


@KINDS
def test_launch_kernel(kind: str) -> None:
    """A temporary between two launches, freed behind the second one."""
    maker = Maker(tensor("A", 2))
    between, last = (maker.allocate(maker.extents("A", 2)) for _ in range(2))
    maker.copy("A", between)
    maker.copy(between, last)
    maker.steps.append(host.Free(between))
    given = array(kind, 32, 32)
    for name, run in readers(maker.program(last), kind, given):
        found = run(given)
        assert layout(found) == ((32, 32), (32, 1), 4 * 1024), name
        assert equal(found, given), name


@KINDS
@pytest.mark.parametrize("out", ["made", "allocated", "given"])
def test_matmul(kind: str, out: str) -> None:
    maker = Maker(tensor("A", 3), tensor("B", 3), *([tensor("C", 3)] if out == "given" else ()))
    shape = [*maker.extents("A", 3)[:2], maker.graph.extent("B", 2)]
    if out == "made":
        name = maker.buffer(shape)
        maker.call("torch.matmul", "A", "B", result=name)
    else:
        name = "C" if out == "given" else maker.allocate(shape)
        maker.call("torch.matmul", "A", "B", out=name)
    given = [array(kind, *shape) for shape in ((32, 64, 128), (32, 128, 256))]
    wanted = numpy.asarray(given[0]) @ numpy.asarray(given[1])
    if out == "given":
        given.append(array(kind, 32, 64, 256))
    for reader, run in readers(maker.program(name), kind, *given):
        found = run(*given)
        assert layout(found) == ((32, 64, 256), (64 * 256, 256, 1), 4 * wanted.size), reader
        assert equal(numpy.asarray(found), wanted), reader
        assert (found is given[-1]) == (out == "given"), reader


@KINDS
def test_linear(kind: str) -> None:
    """With bias and without, into tensors that are given: nothing is returned."""
    names = {"X": 3, "W": 2, "b": 1, "with_bias": 3, "without": 3}
    maker = Maker(*(tensor(name, rank) for name, rank in names.items()))
    maker.call("torch.nn.functional.linear", "X", "W", "b", out="with_bias")
    maker.call("torch.nn.functional.linear", "X", "W", out="without")
    x, w, b = (array(kind, *shape) for shape in ((8, 64, 128), (256, 128), (256,)))
    wanted = numpy.asarray(x) @ numpy.asarray(w).T
    for name, run in readers(maker.program(), kind, x, w, b, *[array(kind, 8, 64, 256)] * 2):
        first, second = (array(kind, 8, 64, 256) for _ in range(2))
        assert run(x, w, b, first, second) is None, name
        assert equal(numpy.asarray(first), wanted + numpy.asarray(b)), name
        assert equal(numpy.asarray(second), wanted), name
        assert strides_of(first) == strides_of(second) == (64 * 256, 256, 1), name


def reshaped(maker: Maker, shape: list[int]) -> Operand:
    """A's elements, contiguous, in another shape."""
    found = infer(maker.graph, shape)
    assert found.strides is not None
    total = maker.graph.product(maker.extents("A", 3))
    same = maker.graph.eq(total, found.elements)
    maker.steps.append(host.Check(same, (total, " elements, not ", found.elements)))
    return Operand("view", View("A", found.shape, found.strides, maker.graph.const(0)))


@KINDS
@pytest.mark.parametrize("dynamic", [False, True])
def test_reshape(kind: str, dynamic: bool) -> None:
    """[2, 3, 4] to [2, 12], and to two numbers of the call: a view of the same memory."""
    contiguous = host.Tensor("A", "f32", (None,) * 3, (None,) * 3, contiguous=True)
    sizes = [host.Scalar(name, "i64") for name in ("m", "n")]
    maker = Maker(contiguous, *(sizes if dynamic else ()))
    m, *others = maker.extents("A", 3)
    shape = [m, maker.graph.product(others)]
    if dynamic:
        shape = [maker.graph.scalar("m"), maker.graph.scalar("n")]
    view = reshaped(maker, shape)
    given = array(kind, 2, 3, 4)
    numbers = (6, 4) if dynamic else ()
    for name, run in readers(maker.program(view), kind, given, *numbers):
        found = run(given, *numbers)
        wanted = given.reshape(numbers or (2, 12))
        assert tuple(found.shape) == tuple(wanted.shape), name
        assert strides_of(found) == strides_of(wanted), name
        assert equal(found, wanted), name
        wanted[0, 0] = 99
        assert found[0, 0] == 99, name
        if dynamic:
            refuses(name, run, "24 elements, not 20", given, 5, 4)


# What nvFuser's cases have not: no elements, no axes, one element over 2^31 positions.
EDGES = {
    "no elements": ((0, 5), "reorder(1, 0)", (0, 5), (1, 1), 0),
    "no elements, padded": ((3, 0), "split(1, 16, padded=True)", (3, 0), (16, 1), 0),
    "no axes": ((), "", (), (), 1),
    "over 2^31": ((3,), f"broadcast(0) expand(0, {2**33})", (2**33, 3), (0, 1), 3),
}


@KINDS
@pytest.mark.parametrize("name", [*CASES, *EDGES])
def test_allocation(name: str, kind: str) -> None:
    """Every case of tests/fly_host/domains/test_nvfuser_cases.py, 4581's merges and splits too: a
    tensor of the shape of A, in memory as the allocation says."""
    shape, text, logical, strides, elements = {**CASES, **EDGES}[name]
    maker = Maker(tensor("A", len(shape)))
    maker.allocate(maker.extents("A", len(shape)), text)
    given = array(kind, *shape)
    for reader, run in readers(maker.program("T0"), kind, given):
        found = run(given)
        sizes, seen, nbytes = layout(found)
        assert sizes == logical, reader
        assert nbytes == 4 * elements, reader
        # NumPy has one stride for an axis of one position, or of no elements; nobody can see it.
        visible = [extent > 1 and 0 not in logical for extent in logical]
        if kind == "torch":
            visible = [True] * len(logical)
        for axis, one in enumerate(visible):
            assert not one or seen[axis] == strides[axis], reader
