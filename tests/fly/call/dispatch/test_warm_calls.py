# ruff: noqa: F821  (names of extents are taken for types)
"""Calls of a function that is compiled: what they ask, and when they notice a change."""

import builtins
import contextlib
import inspect
import os
import shutil
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from fly_common.errors import Fault, UsageError
from fly_common.programs import toolchain

import fly
import fly.expr as fx
from fly.call import arguments
from fly.call.arguments import Reader
from fly.call.known_calls import LOOK_AFTER


@fly.kernel
def axpy_kernel(X: fx.Tensor, Y: fx.Tensor, a: fx.Float32, n: fx.Int64):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    if i < n:
        Y[i] = a * X[i] + Y[i]


def axpy(X: fx.Tensor[fx.Float32, "n"], Y: fx.Tensor[fx.Float32, "n"], a: fx.Float32 = 3.0):
    n = X.shape[0]
    axpy_kernel(X, Y, a, n).launch(grid=fx.ceildiv(n, 64), block=64)


@fly.kernel
def wild_kernel(X: fx.Tensor, far: fx.Int64):
    X[fx.thread_idx.x * far] = 1.0


@fly.jit
def wild(X: fx.Tensor[fx.Float32, "n"], far: fx.Int64):
    wild_kernel(X, far).launch(grid=1, block=64)


def warm(made, n: int = 100) -> tuple[np.ndarray, np.ndarray]:
    """Calls until nothing is left to be made; arguments for further calls."""
    x, y = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
    for _ in range(3):
        made(x, y)
    return x, y


@pytest.fixture
def looks(monkeypatch):
    """Who is asked what in a block: the file system, and a function's signature."""

    @contextlib.contextmanager
    def watched():
        asked: list[str] = []
        with monkeypatch.context() as patch:
            for module, names in (
                (os, ("stat", "open", "listdir", "scandir")),
                (builtins, ("open",)),
                (inspect, ("signature",)),
            ):
                for name in names:

                    def tell(*given, _name=name, _call=getattr(module, name), **named):
                        asked.append(f"{_name} {given}")
                        return _call(*given, **named)

                    patch.setattr(module, name, tell)
            yield asked

    return watched


def test_a_warm_call_asks_no_files(looks):
    made = fly.jit(axpy)
    x, y = warm(made)
    made(x, y, a=2.0)
    made(X=x, Y=y, a=np.float32(2.0))
    y[:] = 0
    with looks() as asked:
        made(x, y)
        made(x, y, a=0.5)
        made(X=x, Y=y, a=np.float32(1.0))
    assert asked == []
    np.testing.assert_array_equal(y, 4.5 * x)


def test_files_are_looked_at_after_a_while(looks, monkeypatch):
    made = fly.jit(axpy)
    x, y = warm(made)
    now = time.monotonic() + LOOK_AFTER
    monkeypatch.setattr(time, "monotonic", lambda: now)
    made._calls.native.stop()  # native code has a clock of its own
    with looks() as asked:
        made(x, y)
    assert any("libLLVM" in one for one in asked)
    with looks() as asked:
        made(x, y)
    assert asked == []


@pytest.fixture
def prefix(tmp_path, monkeypatch) -> Path:
    """An LLVM of the test's own: links to programs that may be replaced."""
    folder = tmp_path / "llvm"
    (folder / "bin").mkdir(parents=True)
    for name in ("opt", "llc", "ld.lld"):
        shutil.copy(os.path.realpath(toolchain.find_program(name)), folder / "bin" / name)
    (folder / "lib").symlink_to(Path(toolchain.find_library()).parent)
    monkeypatch.setenv("FLY_LLVM_DIR", str(folder))
    return folder


def test_a_process_that_goes_on_while_its_llvm_is_replaced_notices(prefix, monkeypatch):
    made = fly.jit(axpy)
    x, y = warm(made)
    before = made._calls.identity
    program = prefix / "bin" / "opt"
    with program.open("ab") as file:
        file.write(b"\0")
    made(x, y)
    assert made._calls.identity == before  # within the second
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + LOOK_AFTER)
    made._calls.native.stop()  # native code has a clock of its own
    made(x, y)
    assert made._calls.identity != before
    assert len(made._kept) == 2
    # A function that is new asks at once.
    again = fly.jit(axpy)
    again(x, y)
    assert again._calls.identity == made._calls.identity


def test_the_environment_is_noticed_at_once(monkeypatch):
    made = fly.jit(axpy)
    x, y = warm(made)
    for variable, value in (
        ("FLY_TARGET", "gfx90a"),
        ("FLY_OPT_LEVEL", "1"),
        ("FLY_LLC_OPTIONS", "-amdgpu-waitcnt-forcezero=1"),
    ):
        before, count = made._calls, len(made._kept)
        monkeypatch.setenv(variable, value)
        made(x, y)
        assert made._calls is not before, variable
        assert len(made._kept) == count + 1, variable
    monkeypatch.setenv("FLY_OPT_LEVEL", "7")
    with pytest.raises(UsageError, match="FLY_OPT_LEVEL=7"):
        made(x, y)
    monkeypatch.undo()
    count = len(made._kept)
    y[:] = 0
    made(x, y)
    assert len(made._kept) == count
    np.testing.assert_array_equal(y, 3 * x)


def test_a_stage_of_ones_own_is_asked_at_each_call():
    turns = []

    def fingerprint() -> str:
        turns.append(1)
        return "one"

    stage = fly.Stage("look", lambda data: data, fingerprint, ".ll")
    made = fly.jit(chain=fly.chain("gfx942").insert_before("opt", stage))(axpy)
    x, y = warm(made)
    before = len(turns)
    made(x, y)
    made(x, y)
    assert len(turns) == before + 2


def test_default_chains_are_settled_and_those_with_files_are_not(tmp_path):
    assert fly.chain("gfx942").settled
    assert fly.chain("gfx942", llc=(("insert", ("pre-emit=nop-sled",)),)).settled is False
    plugin = fly.chain("gfx942", opt=("-S", f"-load-pass-plugin={tmp_path}/p.so", "-O3"))
    assert not plugin.settled
    command = fly.Stage.command(["opt", "-S"], suffix=".ll", depends=[tmp_path / "x"])
    assert not command.settled
    assert not fly.Stage.command(["cat"], suffix=".ll").settled


def test_a_fault_leaves_the_next_call_right():
    x = np.zeros(64, np.float32)
    wild(x, 1)
    for _ in range(3):
        with pytest.raises(Fault, match="the end of `X`") as caught:
            wild(x, 2)
        assert caught.value.place is not None
        assert Path(caught.value.place.file).name == Path(__file__).name
        x[:] = 0
        wild(x, 1)
        assert (x == 1).all()


def test_four_threads_at_once():
    made = fly.jit(axpy)
    wrong: list[int] = []
    start = threading.Barrier(4)

    def work(number: int) -> None:
        x = np.arange(50 * number, dtype=np.float32)
        start.wait()
        for turn in range(100):
            y = np.full_like(x, turn)
            made(x, y, a=float(number))
            if not (y == number * x + turn).all():
                wrong.append(number)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    assert wrong == []


# -- keys of calls


def several(A, B: fx.Tensor[fx.Float32, "m", "n"], C: fx.Tensor, n, k: fx.Constexpr, a: fx.Float32):
    """Parameters of every kind."""


A2, A3 = np.zeros((4, 6), np.float32), np.zeros((2, 3, 4), np.float32)
CHOICES = {
    "A": (A2, A3, A2.T, A2[:, ::2], A2[:, 1:], A2.astype("f8"), A2.astype("i4"), np.zeros(3, "f4")),
    "B": (A2, A2.T, A2[:, ::2], A2[:, :1], A3),
    "C": (A2, A2.astype("u1"), A2.T, A3[0]),
    "n": (
        1,
        -1,
        2**31 - 1,
        2**31,
        -(2**31) - 1,
        True,
        1.0,
        np.float32(1),
        np.int32(1),
        np.int64(1),
    ),
    "k": (1, 1.0, True, 0.0, -0.0, "1", None, (1,), (1.0,), (True,), ("1", (2,)), (), ((),)),
    "a": (1, 1.0, np.float64(2)),
}


def test_equal_keys_are_equal_types():
    """And the values of a call are those that `arguments.read` gives."""
    reader = Reader(several)
    first = {name: choices[0] for name, choices in CHOICES.items()}
    keys: dict[tuple, str] = {}
    calls = [first | {name: value} for name, choices in CHOICES.items() for value in choices]
    calls += [first | {"A": a, "B": b} for a in CHOICES["A"] for b in CHOICES["B"]]
    calls += [first | {"B": b, "C": c} for b in CHOICES["B"] for c in CHOICES["C"]]
    for call in calls:
        for positional in (True, False):
            given = (tuple(call.values()), {}) if positional else ((), call)
            found = reader.read(*given)
            assert found is not None
            key, values = found
            types, wanted = arguments.read(several, *given)
            assert values.keys() == wanted.keys()
            for name, value in values.items():
                assert value is wanted[name] or (value, type(value)) == (
                    wanted[name],
                    type(wanted[name]),
                )
            text = arguments.digest_of(types)
            assert text is not None
            assert keys.setdefault(key, text) == text
    assert len(set(keys.values())) > 40


def test_calls_that_a_key_does_not_cover():
    """They are read as ever, each time."""
    reader = Reader(several)
    usual = [choices[0] for choices in CHOICES.values()]
    for position, value in (
        (0, fly.from_dlpack(A2)),
        (1, 5),
        (3, "x"),
        (4, [1, 2]),
        (4, np.zeros(3)),
        (5, None),
    ):
        call = [*usual[:position], value, *usual[position + 1 :]]
        assert reader.read(tuple(call), {}) is None, (position, value)
    assert reader.read((*usual, 1), {}) is None


def test_constants_that_are_lists_are_compiled_for(tmp_path):
    @fly.kernel
    def kernel(X: fx.Tensor, steps: fx.Constexpr):
        total = 0.0
        for step in steps:
            total = total + step
        X[fx.thread_idx.x] = total

    @fly.jit
    def f(X: fx.Tensor[fx.Float32, 64], steps: fx.Constexpr):
        kernel(X, steps).launch(grid=1, block=64)

    x = np.zeros(64, np.float32)
    for steps in ([1.0, 2.0], [5.0], [1.0, 2.0], (4.0, 0.5), (4.0,), (4.0, 0.5)):
        f(x, steps)
        assert (x == sum(steps)).all()
