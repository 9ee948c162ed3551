"""Memory of devices, and what a machine does for a host program, on a device that writes down."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from fly_common.errors import InputError, UsageError
from fly_common.record import replace
from fly_host.program import Buffer, Call, Launch, Operand, Program, Scalar, Stream, Tensor, Word
from fly_host.readers.values import Extents
from fly_run.launch import machine as machines
from fly_run.launch import packing
from fly_run.launch.arrays.memory import Memory, Span, span_of
from fly_run.launch.arrays.protocol import NUMPY
from fly_run.launch.arrays.tensors import check_array, check_symbols
from fly_run.launch.checking import check
from fly_run.launch.machine import DeviceMachine, Held, check_room


@dataclass
class Device:
    """Adopts memory at 0x1000, 0x2000, …"""

    name, target, concurrent, remarks = "recorder", "gfx942", False, ()
    own_memory, place = False, None
    events: list[Any] = field(default_factory=list)
    adopted: int = 0
    instructions: int = 0

    def adopt(self, pointer, nbytes, *, writable=True, label=""):
        self.adopted += 1
        self.events.append(("adopt", label, pointer, nbytes, writable))
        return 0x1000 * self.adopted

    def adopt_all(self, spans):
        return [self.adopt(at, n, writable=writable, label=name) for name, at, n, writable in spans]

    def release(self, address):
        self.events.append(("release", address))

    def release_all(self, addresses):
        self.events.append(("release all", addresses))

    def synchronize(self, what=None):
        self.events.append("synchronize")

    def function(self, name):
        return f"function {name}"

    def launch(self, function, grid, block, packed, shared=0, stream=None):
        self.events.append((function, grid, block, packed, shared, stream))


@pytest.fixture
def device() -> Device:
    return Device()


@pytest.fixture
def machine(add, device) -> DeviceMachine:
    return DeviceMachine(add.program, add, device, device, Memory(device), NUMPY)


# -- memory


def test_the_bytes_of_arrays():
    x = np.zeros((4, 6), np.float32)
    at = x.ctypes.data
    assert span_of(x) == Span(at, 96, 0)
    assert span_of(x[1:3, ::2]) == Span(at + 24, 24 + 16 + 4, 0)
    assert span_of(x[::-1]) == Span(at, 96, 72)
    assert span_of(x[::-1, ::-1]) == Span(at, 96, 92)
    assert span_of(x[:0]) == Span(at, 0, 0)


def test_memory_is_adopted_and_given_back(device):
    memory = Memory(device)
    a = memory.adopt(Span(100, 8, 4), "A")
    assert a.address == 0x1004
    nothing = memory.adopt(Span(100, 0, 4), "nothing")
    assert nothing.address == 0
    spans = [("B", Span(1, 2, 1), False), ("C", Span(3, 0, 0), True), ("D", Span(4, 8, 0), True)]
    assert memory.adopt_all(spans) == [0x2001, 0, 0x3000]
    nothing.release()
    memory.release(0x2000)
    memory.close()
    memory.close()
    a.release()
    assert device.events == [
        ("adopt", "A", 100, 8, True),
        ("adopt", "B", 1, 2, False),
        ("adopt", "D", 4, 8, True),
        ("release", 0x2000),
        ("release all", [0x1000, 0x3000]),
    ]


def test_memory_without_a_name_is_given_back(device):
    memory = Memory(device)
    a = memory.adopt(Span(100, 8, 0), "A")
    assert device.events == [("adopt", "A", 100, 8, True)]
    del a
    memory.close()
    assert device.events[1:] == [("release", 0x1000)]


# -- tensors


def buffer(name: str = "T", dtype: str = "f32") -> Buffer:
    return Buffer(name, dtype, (0, 0), (0, 0), 0)


def test_a_tensor_that_the_program_allocates(machine, device):
    made = machine.allocate(buffer(), (3, 4), (5, 1), 20)
    assert (made.value.shape, made.value.strides) == ((3, 4), (20, 4))
    assert made.array is made.value
    assert machine.extents(made) == Extents((3, 4), (5, 1))
    assert made.address == 0x1000
    # All that was allocated, not only what the array reaches.
    assert device.events == [("adopt", "T", made.value.ctypes.data, 80, True)]
    machine.free(made)
    machine.free(made)
    assert device.events[1:] == [("release", 0x1000)]


def test_only_own_tensors_are_freed(machine, device):
    given = np.zeros(3, np.float32)
    machine.free(Held(given, given, Extents((3,), (1,)), 0x5000))
    assert device.events == []


def test_a_view_is_at_its_offset(machine):
    whole = np.arange(20, dtype=np.float32)
    held = Held(whole, whole, Extents((20,), (1,)), 0x5000)
    view = machine.view(held, (2, 3), (6, 2), 5)
    np.testing.assert_array_equal(view.value, [[5, 7, 9], [11, 13, 15]])
    assert np.shares_memory(view.value, whole)
    assert (view.address, view.adopted) == (0x5000 + 20, None)
    assert machine.extents(view) == Extents((2, 3), (6, 2))


@pytest.mark.parametrize(
    ("shape", "strides", "elements", "message"),
    [
        ((3, 4), (4, 1), 12, None),
        ((3, 4), (4, 1), 11, "T: shape (3, 4) with strides (4, 1) does not fit 11 elements"),
        ((3, 4), (4, 1), 13, None),
        ((), (), 1, None),
        ((), (), 0, "T: shape () with strides () does not fit 0 elements"),
        ((0, 4), (4, 1), 0, None),
        ((0, 4), (-4, 1), 0, None),
        ((1, 1), (-9, 99), 1, None),
        ((2, 1), (-1, 1), 5, "T: shape (2, 1) with strides (-1, 1) does not fit 5 elements"),
        ((2, 2), (0, 0), 1, None),
        ((-1, 4), (4, 1), 9, "T would have the shape (-1, 4), 9 elements"),
        ((0, 4), (4, 1), -1, "T would have the shape (0, 4), -1 elements"),
    ],
)
def test_the_room_of_a_tensor(shape, strides, elements, message):
    if message is None:
        check_room(buffer(), shape, strides, elements)
        return
    with pytest.raises(InputError) as caught:
        check_room(buffer(), shape, strides, elements)
    assert caught.value.message == message


def test_allocation_checks_the_room(machine):
    with pytest.raises(InputError, match="does not fit 1 elements"):
        machine.allocate(buffer(), (2,), (1,), 1)


# -- launches


def words(launch: Launch, number: int, *replaced: Word) -> Launch:
    arguments = list(launch.arguments)
    arguments[number] = replaced
    return replace(launch, arguments=tuple(arguments))


def held(address: int) -> Held:
    nothing = np.zeros(0, np.float32)
    return Held(nothing, nothing, Extents((0,), (1,)), address)


def test_a_launch(machine, device, add):
    (launch,) = add.program.launches
    arguments = [[(held(0x1000), 16)], [(held(0x2000), 0)], [(held(1 << 63), 0)], [77]]
    machine.launch(launch, (2, 1, 1), (64, 1, 1), 128, arguments, None)
    packed = b"".join(n.to_bytes(8, "little") for n in (0x1010, 0x2000, 1 << 63, 77))
    ((function, grid, block, given, shared, stream), waited) = device.events
    assert waited == "synchronize"
    assert (function, grid, block, shared, stream) == (
        "function add", (2, 1, 1), (64, 1, 1), 128, None,
    )  # fmt: skip
    assert bytes(given[:32]) == packed
    assert [one.kernel for one in machine.ran] == ["add"]


@pytest.mark.parametrize("way", ["look_at", "launch"])
@pytest.mark.parametrize(
    ("change", "sizes", "message"),
    [
        (lambda one: one, ((1, 1, 1), (65, 1, 1), 0), "add: a block of 65 is 65 work items"),
        (lambda one: one, ((1, 1, 1), (64, 1, 1), 1 << 20), "bytes of static and 1048576 of"),
        (
            lambda one: replace(one, arguments=one.arguments[:3]),
            ((1, 1, 1), (64, 1, 1), 0),
            "the host program passes 3 arguments to add, but the kernel takes 4",
        ),
        (
            lambda one: words(one, 3, Word("integer", expression=0, size=4)),
            ((1, 1, 1), (64, 1, 1), 0),
            "the host program passes argument 3 of add with 4 bytes, but the kernel takes 8",
        ),
        (
            lambda one: words(one, 0, Word("pointer", "A"), Word("pointer", "A")),
            ((1, 1, 1), (64, 1, 1), 0),
            "the host program passes argument 0 of add with 16 bytes, but the kernel takes 8",
        ),
    ],
)
def test_a_launch_that_does_not_fit_the_kernel(machine, device, add, way, change, sizes, message):
    (launch,) = add.program.launches
    changed = change(launch)
    values = [[None for _ in some] for some in changed.arguments]
    rest = () if way == "look_at" else (None,)
    with pytest.raises(InputError) as caught:
        getattr(machine, way)(changed, *sizes, values, *rest)
    assert message in caught.value.message
    assert device.events == []


@pytest.mark.parametrize("value", [-(1 << 31), (1 << 31) - 1, -(1 << 31) - 1, 1 << 31])
def test_an_integer_and_its_word(machine, add, value):
    (launch,) = add.program.launches
    halves = words(launch, 3, *[Word("integer", expression=0, size=4)] * 2)
    values = [[None], [None], [None], [5, value]]
    sizes = (1, 1, 1), (64, 1, 1), 0
    if -(1 << 31) <= value < 1 << 31:
        machine.look_at(halves, *sizes, values)
        return
    with pytest.raises(InputError) as caught:
        machine.look_at(halves, *sizes, values)
    assert caught.value.message == f"{value} does not fit in a 32-bit argument of add"
    assert "fx.Int64" in (caught.value.hint or "")


def test_words_follow_each_other(add):
    (launch,) = add.program.launches
    halves = words(launch, 3, *[Word("integer", expression=0, size=4)] * 2)
    packed = packing.pack(halves, add.kernel("add"), add.program, [[1], [2], [3], [4, -5]])
    assert packed[24:32] == (4).to_bytes(4, "little") + (-5).to_bytes(4, "little", signed=True)


# -- library calls

NUMBERS = tuple(Operand("integer", expression) for expression in range(3))


@pytest.mark.parametrize(
    ("returned", "results", "wanted"),
    [
        (None, (), ()),
        (None, ("M",), ()),
        ("x", ("M",), ("x",)),
        (("x", "y"), ("M", "N"), ("x", "y")),
        ("x", (), ()),
    ],
)
def test_what_a_library_function_returns(monkeypatch, add, returned, results, wanted):
    from fly_host import library

    asked = []

    def call(*given):
        asked.append(given)
        return returned

    monkeypatch.setattr(library, "call", call)
    step = Call("f", NUMBERS[:2], (("k", NUMBERS[2]),), results)
    made = machines.call_library(add.program, step, [1, 2], {"k": 3})
    assert (made, asked) == (wanted, [("f", [1, 2], {"k": 3})])


def test_a_library_call_sees_arrays_and_its_results_are_adopted(machine, device, monkeypatch):
    from fly_host import library

    given = np.zeros(3, np.float32)
    made = np.zeros((2, 4), np.float64)[:, ::2]
    asked = []

    def call(name, arguments, keywords):
        asked.append((name, arguments, keywords, list(device.events)))
        return made

    monkeypatch.setattr(library, "call", call)
    a = Held(given, given, Extents((3,), (1,)), 0x5000)
    tensor = Operand("tensor", "A")
    step = Call("f", (tensor, NUMBERS[0]), (("out", tensor), ("k", NUMBERS[1])), ("M",))
    (found,) = machine.call(step, [a, 7], {"out": a, "k": 2.5})
    ((name, arguments, keywords, before),) = asked
    assert name == "f"
    assert arguments[0] is given
    assert arguments[1:] == [7]
    assert keywords["out"] is given
    assert keywords["k"] == 2.5
    assert before == ["synchronize"]  # what kernels write is there by then
    assert found.value is made
    assert found.extents == Extents((2, 2), (4, 2))
    assert found.address == 0x1000
    assert device.events[1:] == [("adopt", "M", made.ctypes.data, 32 + 16 + 8, True)]
    machine.check_made(buffer("M"), found, (2, 2), (4, 2))
    with pytest.raises(InputError, match=r"that makes M gave shape \(2, 2\) and strides \(4, 2\)"):
        machine.check_made(buffer("M"), found, (2, 2), (4, 1))


@pytest.mark.parametrize("results", [("M",), ("M", "N", "O")])
def test_a_library_call_that_returns_too_many_arrays_or_too_few(
    machine, device, monkeypatch, results
):
    from fly_host import library

    monkeypatch.setattr(library, "call", lambda *_: (np.zeros(3), np.zeros(3)))
    with pytest.raises(UsageError) as caught:
        machine.call(Call("f", (), (), results), [], {})
    said = f"f returned 2 tensors, and its shape rule says {len(results)}"
    assert caught.value.message == said
    assert device.events == ["synchronize"]


# -- arrays that are given


def test_arrays_without_elements_and_any_strides_fit():
    as_strided = np.lib.stride_tricks.as_strided
    odd = as_strided(np.zeros(8, np.float32), (0, 3), (13, 5))
    for tensor in (
        Tensor("X", "f32", (None, None), (None, None), "w"),
        Tensor("X", "f32", (None, None), (7, 9), "w"),
        Tensor("X", "f32", (None, None), (None, None), "w", multiples=(1, 1, 4, 2)),
    ):
        assert check_array(tensor, odd) is odd


def test_a_large_view_of_one_element_overlaps_itself():
    """It is told without a look at each pair of its elements."""
    large = np.broadcast_to(np.zeros(1, np.float32), (1 << 30, 1 << 30))
    tensor = Tensor("X", "f32", (None, None), (None, None), "w")
    writable = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), large.shape, large.strides)
    with pytest.raises(InputError, match="elements of the array overlap in memory"):
        check_array(tensor, writable)
    apart = np.lib.stride_tricks.as_strided(
        np.zeros(1, np.float32), (1 << 20, 1 << 20), (4, 1 << 20)
    )
    with pytest.raises(InputError, match="elements of the array overlap in memory"):
        check_array(tensor, apart)


def test_streams_and_numbers_with_a_default_may_be_left_out():
    parameters = Stream("s"), Scalar("n", "i32", 5), Scalar("m", "i32")
    made = Program("f", "gfx942", parameters, (), ())
    assert check(made, {"m": 2}) == ({}, {"n": 5, "m": 2})
    assert check(made, {"m": 2, "n": 3, "s": "any"}) == ({}, {"n": 3, "m": 2})
    with pytest.raises(UsageError, match="f needs m, i32"):
        check(made, {"n": 3})


def test_symbols_are_extents_with_a_name():
    tensors = {
        "X": Tensor("X", "f32", ("n", None, 4), (1, 1, 1)),
        "Y": Tensor("Y", "f32", ("m", None, 4), (1, 1, 1)),
    }
    shapes = {"X": (3, 5, 4), "Y": (2, 6, 4)}
    assert check_symbols(tensors, shapes) == {"n": 3, "m": 2}
    assert check_symbols(tensors, {"Y": (2, 6, 4)}) == {"m": 2}


def test_the_stride_of_two_elements_is_held_against_the_rule():
    with pytest.raises(InputError, match="the library call that makes T gave shape"):
        machines.check_layout(buffer(), Extents((2, 1), (3, 1)), (2, 1), (1, 1))
    machines.check_layout(buffer(), Extents((2, 1), (1, 9)), (2, 1), (1, 1))
