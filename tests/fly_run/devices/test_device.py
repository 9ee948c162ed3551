"""The emulator as a device: memory by address, modules, order; and the table of devices."""

from __future__ import annotations

import ctypes
import itertools
import struct
from types import SimpleNamespace

import numpy as np
import pytest
from emulator_support.engine import compile_opencl
from fly_common.errors import Fault, InputError, UsageError
from fly_run.devices import registry
from fly_run.devices.options import Options
from fly_run.devices.protocol import FROM_DEVICE, ON_DEVICE, TO_DEVICE
from fly_run.devices.registry import open_device
from fly_run.emulator import machine
from fly_run.emulator.engine import arena
from fly_run.emulator.machine import Emulator

COPY = """kernel void k(global int *to, global const int *from, int n) {
    if (TID < n) to[TID] = from[TID]; }"""


@pytest.fixture
def device() -> Emulator:
    return Emulator("gfx942")


def copy_function(device: Emulator):
    return device.load(compile_opencl(COPY, "gfx942", "-O3")).function("k")


def run_copy(device: Emulator, function, to: int, source: int, n: int) -> None:
    packed = struct.pack("<QQi", to, source, n).ljust(function.interface.argument_bytes, b"\0")
    device.launch(function, (1, 1, 1), (64, 1, 1), packed)
    device.synchronize()


def adopt(device: Emulator, array: np.ndarray, label: str, writable: bool = True) -> int:
    return device.adopt(array.ctypes.data, array.nbytes, writable=writable, label=label)


def test_memory_of_the_devices_own(device):
    """It is zeroed, survives launches, and is copied in, out and within."""
    function = copy_function(device)
    numbers, found = np.arange(64, dtype="i4"), np.full(64, -1, "i4")
    a, b, c = (device.alloc(256, name) for name in "abc")
    device.copy(found.ctypes.data, b, 256, FROM_DEVICE)
    assert not found.any()
    device.copy(a, numbers.ctypes.data, 256, TO_DEVICE)
    run_copy(device, function, b, a, 64)
    device.copy(c + 128, b, 128, ON_DEVICE)
    device.copy(found.ctypes.data, c, 256, FROM_DEVICE)
    assert found.tolist() == [0] * 32 + list(range(32))
    for address in (a, b, c):
        device.free(address)
    with pytest.raises(Fault, match="memory fault"):
        run_copy(device, function, b, a, 64)


def test_copies_beyond_a_buffer_are_refused(device):
    a = device.alloc(256)
    here = ctypes.create_string_buffer(512)
    for where, size in ((a, 257), (a - 1, 2), (a + 256, 1), (1 << 40, 4)):
        with pytest.raises(InputError, match=f"no buffer contains {size} bytes at 0x{where:x}"):
            device.copy(ctypes.addressof(here), where, size, FROM_DEVICE)
        with pytest.raises(InputError, match="no buffer contains"):
            device.copy(where, ctypes.addressof(here), size, TO_DEVICE)
    with pytest.raises(UsageError, match=f"no memory was allocated at 0x{a + 8:x}"):
        device.free(a + 8)
    adopted = device.adopt(ctypes.addressof(here), 512)
    with pytest.raises(UsageError, match="no memory was allocated"):
        device.free(adopted)
    device.release(adopted)
    with pytest.raises(UsageError, match="no buffer begins"):
        device.release(adopted)


def test_labels_are_what_faults_call_memory(device):
    function = copy_function(device)
    numbers = np.zeros(64, "i4")
    to = adopt(device, numbers, "my result", writable=False)
    with pytest.raises(Fault, match="`my result` may only be read"):
        run_copy(device, function, to, to, 64)
    source = device.alloc(100, "a short one")
    with pytest.raises(Fault, match=r"at the end of `a short one` \(100 bytes\)"):
        run_copy(device, function, to, source, 64)


def test_a_site_that_knew_a_buffer_does_not_write_to_the_next_one(device):
    """Sites keep the row of the table where they found their memory. The next buffer at the same
    address may be shorter, read-only, or not there."""
    function = copy_function(device)
    numbers = np.arange(64, dtype="i4")
    source = adopt(device, numbers, "source", writable=False)
    before = np.zeros(64, "i4")
    to = adopt(device, before, "to")
    run_copy(device, function, to, source, 64)
    assert before.tolist() == list(range(64))
    device.release(to)
    with pytest.raises(Fault, match="memory fault"):
        run_copy(device, function, to, source, 64)
    fixed = np.zeros(64, "i4")
    assert adopt(device, fixed, "fixed", writable=False) == to
    with pytest.raises(Fault, match="`fixed` may only be read"):
        run_copy(device, function, to, source, 64)
    device.release(to)
    short = np.zeros(64, "i4")
    assert device.adopt(short.ctypes.data, 32 * 4, label="short") == to
    with pytest.raises(Fault, match="at the end of `short`"):
        run_copy(device, function, to, source, 64)
    run_copy(device, function, to, source, 32)
    device.release(to)
    after = np.zeros(64, "i4")
    assert adopt(device, after, "after") == to
    run_copy(device, function, to, source, 64)
    assert after.tolist() == list(range(64))
    assert not fixed.any()
    assert not short[32:].any()


def test_addresses_come_back_in_calls_alike(device):
    arrays = [np.zeros(5000, "u1") for _ in range(3)]
    seen = set()
    for _ in range(5):
        places = [adopt(device, array, "x") for array in arrays]
        seen.add(tuple(places))
        assert [b - a for a, b in itertools.pairwise(places)] == [12288, 12288]
        for place in reversed(places):
            device.release(place)
    assert len(seen) == 1


def test_released_addresses_are_given_again_when_there_are_no_others(monkeypatch):
    monkeypatch.setattr(arena, "LAST", arena.FIRST + 10 * 8192)
    buffers = arena.Buffers()
    places = [buffers.add("x", 1 << 20, 4096, True) for _ in range(10)]
    with pytest.raises(InputError, match="the emulator's address space has no 4096 bytes left"):
        buffers.add("x", 1 << 20, 4096, True)
    for place in places[2:5]:
        buffers.remove(place)
    assert buffers.add("y", 1 << 20, 3 * 8192 - 4096, True) == places[2]
    with pytest.raises(InputError):
        buffers.add("x", 1 << 20, 4096, True)


def test_so_many_buffers_at_once(device):
    here = np.zeros(4, "u1")
    for writable in (True, False):
        for _ in range(arena.CAPACITY):
            adopt(device, here, "x", writable)
    for writable in (True, False):
        with pytest.raises(InputError, match="more than 1024 buffers are bound at once"):
            adopt(device, here, "x", writable)
    first, *_, last = [region.low for region in device._buffers]
    function = copy_function(device)
    device.release(last)
    device.release(first)
    to, source = np.zeros(1, "i4"), np.array([7], "i4")
    run_copy(device, function, adopt(device, to, "to"), adopt(device, source, "s", False), 1)
    assert to[0] == 7


def test_moments(device):
    start = device.event(device.stream())
    function = copy_function(device)
    place = device.alloc(256)
    run_copy(device, function, place, place, 64)
    end = device.event()
    device.synchronize(end)
    assert 0 < device.elapsed(start, end) < 60


def test_modules_see_their_own_code_only(device):
    """A pointer to another module's code leads nowhere: each has an address space of its own."""
    source = """kernel void k(global ulong *A) {
        ulong pc; __asm__ volatile("s_getpc_b64 %0" : "=s"(pc));
        if (A[0]) A[1] = *(global ulong *)A[0]; else A[0] = pc; }"""
    large = "kernel void large(global int *A) {\n" + "A[TID] *= A[TID + 1];\n" * 3000 + "}"
    code, other = (compile_opencl(text, "gfx942", "-O0") for text in (source, large))
    memory = np.zeros(2, "u8")
    place = adopt(device, memory, "A")
    packed = struct.pack("<Q", place)
    big, small = device.load(other), device.load(code)
    big.function("large")
    packed = packed.ljust(small.function("k").interface.argument_bytes, b"\0")
    device.launch(small.function("k"), (1, 1, 1), (1, 1, 1), packed)
    memory[0] += 40_000  # within the other module's code, far behind this one's
    with pytest.raises(Fault, match="memory fault: 8 bytes"):
        device.launch(small.function("k"), (1, 1, 1), (1, 1, 1), packed)


def test_functions_are_made_once_and_go_with_their_module(device):
    module = device.load(compile_opencl(COPY, "gfx942", "-O3"))
    assert module.function("k") is module.function("k") is module.function(None)
    with pytest.raises(InputError, match="no kernel 'l' in the code object"):
        module.function("l")
    place = device.alloc(256)
    run_copy(device, module.function("k"), place, place, 64)
    assert len(device._spaces) == 1
    module.unload()
    assert len(device._spaces) == device._space_bytes == 0


def test_what_launches_leave_is_bounded(device, monkeypatch):
    monkeypatch.setattr(machine, "MOST_SPACES", 3)
    function = copy_function(device)
    place = device.alloc(256)
    packed = struct.pack("<QQi", place, place, 4).ljust(function.interface.argument_bytes, b"\0")
    for width in range(1, 9):
        device.launch(function, (width, 1, 1), (64, 1, 1), packed)
    assert [shape[1][0] for shape in device._spaces] == [6, 7, 8]
    assert device._space_bytes == sum(space.nbytes for space in device._spaces.values()) > 0
    monkeypatch.setattr(machine, "MOST_SPACE_BYTES", 1)
    device.launch(function, (8, 1, 1), (64, 1, 1), packed)
    assert len(device._spaces) == device._space_bytes == 0
    run_copy(device, function, place, place, 64)


def test_a_device_that_was_closed_counts_anew(device):
    function = copy_function(device)
    place = device.alloc(256)
    run_copy(device, function, place, place, 64)
    device.close()
    assert len(device._spaces) == device._space_bytes == len(device._buffers) == 0
    place = device.alloc(256)
    run_copy(device, function, place, place, 64)
    assert device._space_bytes == sum(space.nbytes for space in device._spaces.values()) > 0


def test_who_watches_may_close_the_device():
    """A progress bar that unloads amid a launch."""
    device = Emulator("gfx942", Options(progress=lambda done, total: device.close()))
    function = copy_function(device)
    numbers, found = np.arange(64, dtype="i4"), np.zeros(64, "i4")
    for _ in range(3):
        to, source = adopt(device, found, "to"), adopt(device, numbers, "from")
        run_copy(device, function, to, source, 64)
        assert device._space_bytes == len(device._spaces) == 0
    assert found.tolist() == list(range(64))


def test_other_images_are_refused(device):
    with pytest.raises(InputError, match="the emulator runs AMD GPU code objects only"):
        device.load(SimpleNamespace(target="gfx942"))


# -- the table


def installed(monkeypatch, **factories) -> list[str]:
    """Installs devices as entry points would; the result lists when they are asked for."""
    asked: list[str] = []

    def entry_points(group: str):
        asked.append(group)
        return tuple(
            SimpleNamespace(name=name, load=lambda made=made: made)
            for name, made in factories.items()
        )

    monkeypatch.setattr(registry, "entry_points", entry_points)
    return asked


def test_a_device_from_outside(monkeypatch):
    made = []
    asked = installed(monkeypatch, mine=lambda *given: made.append(given) or "the device")
    assert open_device("mine", "gfx942", Options(threads=3)) == "the device"
    assert made == [("gfx942", Options(threads=3))]
    assert asked == ["fly.devices"]
    with pytest.raises(UsageError) as caught:
        open_device("other", "gfx942")
    assert caught.value.hint == "devices: auto, emulator, cpu, hip, cuda, exec:COMMAND, mine"


def test_no_guest_is_asked_for_a_known_name(monkeypatch):
    asked = installed(monkeypatch)
    assert open_device("auto", "gfx942").name == "emulator"
    assert asked == []


def test_a_package_brings_a_device(tmp_path, monkeypatch):
    """As pip installs one: its metadata names the entry point."""
    (tmp_path / "guest_of_tests.py").write_text(
        "def open(target, options):\n    return ('the guest', target, options)\n"
    )
    about = tmp_path / "guest_of_tests-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: guest_of_tests\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[fly.devices]\nguest = guest_of_tests:open\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert open_device("guest", "gfx942") == ("the guest", "gfx942", Options())
    with pytest.raises(UsageError) as caught:
        open_device("gest", "gfx942")
    assert caught.value.hint == "devices: auto, emulator, cpu, hip, cuda, exec:COMMAND, guest"


def test_too_many_arguments_are_refused_and_counted_once(device):
    function = copy_function(device)
    place = device.alloc(256)
    run_copy(device, function, place, place, 4)
    before = device.instructions
    with pytest.raises(InputError, match="bytes of arguments, not 1000"):
        device.launch(function, (1, 1, 1), (64, 1, 1), bytes(1000))
    assert device.instructions == before


def test_an_empty_grid_is_checked_and_runs_nothing(device):
    function = copy_function(device)
    device.launch(function, (0, 5, 1), (64, 1, 1), b"")
    assert (device.instructions, len(device._spaces)) == (0, 0)
    with pytest.raises(UsageError, match="can't be launched"):
        device.launch(function, (0, 5, 1), (0, 1, 1), b"")


def test_memory_at_its_own_address(device):
    """`map` is for pointers that are used as they are; its bounds are exact."""
    function = copy_function(device)
    numbers, found = np.arange(64, dtype="i4"), np.zeros(64, "i4")
    device.map(numbers.ctypes.data, 256, writable=False, label="numbers")
    device.map(found.ctypes.data, 200, label="found")
    run_copy(device, function, found.ctypes.data, numbers.ctypes.data, 50)
    assert found.tolist() == [*range(50), *[0] * 14]
    with pytest.raises(Fault, match=r"at the end of `found` \(200 bytes\)"):
        run_copy(device, function, found.ctypes.data, numbers.ctypes.data, 51)
    with pytest.raises(Fault, match="`numbers` may only be read"):
        run_copy(device, function, numbers.ctypes.data, found.ctypes.data, 1)
    for one in (numbers, found):
        device.release(one.ctypes.data)
    with pytest.raises(Fault, match="memory fault"):
        run_copy(device, function, found.ctypes.data, numbers.ctypes.data, 1)
    for start, size in arena.OWN:
        for low, length in ((start, 1), (start + size - 1, 8), (start - 8, 16), (start - 8, 8)):
            with pytest.raises(InputError, match="has other memory at this address"):
                device.map(low, length)
