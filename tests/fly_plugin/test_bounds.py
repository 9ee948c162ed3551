"""The plugin bounds: planted defects, what is no defect, and how both are reported."""

import copy
import re
from pathlib import Path

import fly_image
import numpy as np
import pytest
from fly_common.errors import Fault, InputError, MissingError
from fly_image import reports as layout
from fly_image.reports import Sites
from fly_run.devices.registry import open_device
from fly_run.launch import reports
from planted import DEVICES, bounds_kernels, check_line, on, seen
from planted.bounds_kernels import CASES, floats
from plugins import SHIPPED

import fly
import fly.expr as fx

pytestmark = pytest.mark.usefixtures("checks")
F32 = bounds_kernels.F32
SAID = {
    "ragged_tail": "load of X: index 100 is out of bounds for axis 0 with size 100;"
    " block (1, 0, 0) thread (36, 0, 0); 1 more on 2 lines",
    "negative_index": "load of X: index -1 is out of bounds for axis 0 with size 128;"
    " block (0, 0, 0) thread (0, 0, 0)",
    "exchanged_indices": "load of A: index 20 is out of bounds for axis 0 with size 20;",
    "wrong_stride": "load of A: element 360 is out of bounds for size 360;"
    " block (8, 0, 0) thread (32, 0, 0); 7 more",
    "wrong_grid": "load of X: index 512 is out of bounds for axis 0 with size 512;"
    " block (2, 0, 0) thread (0, 0, 0);",
    "whole_tiles": "load of 4 elements of A: elements 384 to 387 are out of bounds for size 384;",
    "few_bins": "atomic update of counts: index 250 is out of bounds for axis 0 with size 250;",
    "index_from_one": "load of table: index 7 is out of bounds for axis 0 with size 7;",
    "small_halo": "load of shared memory: index 65 is out of bounds for axis 0 with size 65;",
    "long_loop": "load of A: index 33 is out of bounds for axis 1 with size 33;",
    "wrong_mask": "load of 2 elements of A: elements 416 to 417 are out of bounds for size 416;",
    "small_output": "store of Y: index 90 is out of bounds for axis 0 with size 90;"
    " block (1, 0, 0) thread (26, 0, 0); 9 more",
}
# Arguments for which the same kernels are right.
RIGHT = {
    "whole_tiles": (floats(16, 64), np.zeros((16, 64), np.float32)),
    "few_bins": (np.arange(200, dtype=np.uint8), np.zeros(200, np.int32)),
    "index_from_one": (
        *(floats(9, 30), np.arange(1, 8, dtype=np.int32), np.zeros((7, 30), np.float32)),
    ),
    "wrong_mask": (floats(16, 32), np.zeros((16, 32), np.float32)),
    "small_output": (floats(100), np.zeros(100, np.float32)),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_defect_is_found(case, device, monkeypatch):
    with on(device, monkeypatch), pytest.raises(Fault) as caught:
        case(*CASES[case]())
    check_line(bounds_kernels, case, caught.value)
    said = SAID[case.__name__]
    assert seen(caught.value).startswith(f"bounds: {said}")
    assert caught.value.exit_code == 1


def test_there_are_ten_and_more():
    assert len(CASES) >= 10
    assert {case.__name__ for case in CASES} == set(SAID)


@pytest.mark.parametrize("device", DEVICES)
def test_the_same_kernels_with_the_right_arguments(device, monkeypatch):
    given = copy.deepcopy(RIGHT)
    with on(device, monkeypatch):
        for name, arguments in given.items():
            getattr(bounds_kernels, name)(*arguments)
    for name in ("whole_tiles", "wrong_mask", "small_output"):
        np.testing.assert_array_equal(*given[name])
    np.testing.assert_array_equal(given["few_bins"][1], 1)
    table, index, out = given["index_from_one"]
    np.testing.assert_array_equal(out, table[index])


def test_the_access_is_not_made(monkeypatch):
    """What lies behind the tensor stays as it is, and what is inside is written."""
    memory = np.full(200, -1, np.float32)
    with on("gfx942", monkeypatch), pytest.raises(Fault):
        bounds_kernels.small_output(floats(100), memory[:90])
    np.testing.assert_array_equal(memory[:90], floats(100)[:90])
    np.testing.assert_array_equal(memory[90:], -1)


# -- memory that is not one plain array


@fly.kernel
def shifted_kernel(X: fx.Tensor, Y: fx.Tensor, extra: fx.Int32):
    t = fx.thread_idx.x
    Y[t] = X[t + extra]


@fly.jit(plugins=["bounds"])
def shifted(X: F32, Y: F32, extra: fx.Int32):
    shifted_kernel(X, Y, extra).launch(grid=1, block=64)


@pytest.mark.parametrize(
    "view", [lambda x: x[:64], lambda x: x[63::-1], lambda x: x[::2], lambda x: x[::-2]]
)
def test_strides(view, monkeypatch):
    x, y = view(floats(128)), np.zeros(64, np.float32)
    with on("gfx942", monkeypatch):
        shifted(x, y, 0)
        np.testing.assert_array_equal(x, y)
        for extra, index in ((1, 64), (-3, -3)):
            with pytest.raises(Fault, match=f"index {index} is out of bounds for axis 0 with si"):
                shifted(x, y, extra)


@pytest.mark.parametrize("view", [lambda x: x[63::-1], lambda x: x[::2]])
def test_strides_without_axes(view, monkeypatch):
    """Memory in front of the tensor's first element is part of it where strides are negative."""
    monkeypatch.setenv("FLY_BOUNDS_AXES", "false")
    x, y = view(floats(128)), np.zeros(64, np.float32)
    with on("gfx942", monkeypatch):
        shifted(x, y, 0)
        np.testing.assert_array_equal(x, y)
        with pytest.raises(Fault, match=r"load of X: element -?\d+ is out of bounds for size"):
            shifted(x, y, 1)


@fly.kernel
def broadcast_kernel(X: fx.Tensor, Y: fx.Tensor, rows: fx.Int32):
    wide = fx.make_view(fx.get_iter(X), fx.make_layout((rows, 64), (0, 1)))
    row, column = fx.block_idx.x, fx.thread_idx.x
    Y[row, column] = wide[row, column]


@fly.jit(plugins=["bounds"])
def broadcast(X: fx.Tensor[fx.Float32, 64], Y: fx.Tensor[fx.Float32, "M", 64], rows: fx.Int32):
    broadcast_kernel(X, Y, rows).launch(grid=Y.shape[0], block=64)


def test_a_layout_with_stride_0(monkeypatch):
    x, y = floats(64), np.zeros((5, 64), np.float32)
    with on("gfx942", monkeypatch):
        broadcast(x, y, 5)
        np.testing.assert_array_equal(y, np.broadcast_to(x, (5, 64)))
        with pytest.raises(Fault, match="load of X: index 4 is out of bounds for axis 0 with si"):
            broadcast(x, y, 4)


@fly.kernel
def nibbles_kernel(X: fx.Tensor, Y: fx.Tensor, extra: fx.Int32):
    t = fx.thread_idx.x
    atom = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Int4)
    nibbles = fx.make_layout(512, 1)
    views = [fx.make_view(fx.recast_iter(fx.Int4, fx.get_iter(one)), nibbles) for one in (X, Y)]
    source, target = [fx.flat_divide(one, (8,)) for one in views]
    held = fx.make_fragment_like(source[None, 0])
    fx.copy(atom, source[None, t + extra], held)
    fx.copy(atom, held, target[None, t])


@fly.jit(plugins=["bounds"])
def nibbles(X: fx.Tensor[fx.Uint8, 256], Y: fx.Tensor[fx.Uint8, 256], extra: fx.Int32):
    nibbles_kernel(X, Y, extra).launch(grid=1, block=64)


@pytest.mark.parametrize("device", DEVICES)
def test_elements_of_four_bits(device, monkeypatch):
    x, y = np.arange(256, dtype=np.uint8), np.zeros(256, np.uint8)
    with on(device, monkeypatch):
        nibbles(x, y, 0)
        np.testing.assert_array_equal(x, y)
        with pytest.raises(Fault, match="bytes 256 to 259 are out of bounds for the size of 256 b"):
            nibbles(x, y, 1)


@fly.kernel
def buffer_kernel(X: fx.Tensor, Y: fx.Tensor, extra: fx.Int32):
    t = fx.thread_idx.x
    atom = fx.make_copy_atom(fx.rocdl.BufferCopy32b(), fx.Float32)
    source = fx.flat_divide(fx.rocdl.make_buffer_tensor(X, max_size=False), (1,))
    held = fx.make_fragment_like(source[None, 0])
    fx.copy(atom, source[None, t + extra], held)
    Y[t] = held[0]


@fly.jit(plugins=["bounds"])
def buffered(X: F32, Y: F32, extra: fx.Int32):
    buffer_kernel(X, Y, extra).launch(grid=1, block=64)


@pytest.mark.parametrize("target", ["gfx942", "gfx1201"])
def test_buffer_descriptors(target, monkeypatch):
    x, y = floats(64), np.zeros(64, np.float32)
    with on(target, monkeypatch):
        buffered(x, y, 0)
        np.testing.assert_array_equal(x, y)
        for extra, element in ((1, 64), (-1, -1)):
            with pytest.raises(Fault, match=f"load of X: element {element} is out of bounds for"):
                buffered(x, y, extra)
        monkeypatch.setenv("FLY_BOUNDS_BUFFERS", "hardware")
        buffered(x, y, 1)
        np.testing.assert_array_equal(y, [*x[1:], 0])


@fly.kernel
def either_kernel(X: fx.Tensor, Y: fx.Tensor, second: fx.Int32, extra: fx.Int32):
    at = fx.get_iter(X)
    if second > 0:
        at = fx.get_iter(Y)
    t = fx.thread_idx.x
    view = fx.make_view(at + extra, fx.make_layout(64, 1))
    Y[t] = view[t] + 1.0


@fly.jit(plugins=["bounds"])
def either(X: F32, Y: F32, second: fx.Int32, extra: fx.Int32):
    either_kernel(X, Y, second, extra).launch(grid=1, block=64)


def test_a_pointer_into_one_of_two_tensors(monkeypatch):
    x, y = floats(64), np.zeros(64, np.float32)
    with on("gfx942", monkeypatch):
        for second in (0, 1):
            either(x, y, second, 0)
            with pytest.raises(Fault, match="the address is outside of each of them"):
                either(x, y, second, 1)


def typed(dtype):
    """A function that shifts and reverses elements of a type, by shared memory."""

    @fly.kernel
    def typed_kernel(X: fx.Tensor, Y: fx.Tensor, extra: fx.Int32):
        tile = fx.shared_array(dtype, 64)
        t = fx.thread_idx.x
        tile[t] = X[t + extra]
        fx.barrier()
        Y[t] = tile[63 - t]

    @fly.jit(plugins=["bounds", "sanitize"])
    def reverse(X: fx.Tensor[dtype, "n"], Y: fx.Tensor[dtype, "n"], extra: fx.Int32):
        typed_kernel(X, Y, extra).launch(grid=1, block=64)

    return reverse


TYPES = {
    fx.Float8E4M3FN: np.uint8,
    fx.BFloat16: np.uint16,
    fx.Float16: np.float16,
    fx.Float64: np.float64,
    fx.Int64: np.int64,
    fx.Int8: np.int8,
    fx.Boolean: np.bool_,
}


@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: str(dtype).removeprefix("fx."))
def test_types_of_elements(dtype, monkeypatch):
    x, y = np.arange(64).astype(TYPES[dtype]), np.zeros(64, TYPES[dtype])
    reverse = typed(dtype)
    with on("gfx942", monkeypatch):
        reverse(x, y, 0)
        np.testing.assert_array_equal(y, x[::-1])
        with pytest.raises(Fault, match="load of X: index 64 is out of bounds for axis 0 with si"):
            reverse(x, y, 1)
    assert y[0] == 0


@pytest.mark.parametrize("device", ["gfx942", "sm_90a"])
def test_variables_of_modules_in_host_memory(device, monkeypatch):
    case = bounds_kernels.ragged_tail
    with on(device, monkeypatch):
        image = fly_image.read(case.compile(*CASES[case]()).hsaco)
    opened = open_device("cpu" if device == "sm_90a" else "emulator", device)
    module = opened.load(image)
    assert module.variable("nothing") is None
    assert module.variable("tail_kernel") is None
    table = Sites.parse(module.variable(layout.SITES).read())
    assert {one.kernel for one in table.sites} == {"tail_kernel"}
    buffer = module.variable(layout.BUFFER)
    assert (buffer.nbytes, buffer.read()) == (layout.NBYTES, bytes(layout.NBYTES))
    buffer.write(b"abcdef")
    buffer.clear(2)
    assert module.variable(layout.BUFFER).read(7) == b"\0\0cdef\0"
    assert buffer.address % 16 == 0
    buffer.clear()
    assert not any(buffer.read())
    with pytest.raises(InputError, match=f"fly_reports has {layout.NBYTES} bytes, not 99999"):
        buffer.read(99999)
    module.unload()


def test_an_image_without_accesses_has_no_reports(monkeypatch):
    @fly.kernel
    def nothing_kernel(X: fx.Tensor):
        fx.barrier()

    @fly.jit(plugins=["bounds"])
    def nothing(X: F32):
        nothing_kernel(X).launch(grid=1, block=64)

    with on("gfx942", monkeypatch):
        made = nothing.compile(floats(4))
    assert b"fly_reports" not in made.hsaco


# -- the shell

KERNEL = """
import fly, fly.expr as fx

@fly.kernel
def k(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    if i <= n:
        B[i] = A[i]

@fly.jit
def run(A: fx.Tensor[fx.Float32, "n"], B: fx.Tensor[fx.Float32, "n"]):
    k(A, B, A.shape[0]).launch(grid=(A.shape[0] + 63) // 64, block=64)
"""


def test_a_pipe(checks, tmp_path: Path):
    (tmp_path / "k.py").write_text(KERNEL)
    for name in "ab":
        np.save(tmp_path / f"{name}.npy", np.zeros(100, np.float32))
    paths = f"{checks.folder}:{SHIPPED / 'bounds'}"
    pipe = (
        "fly-trace k.py | fly-opt-py --target gfx942 | opt -S -O3 | fly-llc | fly-link > k.hsaco"
        " && unset FLY_PLUGINS && fly-run k.hsaco A=a.npy B=b.npy"
    )
    done = checks.run("bash", "-c", pipe, cwd=tmp_path, FLY_PLUGINS="bounds", PYTHONPATH=paths)
    assert done.returncode == 1
    assert done.stderr.decode().splitlines() == [
        "fly-run: error: k.py:8:16: kernel 'k': bounds: load of A: index 100 is out of bounds for"
        " axis 0 with size 100; block (1, 0, 0) thread (36, 0, 0); 1 more",
        "          B[i] = A[i]",
        "                 ^",
    ]


def test_a_device_in_another_program_cannot_report(monkeypatch, tmp_path: Path):
    case = bounds_kernels.ragged_tail
    arguments = CASES[case]()
    with on("gfx942", monkeypatch):
        image = case.compile(*arguments).hsaco
    (tmp_path / "k.hsaco").write_bytes(image)
    import fly_image
    from fly_run.devices.registry import open_device

    device = open_device("exec:true", "gfx942")
    module = device.load(fly_image.read(image, str(tmp_path / "k.hsaco")))
    with pytest.raises(MissingError, match=r"fly_reports") as caught:
        reports.watch(module.function(None))
    assert re.search("compile without .* the plugins that have kernels report", str(caught.value))
