"""Launchers beside their guards: results, errors of the device, references, compilers, kept
libraries."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy
import pytest
from fly_common.errors import InputError
from fly_host import program as host
from fly_host.native import arrays, calling, engine, library, probing
from fly_host.native.specialisation import (
    Array,
    DriverEntry,
    Options,
    PythonEntry,
    Specialisation,
    specialise,
)
from fly_host.native.unavailable import Unavailable
from fly_host.program import Operand, Word
from host_hammer import __main__ as hammer

from .recording import RecordingDriver, limits_of
from .test_guards import native, program

torch: Any = pytest.importorskip("torch")


def doubled(kind: str) -> tuple[host.Program, Any]:
    """f(A) allocates an array of twice A's extent, with room for 100 elements."""
    expressions = (("const", 1), ("const", 0), ("extent", "A", 0), ("add", 2, 2), ("const", 100))
    launch = host.Launch("k", (0,) * 3, (0,) * 3, 1, ((Word("pointer", "B"),),))
    made = host.Program(
        *("f", "gfx942", (host.Tensor("A", "f32", (None,), (None,), "r"),), expressions),
        (host.Allocate("B"), launch),
        (host.Buffer("B", "f32", (3,), (0,), 4),),
        Operand("tensor", "B"),
    )
    array = torch.ones(4) if kind == "torch" else numpy.ones(4, numpy.float32)
    return made, array


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_an_allocation_has_room_for_all_elements(kind: str) -> None:
    made, array = doubled(kind)
    found, _ = native(made, array)
    result = found.call(array)
    assert result.shape == (8,)
    if kind == "torch":
        assert result.untyped_storage().nbytes() == 400
    else:
        assert result.base.nbytes == 400


def test_outputs_are_of_the_dtype_objects_of_inputs() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    made, _ = doubled("numpy")
    tensor = host.Tensor("A", "bf16", (None,), (None,), "r")
    buffer = host.Buffer("B", "bf16", (3,), (0,), 3)
    made = host.Program(
        *("f", "gfx942", (tensor,), made.expressions, made.steps, (buffer,), made.results)
    )
    array = numpy.zeros(4, ml_dtypes.bfloat16)
    found, _ = native(made, array)
    assert found.call(array).dtype == ml_dtypes.bfloat16
    bits = array.view(numpy.uint16)
    found, _ = native(made, bits)
    assert found.call(bits).dtype == numpy.uint16
    tensor_ = torch.zeros(4, dtype=torch.bfloat16)
    found, _ = native(made, tensor_)
    assert found.call(tensor_).dtype == torch.bfloat16


@pytest.mark.parametrize("rung", ["_empty_strided_cpu", "empty_strided"])
def test_torch_tensors_without_its_c_interface(rung: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other ways to allocate, where torch has no aoti_torch_*, and to ask for a negative."""
    full = probing.torch()
    lean = probing.Torch(full.dltensor, None, id(torch.Tensor.is_neg), {}, full.dtypes)
    monkeypatch.setattr(probing, "torch", lambda: lean)
    if rung == "empty_strided":
        monkeypatch.setattr(torch._C._dynamo.guards, "_empty_strided_cpu", None)
    made, array = doubled("torch")
    found, driver = native(made, array)
    assert "aoti" not in found.llvm()
    for _ in range(100):
        result = found.call(array)
        assert result.shape == (8,)
        assert int.from_bytes(driver.log[-1][3][:8], "little") == result.data_ptr()
    assert found.call(torch.zeros(4, dtype=torch.complex64).conj().imag) is NotImplemented


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_memory_that_can_t_be_had(kind: str, capfd: pytest.CaptureFixture[str]) -> None:
    """An extent of 2^40: the library's own error."""
    expressions = (("const", 1), ("const", 0), ("extent", "A", 0), ("const", 1 << 50))
    buffer = host.Buffer("B", "f32", (3,), (0,), 3)
    made, array = doubled(kind)
    made = host.Program(
        *("f", "gfx942", made.parameters, expressions, made.steps, (buffer,), made.results)
    )
    found, driver = native(made, array)
    for _ in range(3):
        with pytest.raises((MemoryError, RuntimeError)):
            found.call(array)
    assert driver.log == []


def test_views_of_numpy_and_torch() -> None:
    base = numpy.arange(24, dtype=numpy.float32).reshape(4, 6)[::-1]
    seen = arrays.view(base, (2, 2), (-6, 2), 1)
    assert seen.tolist() == [[19, 21], [13, 15]]
    tensor = torch.arange(24.0)[4:]
    assert arrays.view(tensor, (2, 2), (1, 3), 2).tolist() == [[6, 9], [7, 10]]
    ml_dtypes = pytest.importorskip("ml_dtypes")
    small = numpy.ones(4, ml_dtypes.bfloat16)
    assert arrays.view(small, (2,), (2,), 1).dtype == small.dtype


# -- the device's entry


def test_the_driver_s_errors() -> None:
    made = program(host.Tensor("A", "f32", (None,), (None,), "w"))
    array = torch.zeros(3)
    found, driver = native(made, array)
    driver.status = 719
    with pytest.raises(RuntimeError, match="driver: 0 719"):
        found.call(array)
    with pytest.raises(RuntimeError, match="driver: 0 719"):
        found.prepare(array)()
    entry = DriverEntry(driver.function, driver.kernels, lambda launch, status: None)
    quiet = calling.compile(specialise(made, (array,), limits_of(made)), entry)
    with pytest.raises(RuntimeError, match="launch 0 failed: the driver's status is 719"):
        quiet.call(array)
    driver.status = 0
    assert found.call(array) is None


@pytest.mark.parametrize("blocking", [False, True])
def test_a_driver_of_hip_and_one_that_blocks(blocking: bool) -> None:
    made = program(host.Scalar("n", "i32"))
    driver = RecordingDriver(1, end=3)
    limits = limits_of(made)
    found = calling.compile(specialise(made, (1,), limits), driver.entry(blocking=blocking))
    assert found.call(5) is None
    assert found.prepare(5)() is None
    assert driver.log[0] == driver.log[1] == (0, (1, 1, 1, 1, 1, 1, 0), 0, b"\5\0\0\0\0\0\0\0")
    assert ("PyEval_SaveThread()" in found.llvm().partition("define ptr @call")[2]) is blocking


def test_errors_of_a_python_entry_come_through() -> None:
    def run(*_: Any) -> None:
        raise OSError("no device")

    made = program(host.Scalar("n", "i32"))
    found = calling.compile(specialise(made, (1,), limits_of(made)), PythonEntry(run))
    with pytest.raises(OSError, match="no device"):
        found.call(1)


def test_launches_that_follow_each_other_are_one_call() -> None:
    made, array = doubled("torch")
    free = host.Free("B")
    made = host.Program(
        *("f", "gfx942", made.parameters, made.expressions),
        (made.steps[0], made.steps[1], made.steps[1], free, made.steps[1].__class__(
            "k", (0,) * 3, (0,) * 3, 1, ((Word("pointer", "A"),),)
        )),
        made.tensors,
    )  # fmt: skip
    calls: list[Any] = []
    entry = PythonEntry(lambda *given: calls.append(given))
    found = calling.compile(specialise(made, (array,), limits_of(made)), entry)
    assert found.call(array) is None
    assert len(calls) == 1
    assert found.batches[0].launches == (0, 1, 2)
    assert found.batches[0].tensors == ("B", "A")


# -- references


def test_references_and_memory_stay_level() -> None:
    """A sample of `make host-hammer`."""
    for name, call, array in hammer.launchers():
        assert hammer.check(name, call, array, 2000, 2) is None


def test_a_launcher_dies_with_its_builtin() -> None:
    import gc
    import weakref

    class Callable:
        def __call__(self, *_: Any) -> None:
            pass

    run = Callable()
    made = program(host.Scalar("n", "i32"))
    found = calling.compile(specialise(made, (1,), limits_of(made)), PythonEntry(run))
    call, gone = found.call, weakref.ref(run)
    del run, found
    gc.collect()
    assert call(3) is None
    assert gone() is not None
    del call
    gc.collect()
    assert gone() is None


def test_a_loop_that_does_not_end_can_be_interrupted() -> None:
    import signal

    loop = host.Loop((host.Carried(1, 0, 1, 2),), (), 2, ())
    expressions = (("const", 0), ("variable", 1), ("const", 1))
    made = host.Program("f", "gfx942", (), expressions, (loop,))
    found = calling.compile(specialise(made, (), []), PythonEntry(print))
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    with pytest.raises(KeyboardInterrupt):
        found.call()


# -- compilers


def test_llvm_s_programs_make_the_same_launcher() -> None:
    made, array = doubled("torch")
    driver = RecordingDriver(1)
    outside = Options(in_process=False)
    limits = limits_of(made)
    found = calling.compile(specialise(made, (array,), limits), driver.entry(), None, outside)
    assert found.call(array).shape == (8,)
    assert found.call(array.double()) is NotImplemented
    assert "define" in found.llvm(optimised=True)


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_every_level_of_optimisation(level: int) -> None:
    made, array = doubled("numpy")
    limits, driver = limits_of(made), RecordingDriver(1)
    options = Options(opt_level=level)
    found = calling.compile(specialise(made, (array,), limits), driver.entry(), None, options)
    assert found.call(array).shape == (8,)


NO_FIXPOINT = """
declare ptr @PyLong_FromLongLong(i64)
define ptr @call(ptr %args) {
entry:
  %n = load i64, ptr %args
  %some = icmp ne i64 %n, 0
  %value = select i1 %some, i64 1, i64 0
  %none = icmp eq i64 %n, 0
  %ok = select i1 %none, i1 false, i1 true
  br i1 %ok, label %next, label %miss
next:
  %made = call ptr @PyLong_FromLongLong(i64 %value)
  ret ptr null
miss:
  ret ptr null
}
"""


@pytest.mark.parametrize("in_process", [True, False])
def test_instcombine_need_not_reach_a_fixpoint(in_process: bool) -> None:
    """By default `opt` ends with a fatal error where one iteration of the pass leaves work for
    another one."""
    assert engine.library(NO_FIXPOINT, Options(in_process=in_process)).startswith(b"\x7fELF")


def test_without_llvmlite_llvm_s_programs_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_llvmlite", lambda: None)
    assert engine.identity(Options()) == engine.identity(Options(in_process=False))
    made = program(host.Scalar("n", "i32"))
    found, driver = native(made, 1)
    assert found.call(1) is None
    assert len(driver.log) == 1


def test_without_lld_the_system_s_linker_is_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FLY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("FLY_LLVM_DIR", str(tmp_path))
    monkeypatch.setattr(library, "_loaded", {})
    made = program(host.Scalar("n", "i32"))
    found, driver = native(made, 1)
    assert found.call(1) is None
    assert len(driver.log) == 1
    with pytest.raises(Unavailable, match="ld does not accept the launcher"):
        engine._linked_by(shutil.which("ld") or "", b"no object")


def test_a_failure_to_compile_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FLY_CACHE_DIR", str(tmp_path / "cache"))
    made, array = doubled("numpy")
    limits, driver = limits_of(made), RecordingDriver(1)

    def refused(reason: str, options: Options | None = None) -> None:
        library._loaded.clear()
        with pytest.raises(Unavailable, match=reason):
            calling.compile(specialise(made, (array,), limits), driver.entry(), None, options)

    with monkeypatch.context() as patch:
        patch.setenv("FLY_LLVM_DIR", str(tmp_path))
        patch.setenv("PATH", str(tmp_path))
        refused("has no bin/")
        refused("has no bin/", Options(in_process=False))
    with monkeypatch.context() as patch:
        patch.setattr(engine, "_optimise", lambda *_: 1 / 0)
        refused("compiling the launcher failed: division by zero")
    with monkeypatch.context() as patch:
        patch.setattr(engine, "target", lambda: ("x86_64-unknown-linux-gnu", "none such"))
        refused(".", Options(in_process=False))
    with monkeypatch.context() as patch:
        patch.setattr(probing.sys, "version_info", (3, 10, 0))
        refused("CPython 3.11")
    refused_text = "define i32 @f() { ret i64 0 }"
    for in_process in (True, False):
        with pytest.raises(Unavailable):
            engine.library(refused_text, Options(in_process=in_process))


def test_programs_that_do_not_fit_their_kernels() -> None:
    made = program(host.Scalar("n", "i32"))
    from fly_host.native.specialisation import KernelLimits

    for limits in (
        KernelLimits(8, ((0, 8),), 64, 0),
        KernelLimits(8, (), 64, 0),
        KernelLimits(2, ((0, 4),), 64, 0),
        KernelLimits(8, ((0, 4),), 0, 0),
    ):
        with pytest.raises(Unavailable):
            calling.compile(specialise(made, (1,), [limits]), PythonEntry(print))


def test_a_python_with_another_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    assert probing._laid_out_as_known()
    monkeypatch.setattr(probing, "OBJECT_TYPE", 0)
    probing._laid_out_as_known.cache_clear()
    try:
        with pytest.raises(Unavailable, match="another layout in this version of Python"):
            native(program(host.Scalar("n", "i32")), 1)
    finally:
        probing._laid_out_as_known.cache_clear()


def test_kinds_of_arguments_that_are_not_known() -> None:
    made = program(host.Tensor("A", "f32", (None,), (None,), "r"))
    for value in ([1.0], torch.empty(3, device="meta"), memoryview(b"abcd")):
        with pytest.raises(Unavailable, match="A "):
            specialise(made, (value,), [])


def test_the_text_has_no_addresses() -> None:
    """Two programs' worth of objects give one text, or nothing could be kept."""
    made, array = doubled("torch")
    first, _ = native(made, array)
    second, _ = native(made, torch.ones(4))
    assert first.llvm() == second.llvm()
    assert "inttoptr" not in first.llvm()


def test_errors_behind_the_first_step_have_the_interpreter_s_words() -> None:
    _, call, array = hammer.launchers()[0]
    with pytest.raises(InputError, match=r"^n is 7$"):
        call(array, 7, 0.5)


def instructions(text: str) -> int:
    """Those of the builtin."""
    body = text.partition("define ptr @call(")[2].partition("\n}")[0]
    return sum(line.startswith("  ") for line in body.splitlines())


def test_the_text_can_be_had_without_arguments() -> None:
    """Each step of the launcher is in it, and what LLVM makes of it is shorter."""
    made, _ = doubled("numpy")
    text = calling.llvm_text(made, limits_of(made))
    for part in ("define ptr @call(ptr %self, ptr %args, i64 %nargs)", "@allocate_numpy(", "miss:"):
        assert part in text
    short = calling.llvm_text(made, limits_of(made), optimised=True)
    outside = calling.llvm_text(
        made, limits_of(made), optimised=True, options=Options(in_process=False)
    )
    for less in (short, outside):
        assert instructions(less) < instructions(text)
    assert "PyBytes_FromStringAndSize(ptr %" in calling.llvm_text(
        made, limits_of(made), kind="torch", driver=False
    )


def test_what_is_allocated_on_a_device_is_used_in_its_stream_only() -> None:
    """torch's allocator gives memory that is freed to whoever asks in the same stream."""
    expressions = (("const", 1), ("const", 0))
    launch = host.Launch("k", (0,) * 3, (0,) * 3, 1, (), "s")
    branch = host.Branch(1, (host.Allocate("B"),), ())
    buffer = host.Buffer("B", "f32", (0,), (0,), 0)
    made = host.Program(
        *("f", "cuda", (host.Stream("s"),), expressions, (branch, launch), (buffer,))
    )
    for device, calls in (((2, 0), 2), ((1, 0), 3)):
        driver = RecordingDriver(1)
        specialisation = Specialisation(made, {}, limits_of(made), Array("torch", device))
        found = calling.compile(specialisation, driver.entry(stream=lambda: 42))
        assert found.call(None) is None
        assert found.call(42) is None
        assert found.call(7) is (NotImplemented if device == (2, 0) else None)
        assert len(driver.log) == calls
