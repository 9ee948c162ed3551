"""Calls that are refused, in the caller's words: arguments, kernels, faults."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fly_common.errors import FlyError, InputError, UsageError

import fly

from .jit_programs import AXPY, load, result


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
