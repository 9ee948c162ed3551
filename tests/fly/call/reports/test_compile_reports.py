"""What a user of @fly.jit sees of LLVM's errors and warnings, and of faults: the Python line, and
the calls of helpers."""

import json
import re
import sys
import traceback

import numpy as np
import pytest
from fly_common.errors import Fault, InputError

import fly
import fly.expr as fx
from fly.call.compiled import Compiled
from fly.call.reports import compile_reports
from fly.chains import messages
from fly.chains.chain import run

HERE = "test_compile_reports.py"


def line_of(text):
    """The number of the line with this text."""
    with open(__file__, encoding="utf-8") as file:
        (number,) = [n for n, line in enumerate(file, 1) if line.strip() == text]
    return number


@pytest.fixture(autouse=True)
def fresh(monkeypatch, tmp_path):
    monkeypatch.setenv("FLY_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compile_reports, "_told", set())


@fly.kernel
def too_much_kernel(A: fx.Tensor):
    shared = fx.shared_array(fx.Float32, 40000)
    shared[fx.thread_idx.x] = A[fx.thread_idx.x]
    fx.barrier()
    A[fx.thread_idx.x] = shared[63 - fx.thread_idx.x]


@fly.jit
def too_much(A: fx.Tensor[fx.Float32, None]):
    too_much_kernel(A).launch(grid=1, block=64)


def test_an_error_of_llvm_has_the_kernels_line():
    with pytest.raises(InputError, match="local memory") as caught:
        too_much.compile(target="gfx942")
    said = caught.value.render("fly")
    line = line_of("def too_much_kernel(A: fx.Tensor):")
    assert said.split(": ")[2].endswith(f"{HERE}:{line}:1")
    assert said.splitlines()[1:3] == ["  def too_much_kernel(A: fx.Tensor):", "  ^"]
    assert "make the shared buffers smaller" in said


def test_an_error_without_a_line_is_itself():
    """Where the second run fails differently, or not at all, the first error stands."""
    error = InputError("other")
    chain = fly.chain(target="gfx942")
    assert compile_reports.located(error, b"nonsense", chain) is error
    assert error.place is None


@fly.kernel
def spilling_kernel(A: fx.Tensor, B: fx.Tensor):
    i = fx.thread_idx.x
    values = [A[i + j * 1024] for j in range(200)]
    fx.barrier()
    for j in fx.range_constexpr(200):
        B[i + j * 1024] = values[(j * 7 + 3) % 200] * values[j]


@fly.jit
def spilling(A: fx.Tensor[fx.Float32, None], B: fx.Tensor[fx.Float32, None]):
    spilling_kernel(A, B).launch(grid=1, block=1024)


def test_spilled_registers_are_a_warning(capfd, monkeypatch):
    made = spilling.compile(target="gfx942")
    count = made.kernels["spilling_kernel"].vgpr_spill_count
    said = capfd.readouterr().err
    line = line_of("def spilling_kernel(A: fx.Tensor, B: fx.Tensor):")
    assert said.startswith("fly: warning: ")
    assert f"{HERE}:{line}:1: the kernel spilling_kernel spills registers: {count} VGPRs" in said
    assert count > 0
    # Once in a process; another process says it again, although all results are in the store.
    spilling._kept.clear()
    spilling.compile(target="gfx942")
    assert capfd.readouterr().err == ""
    compile_reports._told.clear()
    spilling._kept.clear()
    monkeypatch.setenv("FLY_DIAGNOSTICS", "json")
    spilling.compile(target="gfx942")
    (told,) = map(json.loads, capfd.readouterr().err.splitlines())
    assert told["severity"] == "warning"
    assert told["range"]["start"] == {"line": line - 1, "character": 0}


@fly.kernel
def synchronous_kernel(A: fx.Tensor, n: fx.Int32):
    total = fx.Float32(0)
    for j in range(0, n, unroll=4):  # its barrier prevents that
        total = total + A[j]
        fx.barrier()
    A[fx.thread_idx.x] = total


@fly.jit
def synchronous(A: fx.Tensor[fx.Float32, None], n: fx.Int32):
    synchronous_kernel(A, n).launch(grid=1, block=64)


@pytest.mark.parametrize("worker", ["0", "1"])
def test_a_loop_that_is_not_unrolled_is_a_warning(worker, capfd, monkeypatch):
    monkeypatch.setenv("FLY_LLVM_WORKER", worker)
    synchronous._kept.clear()
    synchronous.compile(target="gfx942")
    said = capfd.readouterr().err
    line = line_of("for j in range(0, n, unroll=4):  # its barrier prevents that")
    assert re.search(rf"^fly: warning: \S*{HERE}:{line}:14: opt: loop not unrolled: ", said)
    assert said.count("warning") == 1


def test_no_warnings_for_ordinary_kernels(capfd):
    faulty.compile(target="gfx942")
    assert capfd.readouterr().err == ""


def test_stages_warn_by_themselves_outside_of_a_compilation(capfd):
    messages.warn("odd")
    assert messages.said_by("opt", "warning: <unknown>:0:0: odd too\nmore\n") == "more"
    assert capfd.readouterr().err == "fly: warning: odd\nfly: warning: opt: odd too\n"
    with messages.collected() as outer:
        with messages.collected() as inner:
            messages.warn("in")
        messages.warn("out")
    assert [one.message for one in inner] == ["in"]
    assert [one.message for one in outer] == ["out"]
    assert capfd.readouterr().err == ""


def element(A, i):
    return A[i + 1000000]


def doubled(A, i):
    return element(A, i) * 2.0


@fly.kernel
def faulty_kernel(A: fx.Tensor):
    A[fx.thread_idx.x] = doubled(A, fx.thread_idx.x)


@fly.jit
def faulty(A: fx.Tensor[fx.Float32, None]):
    faulty_kernel(A).launch(grid=1, block=64)


CALLS = [
    ("return element(A, i) * 2.0", 12),
    ("A[fx.thread_idx.x] = doubled(A, fx.thread_idx.x)", 26),
]


@pytest.mark.parametrize("debugging", [False, True])
def test_a_fault_names_the_calls(debugging, monkeypatch):
    monkeypatch.setenv("FLY_DEBUG", "1" if debugging else "0")
    with pytest.raises(Fault, match="memory fault") as caught:
        faulty(np.zeros(64, np.float32))
    place = caught.value.place
    assert (place.line, place.column) == (line_of("return A[i + 1000000]"), 12)
    assert [(one.line, one.column) for one in place.calls] == [
        (line_of(text), column) for text, column in CALLS
    ]
    lines = caught.value.render("fly").splitlines()
    assert [line.partition(": ")[2] for line in lines if line.startswith("  called at")] == [
        text for text, _ in CALLS
    ]
    # The library's own frames are shown for debugging only: the last one raises the error.
    files = [one.filename for one in traceback.extract_tb(caught.tb)]
    assert (len([file for file in files if HERE not in file]) > 1) is debugging


def test_a_fault_on_the_cpu_names_the_calls():
    made = faulty.compile(target="sm_90a")
    with_lines = Compiled(run(made._chain.with_lines(), made._module))
    with pytest.raises(Fault, match="memory fault") as caught:
        with_lines.run({"A": np.zeros(64, np.float32)}, device="cpu")
    place = caught.value.place
    assert place.text.strip() == "return A[i + 1000000]"
    assert [one.text.strip() for one in place.calls] == [text for text, _ in CALLS]


def test_an_error_of_the_trace_hides_the_librarys_frames(monkeypatch):
    @fly.kernel
    def wrong_kernel(A: fx.Tensor):
        A[0] = doubled(A, 0.5)

    @fly.jit
    def wrong(A: fx.Tensor[fx.Float32, None]):
        wrong_kernel(A).launch(grid=1, block=64)

    for debugging in ("0", "1"):
        monkeypatch.setenv("FLY_DEBUG", debugging)
        with pytest.raises(InputError) as caught:
            wrong(np.zeros(64, np.float32))
        assert "called in doubled" in str(caught.value)
        files = [one.filename for one in traceback.extract_tb(caught.tb)]
        assert any("fly_trace" in file for file in files) is (debugging == "1")
    assert sys.exc_info() == (None, None, None)
