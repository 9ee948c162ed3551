"""Calls of tuned functions: kinds of arguments, keys, other functions, fly-trace, torch."""

# ruff: noqa: F821  (extents are named by strings)

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from fly_common.errors import UsageError
from fly_trace.session.load import load_file

import fly
import fly.expr as fx
from fly.tune.function import TunedFunction

from .planted import blocks, scale, scale_kernel

PROGRAM = """
import fly
import fly.expr as fx

@fly.kernel
def axpy_kernel(X: fx.Tensor, Y: fx.Tensor, a: fx.Float32, n: fx.Int64, B: fx.Constexpr):
    i = fx.block_idx.x * B + fx.thread_idx.x
    if i < n:
        Y[i] = a * X[i] + Y[i]

@fly.autotune([fly.Config(BLOCK=64), fly.Config(BLOCK=128)], key=["n"])
@fly.jit
def axpy(X: fx.Tensor[fx.Float32, "n"], Y: fx.Tensor[fx.Float32, "n"], BLOCK: fx.Constexpr,
         a: fx.Float32 = 2.0):
    n = X.shape[0]
    axpy_kernel(X, Y, a, n, BLOCK).launch(grid=fx.ceildiv(n, BLOCK), block=BLOCK)
"""


@pytest.fixture(scope="module")
def axpy(tmp_path_factory) -> TunedFunction:
    path = tmp_path_factory.mktemp("axpy") / "program.py"
    path.write_text(PROGRAM)
    return vars(load_file(str(path)))["axpy"]


def test_arguments_by_position_by_name_and_left_out(axpy):
    x, y = np.ones(100, np.float32), np.zeros(100, np.float32)
    for count, call in enumerate(
        [
            lambda: axpy(x, y),
            lambda: axpy(x, y, 2.0),
            lambda: axpy(x, Y=y),
            lambda: axpy(x, y, a=2.0),
            lambda: axpy(Y=y, X=x, a=2.0),
        ],
        1,
    ):
        call()
        call()
        assert (y == 4 * count).all()


def test_a_known_call_takes_the_native_way(axpy):
    x, y = np.ones(100, np.float32), np.zeros(100, np.float32)
    for _ in range(4):
        axpy(x, y, 2.0)
    assert axpy.jit._native is not None
    assert axpy._known


def test_prepared(axpy):
    x, y = np.ones(100, np.float32), np.zeros(100, np.float32)
    launch = axpy.prepare(x, y, 3.0)
    launch()
    launch()
    assert (y == 6).all()


def test_annotated_arrays(axpy):
    x, y = np.ones(128, np.float32), np.zeros(128, np.float32)
    axpy.tune(fly.from_dlpack(x), y)
    axpy(fly.from_dlpack(x), fly.from_dlpack(y))
    assert (y == 2).all()

    @fly.jit
    def untyped(X: fx.Tensor, BLOCK: fx.Constexpr = 64):
        scale(X, BLOCK)

    tuned = fly.autotune(blocks(64, 128), key=["X"])(untyped)
    assert tuned._case({"X": fly.from_dlpack(x)}) == tuned._case({"X": x})


def test_keys_of_calls():
    @fly.kernel
    def fill_kernel(X: fx.Tensor, v, B: fx.Constexpr):
        X[fx.block_idx.x * B + fx.thread_idx.x] = v

    @fly.jit
    def fill(X: fx.Tensor, m: fx.Int32, v, B: fx.Constexpr = 64, MORE: fx.Constexpr = 1):
        fill_kernel(X, v, B).launch(grid=MORE, block=B)

    key = ["X", "X[0] // 100", "len(X)", "m.bit_length()", "max(m, 3)"]
    tuned = fly.autotune(blocks_of_b(64, 32), key=key)(fill)
    x = np.zeros(320, np.float32)
    case = tuned._case({"X": x, "m": 5, "v": 1, "MORE": 2})
    assert case.key == {
        "X": [320], "X[0] // 100": 3, "len(X)": 1, "m.bit_length()": 3, "max(m, 3)": 5, "MORE": 2,
    }  # fmt: skip
    assert case.types == {"X": "f32", "m": "i32", "v": "i32"} or case.types["v"].startswith("i")
    assert (case.target, case.device) == ("gfx942", "emulator")
    tuned(x, 5, 1)
    tuned(x, 5, 1.5)
    assert len(tuned._known) == 2  # types of numbers are part of the key
    with pytest.raises(UsageError, match="key="):
        fly.autotune(blocks_of_b(64), key=["m[0]"])(fill)(x, 5, 1)


def blocks_of_b(*sizes: int) -> list[fly.Config]:
    return [fly.Config(B=size) for size in sizes]


def test_a_family_of_element_types():
    @fly.jit
    def of_floats(X: fx.Tensor[fx.Float, "n"], BLOCK: fx.Constexpr = 64):
        scale_kernel(X, X.shape[0], BLOCK).launch(grid=2, block=BLOCK)

    tuned = fly.autotune(blocks(64, 128), key=["n"])(of_floats)
    for dtype in (np.float32, np.float64, np.float32):
        x = np.ones(128, dtype)
        tuned(x)
        assert (x == 2).all()
    assert len(tuned._known) == 2
    assert tuned._case({"X": x}).types == {"X": "f32"}


def test_a_change_of_target_is_seen(axpy, monkeypatch):
    x, y = np.ones(100, np.float32), np.zeros(100, np.float32)
    axpy(x, y)
    for target in ("gfx1100", "gfx942"):
        monkeypatch.setenv("FLY_TARGET", target)
        axpy(x, y)
        assert axpy.compile(x, y).target == target
    assert (y == 6).all()


@pytest.mark.usefixtures("shared_handlers")
def test_in_a_host_function_it_is_the_default_configuration():
    tuned = fly.autotune(blocks(64, 128), default=fly.Config(BLOCK=128))(scale)

    @fly.jit
    def twice(X: fx.Tensor[fx.Float32, "n"]):
        tuned(X)
        tuned(X)

    x = np.ones(300, np.float32)
    twice(x)
    assert (x == 4).all()
    assert "('const', 128)" in str(twice.compile(x).program)
    first = twice.compile(x).hsaco
    tuned.constants = {"BLOCK": 64}
    assert twice.compile(x).hsaco != first


def test_fly_trace_takes_the_default_configuration(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    tool = Path(sys.executable).parent / "fly-trace"
    words = [tool, str(tmp_path / "program.py")]
    for options, size in (([], 64), (["--sig", "BLOCK = 256"], 256)):
        done = subprocess.run([*words, *options], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert f"arith.constant {size} : index" in done.stdout


def test_it_stays_an_argument_of_nothing(axpy):
    """Its own state is no dependency of a function that calls it."""
    from fly.dependencies.hashing import dependency_hash

    def calls():
        return axpy

    before = dependency_hash(calls)
    x, y = np.ones(100, np.float32), np.zeros(100, np.float32)
    axpy.tune(x, y)
    assert before.digest is not None
    assert dependency_hash(calls).digest == before.digest


def test_parameters_of_any_name():
    """Generated functions have names of their own."""

    @fly.kernel
    def add_kernel(native: fx.Tensor, result: fx.Int64, B: fx.Constexpr):
        i = fx.block_idx.x * B + fx.thread_idx.x
        if i < result:
            native[i] = native[i] + 1.0

    @fly.jit
    def add(native: fx.Tensor, len: fx.Int64, *, getattr: fx.Int64 = 7, B: fx.Constexpr):
        add_kernel(native, native.shape[0], B).launch(grid=4, block=B)

    tuned = fly.autotune(blocks_of_b(64, 32), key=["len", "getattr", "native"])(add)
    x = np.zeros(128, np.float32)
    for _ in range(3):
        tuned(x, 3)
        tuned(x, 3, getattr=4)
    assert (x == 6).all()
    assert tuned._case({"native": x, "len": 3}).key == {"len": 3, "getattr": 7, "native": [128]}


def test_threads_tune_and_call_at_once(monkeypatch):
    monkeypatch.setenv("FLY_AUTOTUNE", "1")
    tuned = fly.autotune(blocks(64, 128), key=["n"])(scale)
    arrays = [np.ones(64 * size, np.float32) for size in (1, 2, 1, 2)]
    with ThreadPoolExecutor(len(arrays)) as pool:
        list(pool.map(tuned, arrays))
    assert all((array == 2).all() for array in arrays)
