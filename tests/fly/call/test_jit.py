"""@fly.jit: right results, no stale code, errors in the caller's words.

Kernels are written to files and imported, as an application's are.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from fly_common.errors import FlyError, InputError, UsageError
from fly_run.devices.options import Options
from fly_run.emulator.watch.stats import Statistics
from fly_store.store import default_store

import fly
from fly.chains.stage import Stage

HEAD = "import fly\nimport fly.expr as fx\n"
AXPY = textwrap.dedent("""
    FACTOR = 2

    @fly.kernel
    def kernel(X: fx.Tensor, Y: fx.Tensor, a: fx.Float32, n: fx.Int64):
        i = fx.block_idx.x * 64 + fx.thread_idx.x
        if i < n:
            Y[i] = a * X[i] * FACTOR

    @fly.jit
    def f(X: fx.Tensor[fx.Float32, "n"], Y: fx.Tensor[fx.Float32, "n"], a: fx.Float32 = 3.0):
        n = X.shape[0]
        kernel(X, Y, a, n).launch(grid=fx.ceildiv(n, 64), block=64)
""")


@pytest.fixture(autouse=True)
def library(handlers: Path):
    """Loaded before the test looks into its cache."""


def load(path: Path, text: str, name: str = "subject") -> ModuleType:
    """The module of `text`, imported from `path` afresh."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD + textwrap.dedent(text))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
    return module


def entries() -> int:
    return sum(1 for _ in default_store().entries())


def result(function, *arguments, size: int = 100, **named) -> np.ndarray:
    """What `function(X, Y, …)` writes to Y, for X = 0, 1, 2, …"""
    x, y = np.arange(size, dtype=np.float32), np.full(size, np.nan, np.float32)
    function(x, y, *arguments, **named)
    return y


NUMBERS = np.arange(100, dtype=np.float32)


def test_a_call_computes(tmp_path: Path):
    f = load(tmp_path / "a.py", AXPY).f
    np.testing.assert_array_equal(result(f), 6 * NUMBERS)
    np.testing.assert_array_equal(result(f, 5.0), 10 * NUMBERS)
    np.testing.assert_array_equal(result(f, a=np.float32(0.5)), NUMBERS)
    x, y = np.ones(3, np.float32), np.zeros(3, np.float32)
    f(Y=y, X=x)
    assert y.tolist() == [6, 6, 6]


def test_sizes_and_scalars_share_one_compilation(tmp_path: Path):
    f = load(tmp_path / "a.py", AXPY).f
    for size in (1, 63, 64, 65, 1000):
        np.testing.assert_array_equal(result(f, 1.0, size=size), 2 * np.arange(size))
    result(f, 7.5)
    assert len(f._kept) == 1


def test_an_empty_array_launches_nothing(tmp_path: Path):
    assert result(load(tmp_path / "a.py", AXPY).f, size=0).size == 0


def test_strided_arrays_are_read_and_written_in_place(tmp_path: Path):
    f = load(tmp_path / "a.py", AXPY).f
    x, y = np.arange(40, dtype=np.float32), np.zeros((20, 3), np.float32)
    f(x[::2], y[:, 1])
    np.testing.assert_array_equal(y[:, 1], 6 * x[::2])
    assert not y[:, 0].any()
    assert not y[:, 2].any()
    f(x[::-1][:20], y[:, 0])
    np.testing.assert_array_equal(y[:, 0], 6 * x[::-1][:20])


def test_arrays_that_annotations_leave_open(tmp_path: Path):
    source = """
        @fly.kernel
        def kernel(X: fx.Tensor, n: fx.Int64):
            i = fx.block_idx.x * 64 + fx.thread_idx.x
            if i < n:
                X[i] = X[i] + 1

        @fly.jit
        def f(X: fx.Tensor):
            n = X.shape[0]
            kernel(X, n).launch(grid=fx.ceildiv(n, 64), block=64)
    """
    f = load(tmp_path / "a.py", source).f
    for dtype in (np.float32, np.float64, np.int32, np.int64, np.uint8, np.float16):
        x = np.arange(70).astype(dtype)
        f(x)
        np.testing.assert_array_equal(x, np.arange(1, 71).astype(dtype))
    assert len(f._kept) == 6
    assert f.compile(signature="X: f32[?]").hsaco == f.compile(np.zeros(3, np.float32)).hsaco


# --- nothing stale ---

HOLES = {
    "a global constant": ("FACTOR = 2", "FACTOR = 5", 5 / 2),
    "the kernel": ("a * X[i] * FACTOR", "a + X[i] * 0 + FACTOR", None),
    "the host function": ("grid=fx.ceildiv(n, 64)", "grid=1", None),
    "a default": ("a: fx.Float32 = 3.0", "a: fx.Float32 = 6.0", 2),
}


@pytest.mark.parametrize(("old", "new", "ratio"), HOLES.values(), ids=HOLES)
def test_an_edited_file_is_compiled_anew(tmp_path: Path, old: str, new: str, ratio):
    before = result(load(tmp_path / "a.py", AXPY).f)
    after = result(load(tmp_path / "a.py", AXPY.replace(old, new)).f)
    if ratio is None:
        assert not np.array_equal(before, after)
    else:
        np.testing.assert_array_equal(after, before * ratio)


STATEFUL = """
    import collections, operator
    GL, GD = [1, 2, 3], {"a": 4, "b": 5}
    GIT = iter(range(10))
    DD = collections.defaultdict(int)
    class Thing:
        v = 1
    GOBJ = Thing()

    def held(items=[]):
        items.append(1)
        return len(items)

    @fly.kernel
    def kernel(Y: fx.Tensor):
        CHANGE

    @fly.jit
    def f(Y: fx.Tensor[fx.Float32, "n"]):
        kernel(Y).launch(grid=1, block=1)
"""


@pytest.mark.parametrize(
    "change",
    [
        "GL.append(4); Y[0] = len(GL)",
        "operator.iadd(GL, [4]); Y[0] = len(GL)",
        "Y[0] = GD.pop(list(GD)[0])",
        "GOBJ.v = GOBJ.v + 1; Y[0] = GOBJ.v",
        "Y[0] = next(GIT)",
        "Y[0] = held()",
        "Y[0] = DD[len(DD)]",
    ],
)
def test_a_kernel_that_changes_what_outlives_its_trace_is_refused(tmp_path: Path, change: str):
    """Each call gave another result, or the first one's for ever."""
    module = load(tmp_path / "a.py", STATEFUL.replace("CHANGE", change))
    for _ in range(2):
        with pytest.raises(InputError, match="from outside the kernel"):
            module.f(np.zeros(1, np.float32))
    assert (module.GL, module.GD) == ([1, 2, 3], {"a": 4, "b": 5})
    assert not vars(module.GOBJ)
    assert not module.DD
    assert module.held.__defaults__ == ([],)


def test_a_global_changed_between_two_calls(tmp_path: Path):
    module = load(tmp_path / "a.py", AXPY)
    for factor in (2, 4, 2, 8):
        module.FACTOR = factor
        np.testing.assert_array_equal(result(module.f), 3 * factor * NUMBERS)
    assert len(module.f._kept) == 3


def test_a_redefined_helper(tmp_path: Path):
    source = AXPY.replace("X[i] * FACTOR", "helper(X[i])").replace(
        "FACTOR = 2", "def helper(x):\n    return x + 1"
    )
    module = load(tmp_path / "a.py", source)
    np.testing.assert_array_equal(result(module.f), 3 * (NUMBERS + 1))
    other = load(tmp_path / "b.py", "def helper(x):\n    return x + 2\n", "other")
    module.helper = other.helper
    np.testing.assert_array_equal(result(module.f), 3 * (NUMBERS + 2))


def test_a_helper_in_another_folder(tmp_path: Path):
    source = "import helpers\n" + AXPY.replace("X[i] * FACTOR", "helpers.helper(X[i])")
    for add in (1, 2):
        load(tmp_path / "far" / "helpers.py", f"def helper(x):\n    return x + {add}\n", "helpers")
        module = load(tmp_path / "near" / "a.py", source)
        np.testing.assert_array_equal(result(module.f), 3 * (NUMBERS + add))


def test_a_file_that_was_edited_and_not_loaded_again(tmp_path: Path):
    module = load(tmp_path / "a.py", AXPY)
    (tmp_path / "a.py").write_text(HEAD + AXPY.replace("a * X[i]", "a + X[i]"))
    with pytest.raises(InputError, match=r"a\.py:\d+: the source of kernel changed since it was"):
        result(module.f)


def test_an_edit_does_not_disturb_what_is_compiled(tmp_path: Path):
    module = load(tmp_path / "a.py", AXPY)
    result(module.f)
    (tmp_path / "a.py").write_text("nothing")
    np.testing.assert_array_equal(result(module.f, 1.0), 2 * NUMBERS)


def test_a_closures_value(tmp_path: Path):
    source = """
        def make(factor):
            @fly.kernel
            def kernel(X: fx.Tensor, Y: fx.Tensor, n: fx.Int64):
                i = fx.block_idx.x * 64 + fx.thread_idx.x
                if i < n:
                    Y[i] = X[i] * factor

            @fly.jit
            def f(X: fx.Tensor[fx.Float32, "n"], Y: fx.Tensor[fx.Float32, "n"]):
                n = X.shape[0]
                kernel(X, Y, n).launch(grid=fx.ceildiv(n, 64), block=64)

            return f
    """
    module = load(tmp_path / "a.py", source)
    for factor in (2, 3):
        np.testing.assert_array_equal(result(module.make(factor)), factor * NUMBERS)


def test_compile_time_constants(tmp_path: Path):
    source = """
        @fly.kernel
        def kernel(X: fx.Tensor, Y: fx.Tensor, n: fx.Int64, times: fx.Constexpr[int]):
            i = fx.block_idx.x * 64 + fx.thread_idx.x
            if i < n:
                total = fx.Float32(0)
                for _ in fx.range_constexpr(times):
                    total = total + X[i]
                Y[i] = total

        @fly.jit
        def f(
            X: fx.Tensor[fx.Float32, "n"],
            Y: fx.Tensor[fx.Float32, "n"],
            times: fx.Constexpr[int] = 2,
        ):
            n = X.shape[0]
            kernel(X, Y, n, times).launch(grid=fx.ceildiv(n, 64), block=64)
    """
    f = load(tmp_path / "a.py", source).f
    np.testing.assert_array_equal(result(f), 2 * NUMBERS)
    np.testing.assert_array_equal(result(f, 3), 3 * NUMBERS)
    np.testing.assert_array_equal(result(f, times=5), 5 * NUMBERS)
    np.testing.assert_array_equal(result(f, 3), 3 * NUMBERS)
    assert len(f._kept) == 3


def test_what_cannot_be_followed_is_traced_each_time(tmp_path: Path, monkeypatch):
    source = "import os\n" + AXPY.replace("FACTOR = 2", "").replace(
        "* FACTOR", "* int(os.environ['FACTOR'])"
    )
    module = load(tmp_path / "a.py", source)
    for factor in (2, 3, 2):
        monkeypatch.setenv("FACTOR", str(factor))
        np.testing.assert_array_equal(result(module.f), 3 * factor * NUMBERS)


# --- options and targets ---


def test_the_target_comes_from_the_decorator_then_the_environment(tmp_path: Path, monkeypatch):
    f = load(tmp_path / "a.py", AXPY).f
    assert f.compile().target == "gfx942"
    monkeypatch.setenv("FLY_TARGET", "gfx90a")
    assert f.compile().target == "gfx90a"
    assert f.compile(target="gfx950").target == "gfx950"
    fixed = load(tmp_path / "b.py", AXPY.replace("@fly.jit", '@fly.jit(target="gfx950")')).f
    assert fixed.compile().target == "gfx950"
    np.testing.assert_array_equal(result(fixed), 6 * NUMBERS)


@pytest.mark.parametrize("option", ["opt_level=0", "opt_level=None", 'device="emulator"'])
def test_options_keep_the_result(tmp_path: Path, option: str):
    f = load(tmp_path / "a.py", AXPY.replace("@fly.jit", f"@fly.jit({option})")).f
    np.testing.assert_array_equal(result(f), 6 * NUMBERS)


def test_opt_level_is_no_dead_knob(tmp_path: Path):
    made = {
        load(tmp_path / "a.py", AXPY.replace("@fly.jit", f"@fly.jit(opt_level={level})"))
        .f.compile()
        .ir("o")
        for level in (None, 0, 1)
    }
    assert len(made) >= 2


def test_a_chain_of_ones_own(tmp_path: Path):
    log = tmp_path / "log"
    program = tmp_path / "look.sh"
    program.write_text(f"#!/bin/sh\necho ran >> {log}\nexec cat\n")
    program.chmod(0o755)
    looking = Stage.command([str(program)], suffix=".ll")
    module = load(tmp_path / "a.py", AXPY)
    chained = fly.chain(target="gfx90a").insert_before("opt", looking)
    f = fly.jit(chain=chained)(module.f.function)
    np.testing.assert_array_equal(result(f), 6 * NUMBERS)
    assert log.read_text() == "ran\n"
    assert f.compile().target == "gfx90a"
    with pytest.raises(UsageError, match="has its own chain, for gfx90a"):
        f.compile(target="gfx942")
    program.write_text(f"#!/bin/sh\necho again >> {log}\nexec cat\n")
    result(f)
    assert log.read_text() == "ran\nagain\n"


def test_wrong_options():
    with pytest.raises(UsageError, match="opt_level=7: must be 0, 1, 2, 3 or None"):
        fly.jit(opt_level=7)
    with pytest.raises(UsageError, match="target='gfx942' contradicts the chain's target, gfx90a"):
        fly.jit(target="gfx942", chain=fly.chain(target="gfx90a"))
    with pytest.raises(UsageError, match=r"@fly\.jit decorates a function, not a int"):
        fly.jit(3)  # type: ignore[call-overload]


# --- looking inside, ahead of time ---


def test_what_a_compilation_shows(tmp_path: Path):
    made = load(tmp_path / "a.py", AXPY).f.compile()
    assert made.program
    assert [p.name for p in made.program.parameters] == ["X", "Y", "a"]
    assert list(made.kernels) == ["kernel"]
    assert made.kernels["kernel"].vgpr_count > 0
    assert "gpu.launch_func" in made.ir("mlir")
    assert "define amdgpu_kernel void @kernel" in made.ir("ll")
    assert "target-cpu" in made.ir("opt.ll")
    assert made.ir("o")[:4] == b"\x7fELF"
    assert "s_endpgm" in made.ir("asm")
    assert repr(made) == f"<compiled f for gfx942, {len(made.hsaco)} bytes>"
    with pytest.raises(
        UsageError, match=r"does not produce 'ptx'\n  it produces mlir, ll, opt\.ll, o, hs"
    ):
        made.ir("ptx")


def test_ahead_of_time(tmp_path: Path):
    load(tmp_path / "a.py", AXPY).f.compile().save(tmp_path / "f.hsaco")
    loaded = fly.load(tmp_path / "f.hsaco")
    np.testing.assert_array_equal(result(loaded), 6 * NUMBERS)
    np.testing.assert_array_equal(result(loaded, a=1.0), 2 * NUMBERS)
    np.testing.assert_array_equal(result(fly.load(loaded.hsaco), 2.0), 4 * NUMBERS)
    with pytest.raises(UsageError, match="a code object that was loaded has no 'mlir'"):
        loaded.ir("mlir")
    with pytest.raises(UsageError, match="f takes 3 arguments, got 4"):
        loaded(1, 2, 3, 4)
    with pytest.raises(UsageError, match="f got X twice, by position and by name"):
        loaded(1, X=1)


def test_a_kernel_without_its_plan(tmp_path: Path):
    made = load(tmp_path / "a.py", AXPY).f.compile()
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    # The kernel's own arguments: each tensor's address and extent, then a and n.
    extent = np.int64(64)
    (ran,) = made.launch("kernel", 1, 64, [x, extent, y, extent, np.float32(1), extent])
    np.testing.assert_array_equal(y, 2 * x)
    assert ran.instructions


def test_what_a_run_did_is_counted(tmp_path: Path):
    made = load(tmp_path / "a.py", AXPY).f.compile()
    seen = Statistics()
    x, y = NUMBERS.copy(), np.zeros_like(NUMBERS)
    options = Options(observers=(seen,))
    (ran,) = made.run({"X": x, "Y": y, "a": 1.0}, options=options).ran
    (document,) = seen.documents
    assert document["instructions"] == ran.instructions
    assert document["memory"]["global"]["load"]["bytes"] >= x.nbytes


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"text", bytes(1000)])
def test_no_code_object(data: bytes):
    with pytest.raises(InputError):
        fly.load(data)


def test_no_file():
    with pytest.raises(UsageError, match=r"/nowhere/f\.hsaco: no such file"):
        fly.load("/nowhere/f.hsaco")


# --- what is refused ---


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f, x: f(x), "f needs Y, f32[n]"),
        (lambda f, x: f(x, x, 1.0, 2), "f takes 3 arguments, got 4"),
        (lambda f, x: f(x, x, X=x), "f got X twice, by position and by name"),
        (lambda f, x: f(x, x, b=1), "f has no parameter 'b'"),
        (lambda f, x: f(x, 3), "argument Y of f must be an array, not int"),
        (lambda f, x: f(x, None), "argument Y of f must be an array, not NoneType"),
        (lambda f, x: f(x, x.astype("f8")), "Y must be f32, but the array is f64"),
        (lambda f, x: f(x, x.reshape(5, 2)), "Y must have 1 dimensions, but the array has 2"),
        (lambda f, x: f(x, x[:4]), "extent n is 10 in X, but 4 in Y"),
        (lambda f, x: f(x, np.broadcast_to(x[:1], 10)), "the array is read-only"),
    ],
)
def test_arguments_that_do_not_fit(tmp_path: Path, call, message: str):
    f = load(tmp_path / "a.py", AXPY).f
    with pytest.raises(FlyError) as raised:
        call(f, np.zeros(10, np.float32))
    assert message in str(raised.value)


def test_a_kernel_is_not_called_from_python(tmp_path: Path):
    with pytest.raises(FlyError, match="is a kernel, and can't be called from Python"):
        load(tmp_path / "a.py", AXPY).kernel(1)


def test_an_error_in_a_kernel_shows_its_line_each_time(tmp_path: Path):
    f = load(tmp_path / "a.py", AXPY.replace("a * X[i]", "a * unknown[i]")).f
    for _ in range(2):
        with pytest.raises(InputError) as raised:
            result(f)
        assert f"{tmp_path}/a.py:10" in str(raised.value)
        assert "unknown" in raised.value.message


def test_an_out_of_bounds_kernel_faults(tmp_path: Path):
    """The code has no line tables; the fault has the line all the same."""
    f = load(tmp_path / "a.py", AXPY.replace("if i < n:", "if i < n + 1:")).f
    with pytest.raises(fly.Fault, match="kernel") as raised:
        result(f)
    line = "Y[i] = a * X[i] * FACTOR"
    assert raised.value.place is not None
    assert str(raised.value.place).startswith(f"{tmp_path}/a.py:10:")
    assert line in str(raised.value)
    # A code object that was loaded has no source to compile again.
    x, y = np.ones(100, np.float32), np.ones(100, np.float32)
    with pytest.raises(fly.Fault) as raised:
        fly.load(f.compile(x, y).hsaco)(x, y, 1.0)
    assert raised.value.place is None


# --- processes ---

PROGRAM = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
from a import f
x, y = np.arange(10, dtype=np.float32), np.zeros(10, np.float32)
f(x, y)
assert (y == 6 * x).all(), y
print("torch_mlir" in sys.modules or "mlir" in sys.modules)
assert not [name for name in sys.modules if ".dialects." in name]
"""


@pytest.mark.usefixtures("shared_handlers")
def test_a_second_process_imports_no_mlir(tmp_path: Path):
    load(tmp_path / "a.py", AXPY)
    words = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    runs = [subprocess.run(words, capture_output=True, text=True, check=True) for _ in range(2)]
    assert [run.stdout.strip() for run in runs] == ["True", "False"]


@pytest.mark.usefixtures("shared_handlers")
def test_processes_compile_once(tmp_path: Path):
    load(tmp_path / "a.py", AXPY)
    environment = {**os.environ, "FLY_CACHE": "explain"}
    words = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    running = [
        subprocess.Popen(words, env=environment, stdout=-1, stderr=-1, text=True) for _ in range(4)
    ]
    said = "".join(process.communicate(timeout=60)[1] for process in running)
    assert [process.returncode for process in running] == [0] * 4, said
    for stage in ("trace", "opt-py", "opt", "llc", "link"):
        assert said.count(f"fly: cache: {stage}: miss") == 1, said


def test_without_a_store_it_works_too(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("FLY_CACHE", "off")
    np.testing.assert_array_equal(result(load(tmp_path / "a.py", AXPY).f), 6 * NUMBERS)
    assert not (tmp_path / "cache").exists()


def test_an_unwritable_store(tmp_path: Path, monkeypatch, capfd):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FLY_CACHE_DIR", str(tmp_path / "file"))
    np.testing.assert_array_equal(result(load(tmp_path / "a.py", AXPY).f), 6 * NUMBERS)
    assert capfd.readouterr().err.count("can't be written: Not a directory") == 1


def test_only_what_was_not_there_is_made(tmp_path: Path, capfd, monkeypatch):
    load(tmp_path / "a.py", AXPY).f.compile()
    assert entries() == 5
    monkeypatch.setenv("FLY_CACHE", "explain")
    # A comment moves nothing but the lines: they are in the module, and in nothing behind it.
    load(tmp_path / "a.py", "# a comment\n" + AXPY).f.compile()
    lines = [line.split()[2:4] for line in capfd.readouterr().err.splitlines()]
    assert lines[:3] == [["trace:", "miss"], ["opt-py:", "miss"], ["opt:", "hit"]]


REFUSED = """
    import numpy as np

    @fly.kernel
    def kernel(Y: fx.Tensor):
        Y[0] = missing + 1

    @fly.jit
    def f(Y: fx.Tensor[fx.Float32, "n"]):
        kernel(Y).launch(grid=1, block=1)

    def application():
        f(np.zeros(1, np.float32))

    def compiling():
        f.compile()
"""


@pytest.mark.parametrize("name", ["application", "compiling"])
@pytest.mark.parametrize("debugging", [False, True])
def test_a_refused_call_shows_the_callers_frames(tmp_path, name, debugging, monkeypatch):
    """26 frames of the library stood before the message."""
    import traceback

    monkeypatch.setenv("FLY_DEBUG", "1" if debugging else "0")
    module = load(tmp_path / "a.py", REFUSED)
    with pytest.raises(InputError) as raised:
        getattr(module, name)()
    text = "".join(traceback.format_exception(raised.value))
    frames = [line for line in text.splitlines() if line.startswith("  File ")]
    assert f"in {name}" in text
    assert "a.py:8:12: NameError: name 'missing' is not defined" in text
    # The test's own, the application's, and the one of what it called.
    assert len(frames) > 20 if debugging else len(frames) == 3
    assert ("direct cause" in text) == debugging


COMPILED = """
import numpy as np

@fly.kernel
def k(A: fx.Tensor):
    A[0] = fx.Float32(1.0)

@fly.jit
def f(A: fx.Tensor[fx.Float32, None]):
    k(A).launch(grid=1, block=1)

compiled = f.compile(target="gfx942")

def calling():
    compiled(np.zeros(1, np.float64))

def naming():
    compiled.run({"B": np.zeros(1, np.float32)})

def launching():
    compiled.launch("missing", 1, 1, [])
"""


@pytest.mark.parametrize("name", ["calling", "naming", "launching"])
@pytest.mark.parametrize("debugging", [False, True])
def test_a_refused_call_of_compiled_code_shows_the_callers_frames(
    tmp_path, name, debugging, monkeypatch
):
    import traceback

    monkeypatch.setenv("FLY_DEBUG", "1" if debugging else "0")
    module = load(tmp_path / "a.py", COMPILED)
    with pytest.raises(FlyError) as raised:
        getattr(module, name)()
    frames = traceback.extract_tb(raised.value.__traceback__)
    assert frames[1].name == name
    # The test's own, the application's, and the one of what it called.
    assert len(frames) > 3 if debugging else len(frames) == 3
