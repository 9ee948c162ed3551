"""Running programs on a device, and kernels by their own argument list."""

import ctypes
import struct

import numpy as np
import pytest
from fly_common.errors import FlyError, InputError, MissingError, UsageError
from fly_image.amd.code_object import CodeObject
from fly_run.devices.gpu import device as gpu_device
from fly_run.devices.gpu import driver as drivers
from fly_run.devices.registry import open_device
from fly_run.launch.execution import run
from fly_run.launch.launch import Lds, bind_arguments, launch


class Adder:
    """A device that knows one kernel, `add`, and computes it with NumPy on the adopted memory. It
    is its own module, and its functions are kernels' names."""

    name, target, concurrent = "adder", "gfx942", False
    own_memory, place = False, None
    remarks = ()

    def __init__(self):
        self.instructions = 0
        self.adopted, self.released = {}, []
        self.launches = []
        self.closed = False

    def load(self, image):
        return self

    def unload(self):
        pass

    def function(self, name):
        return name

    def adopt(self, pointer, nbytes, *, writable=True, label=""):
        address = 0x10000 * (len(self.adopted) + 1)
        self.adopted[address] = (label, pointer, nbytes, writable)
        return address

    def adopt_all(self, spans):
        return [self.adopt(at, n, writable=writable, label=name) for name, at, n, writable in spans]

    def release(self, address):
        self.released.append(address)

    def release_all(self, addresses):
        self.released += addresses

    def array(self, address):
        _, host, nbytes, _ = self.adopted[address]
        return np.frombuffer((ctypes.c_char * nbytes).from_address(host), np.float32)

    def launch(self, function, grid, block, packed, shared=0, stream=None):
        self.launches.append((function, grid, block, shared))
        a, b, c, n = struct.unpack("<QQQq", packed)
        self.array(c)[:n] = self.array(a)[:n] + self.array(b)[:n]
        self.instructions += 7

    def synchronize(self, what=None):
        pass

    def close(self):
        self.closed = True


def arrays(n=100):
    generator = np.random.default_rng(1)
    a, b = generator.random((2, n), np.float32)
    return {"A": a, "B": b, "C": np.zeros(n, np.float32)}


def test_a_program_runs(add):
    given, device = arrays(), Adder()
    (ran,) = run(add.program, add, device, device, given).ran
    assert (given["C"] == given["A"] + given["B"]).all()
    assert device.launches == [("add", (2, 1, 1), (64, 1, 1), 0)]
    assert [entry[0] for entry in device.adopted.values()] == ["A", "B", "C"]
    assert [entry[3] for entry in device.adopted.values()] == [False, False, True]
    assert ran.instructions == 7
    assert sorted(device.released) == sorted(device.adopted)


def test_nothing_runs_over_an_empty_grid(add):
    device = Adder()
    (ran,) = run(add.program, add, device, device, arrays(0)).ran
    assert (device.launches, device.adopted) == ([], {})
    assert ran.empty


def test_a_kernel_runs_by_its_argument_list(add):
    given, device = arrays(), Adder()
    launch(add, "add", 2, 64, [*given.values(), np.int64(90)], device=device)
    assert (given["C"][:90] == (given["A"] + given["B"])[:90]).all()
    assert (given["C"][90:] == 0).all()
    assert device.launches == [("add", (2, 1, 1), (64, 1, 1), 0)]
    assert not device.closed


def test_the_only_kernel_needs_no_name(add):
    call = bind_arguments(add, None, (2, 3), (4, 4, 4), [*arrays().values(), bytes(8)], 100)
    assert (call.kernel, call.shared) == ("add", 100)
    assert (call.grid, call.block) == ((2, 3, 1), (4, 4, 4))


def test_read_only_arrays_are_read_only_buffers(add):
    given = arrays()
    given["A"].flags.writeable = False
    device = Adder()
    call = bind_arguments(add, None, 1, 64, [*given.values(), (64).to_bytes(8, "little")])
    call.run(device, device)
    names = ["argument 0", "argument 1", "argument 2"]
    assert [(one[0], one[3]) for one in device.adopted.values()] == list(
        zip(names, [False, True, True], strict=True)
    )


def refusal(add, *, kernel="add", grid=1, block=64, args=None, **options) -> FlyError:
    args = [*arrays().values(), np.int64(3)] if args is None else args
    with pytest.raises(FlyError) as caught:
        launch(add, kernel, grid, block, args, device=Adder(), **options)
    return caught.value


A = np.zeros(3, np.float32)


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        (
            {"args": [A]},
            "add takes 4 arguments, got 1",
            "they are: a global_buffer, a global_buffer, a global_buffer, 8 bytes by value",
        ),
        (
            {"args": [A, A, np.int64(3), np.int64(3)]},
            "argument 2 of add is a global_buffer: expected an array",
            None,
        ),
        (
            {"args": [A, A, A, np.int32(3)]},
            "argument 3 of add is 8 bytes by value: got 4 bytes",
            None,
        ),
        (
            {"args": [A, A, A, 3]},
            "argument 3 of add is 8 bytes by value: its type is not known, so 3 has no size",
            "give a type: i32:5 or f32:2.5; np.int32(5) from Python; or bytes",
        ),
        ({"kernel": "sub"}, "no kernel 'sub' in the code object", "its kernels: add"),
        ({"grid": (1, 2, 3, 4)}, "grid (1, 2, 3, 4): expected one to three integers", None),
        (
            {"block": 65},
            "add: a block of 65 is 65 work items, but the kernel was compiled for at most 64",
            None,
        ),
        (
            {"dynamic_lds": 1 << 17},
            "add: 0 bytes of static and 131072 of dynamic LDS; gfx942 has 65536",
            None,
        ),
    ],
)
def test_what_a_kernel_does_not_take(add, options, message, hint):
    error = refusal(add, **options)
    assert (error.message, error.hint) == (message, hint)


def test_local_memory_follows_the_static(assemble):
    """An OpenCL kernel's local pointers are offsets into LDS, each where it may be used for any
    access."""
    code = CodeObject.parse(assemble("local"))
    call = bind_arguments(code, "local", 1, 64, [Lds(100), Lds(8), np.zeros(1)])
    first, second = struct.unpack_from("<II", call.packed, 0)
    assert (first, second) == (48, 160)  # 40 bytes are static
    assert call.shared == 160 + 8 - 40
    with pytest.raises(InputError, match="expected an amount of LDS"):
        bind_arguments(code, "local", 1, 64, [bytes(4), Lds(8), np.zeros(1)])


def test_devices_are_named(monkeypatch):
    monkeypatch.setattr(drivers, "find", lambda names: None)
    monkeypatch.setattr(gpu_device, "_drivers", {})
    with pytest.raises(MissingError, match="HIP's library is not here: no libamdhip64") as caught:
        open_device("hip", "gfx942")
    assert caught.value.exit_code == 3
    with pytest.raises(
        MissingError, match=r"CUDA's driver is not here: no libcuda\.so\.1, libcuda"
    ):
        open_device("cuda:1", "sm_90a")
    with pytest.raises(UsageError) as caught_name:
        open_device("gpu", "gfx942")
    assert caught_name.value.hint == "devices: auto, emulator, cpu, hip, cuda, exec:COMMAND"


@pytest.mark.parametrize(
    ("found", "good"),
    [
        (((4, 2), (2, 1)), True),
        (((4, 2), (1, 4)), False),
        (((2, 4), (4, 1)), False),
        (((4, 2, 1), (2, 1, 1)), False),
    ],
)
def test_what_a_library_call_returns_is_held_against_its_rule(found, good):
    from fly_host.program import Buffer
    from fly_host.readers.values import Extents
    from fly_run.launch.machine import check_layout

    buffer = Buffer("C", "f32", (0, 0), (0, 0), 0)
    if good:
        check_layout(buffer, Extents(*found), (4, 2), (2, 1))
        # The stride of one element says nothing.
        check_layout(buffer, Extents((1, 2), (9, 1)), (1, 2), (2, 1))
        return
    with pytest.raises(InputError, match="the library call that makes C gave shape"):
        check_layout(buffer, Extents(*found), (4, 2), (2, 1))
