"""Arrays behind addresses that are numbers, and margins that kernels may read."""

from __future__ import annotations

import ctypes
import struct

import numpy as np
import pytest
from emulator_support.engine import compile_opencl
from fly_common.errors import Fault, UsageError
from fly_run.devices.protocol import TO_DEVICE
from fly_run.emulator.machine import Emulator
from fly_run.shell import placement

SHIFT = """kernel void k(global int *to, global const int *from, int by) {
    to[TID] = from[(int)TID + by]; }"""
MARGIN = placement.PAGE


class Separate:
    """A device of its own memory, as a GPU is."""

    own_memory = True

    def __init__(self):
        self.memory = {}

    def alloc(self, nbytes, label=""):
        held = ctypes.create_string_buffer(nbytes)
        self.memory[ctypes.addressof(held)] = held
        return ctypes.addressof(held)

    def free(self, address):
        del self.memory[address]

    def copy(self, destination, source, nbytes, direction, stream=None):
        assert (destination if direction == TO_DEVICE else source) in self.memory
        ctypes.memmove(destination, source, nbytes)

    def synchronize(self):
        pass


def test_addresses_of_a_device_with_its_own_memory():
    device, array = Separate(), np.arange(4, dtype="i4")
    with placement.addresses(device, {"A": array}) as found:
        assert found.keys() == {"A"}
        assert found["A"] != array.ctypes.data
        there = (ctypes.c_int32 * 4).from_address(found["A"])
        assert list(there) == [0, 1, 2, 3]
        there[1] = 9
        assert array.tolist() == [0, 1, 2, 3]
    assert array.tolist() == [0, 9, 2, 3]
    assert not device.memory


def test_nothing_is_placed_without_addresses():
    with placement.addresses(Separate(), {}) as found:
        assert found == {}


@pytest.mark.parametrize("order", ["C", "F"])
def test_zeros_are_around_an_array(order: str):
    array = np.asarray(np.arange(1, 13, dtype="i4").reshape(3, 4), order=order)
    copy = placement.between_margins(array, MARGIN)
    assert copy.strides == array.strides
    assert copy.ctypes.data % 64 == 0
    np.testing.assert_array_equal(copy, array)
    for start in (copy.ctypes.data - MARGIN, copy.ctypes.data + copy.nbytes):
        assert not any((ctypes.c_uint8 * MARGIN).from_address(start))


@pytest.fixture
def function():
    device = Emulator("gfx942")
    return device, device.load(compile_opencl(SHIFT, "gfx942", "-O3")).function("k")


def shifted(function, by: int, margin: int, count: int = 64) -> list[int]:
    """64 elements, from the one `by` on, of an array of 64; `count` elements may be written."""
    device, kernel = function
    source = placement.between_margins(np.arange(1, 65, dtype="i4"), MARGIN)
    result = placement.between_margins(np.full(count, -1, "i4"), MARGIN)
    starts = frozenset(one.ctypes.data for one in (source, result))
    seen = placement.Margins(device, margin, starts) if margin else device
    spans = [("to", result.ctypes.data, result.nbytes, True)]
    spans += [("from", source.ctypes.data, source.nbytes, True)]
    addresses = seen.adopt_all(spans)
    try:
        packed = struct.pack("<QQi", *addresses, by)
        packed = packed.ljust(kernel.interface.argument_bytes, b"\0")
        seen.launch(kernel, (1, 1, 1), (64, 1, 1), packed)
    finally:
        seen.release_all(addresses)
    return result.tolist()


@pytest.mark.parametrize("by", [-3, 0, 3, 1000])
def test_what_is_around_an_array_may_be_read(function, by: int):
    wanted = [one if 1 <= one <= 64 else 0 for one in range(1 + by, 65 + by)]
    assert shifted(function, by, MARGIN) == wanted


def test_what_is_beyond_the_margin_may_not(function):
    with pytest.raises(Fault, match="memory fault"):
        shifted(function, MARGIN // 4 + 1, MARGIN)


def test_nothing_is_around_an_array_otherwise(function):
    with pytest.raises(Fault, match="of `from`"):
        shifted(function, 3, 0)


def test_the_margin_may_not_be_written(function):
    with pytest.raises(Fault, match=r"write to read-only memory.*`the margin of to`"):
        shifted(function, 0, MARGIN, count=32)


def test_a_device_has_nothing_of_a_call_behind_it(function):
    device, _ = function
    shifted(function, 3, MARGIN)
    assert len(device._buffers) == 0


def test_a_device_without_checks_has_no_margins():
    device = Separate()
    device.name = "cuda"
    with pytest.raises(UsageError, match="--margin: cuda does not check accesses"):
        placement.with_margins(device, MARGIN, [])
