"""The device cpu in a library: examples, what kernels print, faults, the time limit."""

# ruff: noqa: F821  (extents are named by strings)

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from fly_link.shared import building
from fly_llc import Options, compile
from fly_opt.pipeline import options as lowering
from fly_opt.pipeline import stage
from library_support import Library
from library_support.functions import saxpy

import fly
import fly.expr as fx

EXAMPLES = Path(__file__).parents[3] / "examples"


def example(file: str, name: str):
    spec = importlib.util.spec_from_file_location(f"library_{file}", EXAMPLES / f"{file}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("row_softmax", "row_softmax"),
        ("row_softmax", "row_softmax_shuffle"),
        ("transpose", "transpose"),
        ("histogram", "histogram"),
    ],
)
def test_examples(file, name, tmp_path):
    """Shared memory, barriers, shuffles, atomics: the results of the device in Python."""
    function = example(file, name)
    random = np.random.default_rng(0)
    A = random.standard_normal((7, 300)).astype(np.float32)
    if name == "histogram":
        A = random.integers(0, 256, 5000).astype(np.uint8)
    made = Library.of(function, tmp_path)
    (parameter,) = made.program.parameters
    wanted = fly.load(made.image).run({parameter.name: A}, device="cpu").results
    for _ in range(2):
        status, (found,) = made.call(A)
        assert (status, made.error()) == (0, "")
        np.testing.assert_array_equal(found, wanted)


PRINTING = """
@format = internal addrspace(4) constant [34 x i8] c"%d %5.2f|%-4s|%x %lld %c%%%p %u%\\0A\\00"
@word = internal addrspace(4) constant [3 x i8] c"ab\\00"
declare i32 @vprintf(ptr, ptr)
define internal void @printing() noinline {
  %values = alloca { i32, double, ptr, i32, i64, i32, i64, i32 }
  store { i32, double, ptr, i32, i64, i32, i64, i32 } { i32 -7, double 2.5, \
ptr addrspacecast (ptr addrspace(4) @word to ptr), i32 255, i64 -5000000000, i32 90, i64 16, \
i32 -1 }, ptr %values
  %f = addrspacecast ptr addrspace(4) @format to ptr
  %n = call i32 @vprintf(ptr %f, ptr %values)
  ret void
}
"""


def library_of(text: str, folder: Path) -> Library:
    ptx = compile(text.encode(), Options())
    made = building.make([ptx], ["k.ptx"], for_cpu=True)
    (folder / "libsaxpy.so").write_bytes(made.data)
    program = fly.load(saxpy.compile(target="sm_90a").data).program
    assert program is not None
    return Library(folder / "libsaxpy.so", program)


def test_kernels_print(tmp_path, capfd):
    text = saxpy.compile(target="sm_90a").ir("opt.ll")
    assert isinstance(text, str)
    place = text.index("  %", text.index("define ptx_kernel"))
    text = text[:place] + "  call void @printing()\n" + text[place:]
    start = text.index("define ptx_kernel")
    made = library_of(text[:start] + PRINTING + text[start:], tmp_path)
    A = np.zeros(8, np.float32)
    assert made.call(A, A, 1.0) == (0, [])
    line = "-7  2.50|ab  |ff -5000000000 Z%0x10 4294967295%\n"
    assert capfd.readouterr().out == 256 * line


@fly.kernel
def waiting_kernel(A: fx.Tensor):
    while A[0] < 1.0:
        A[1] = A[1] + 1.0


@fly.jit
def waiting(A: fx.Tensor[fx.Float32, "n"]):
    waiting_kernel(A).launch(grid=1, block=1)


def test_a_loop_that_does_not_end(tmp_path, monkeypatch):
    made = Library.of(waiting, tmp_path)
    monkeypatch.setenv("FLY_TIMEOUT", "0.25")
    assert made.call(np.zeros(2, np.float32))[0] == 4
    assert made.error() == (
        "timeout: the launch did not end within 0.25 s; kernel waiting_kernel block (0, 0, 0)"
    )
    assert made.call(np.ones(2, np.float32))[0] == 0


@fly.kernel
def uneven_kernel(A: fx.Tensor):
    if fx.thread_idx.x < 40:
        fx.barrier()
    A[fx.thread_idx.x] = 1.0


@fly.jit
def uneven(A: fx.Tensor[fx.Float32, "n"]):
    uneven_kernel(A).launch(grid=1, block=64)


@fly.kernel
def reading_kernel(A: fx.Tensor, B: fx.Tensor, at: fx.Int64):
    B[0] = A[at]


@fly.jit
def reading(A: fx.Tensor[fx.Float32, "n"], B: fx.Tensor[fx.Float32, "n"], at: fx.Int64):
    reading_kernel(A, B, at).launch(grid=1, block=1)


def test_faults_say_what_python_says(tmp_path):
    """The same words."""
    A, B = np.zeros(64, np.float32), np.zeros(64, np.float32)
    libraries = [Library.of(function, tmp_path) for function in (uneven, reading)]
    calls = [
        (libraries[0], A),
        *((libraries[1], A, B, at) for at in (64, -2, -(A.ctypes.data // 4))),
    ]
    for made, *arguments in calls:
        names = [parameter.name for parameter in made.program.parameters]
        with pytest.raises(fly.Fault) as caught:
            fly.load(made.image).run(dict(zip(names, arguments, strict=True)), device="cpu")
        assert made.call(*arguments)[0] == 4
        assert made.error() == caught.value.message


def test_places_in_the_source(tmp_path):
    """With -g, a fault begins with the line."""
    text = reading.compile(target="sm_90a").ir("mlir")
    assert isinstance(text, str)
    given = lowering.Options(target="sm_90a", debug_info=True)
    ll = stage.compile(text.encode(), given)
    ptx = compile(ll, Options())
    (tmp_path / "libreading.so").write_bytes(building.make([ptx], ["k.ptx"], for_cpu=True).data)
    program = fly.load(reading.compile(target="sm_90a").data).program
    assert program is not None
    made = Library(tmp_path / "libreading.so", program)
    A = np.zeros(64, np.float32)
    assert made.call(A, A.copy(), 64)[0] == 4
    line = reading_kernel.function.__code__.co_firstlineno + 2
    assert made.error().split(": ")[0].rpartition("/")[2].startswith(f"test_cpu.py:{line}:")
