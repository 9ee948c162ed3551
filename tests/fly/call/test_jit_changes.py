"""No stale code: files, globals, helpers and closures that change between calls."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fly_common.errors import InputError
from fly_store.store import default_store

from .jit_programs import AXPY, HEAD, NUMBERS, load, result


def entries() -> int:
    return sum(1 for _ in default_store().entries())


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
