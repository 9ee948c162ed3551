"""Asserts and `fx.printf` in kernels: on the emulator and on `cpu`, by `@fly.jit` and fly-run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fly_common.errors import Fault, FlyError, UsageError
from fly_image.reports import shown

import fly
import fly.expr as fx

TARGETS = pytest.mark.parametrize("target", ["gfx942", "gfx1201", "sm_90a"])


@fly.kernel
def checked_kernel(A: fx.Tensor, n: fx.Int32):
    i = fx.block_idx.x * fx.block_dim.x + fx.thread_idx.x
    assert i < n, f"{i} is not less than {n} ({fx.Float32(i) / 8.0:.3f}, {{}})"
    A[i] = A[i] * 2


def checked(A: fx.Tensor[fx.Int32, 8], n: fx.Int32):
    checked_kernel(A, n).launch(grid=2, block=4)


@fly.kernel
def printed_kernel(A: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    fx.printf("{} of {}: A = {}", t, fx.block_idx.x, A[t])
    for k in range(t):
        if k == n:
            fx.printf(f"  {k} in {t}")
    fx.printf("literally {}")
    A[t] = 0


def printed(A: fx.Tensor[fx.Int32, 8], n: fx.Int32):
    printed_kernel(A, n).launch(grid=2, block=4)


@fly.kernel
def numbers_kernel(A: fx.Tensor, F: fx.Tensor):
    x, u = A[0], F[0]
    fx.printf(f"{x} {fx.Int8(x)} {fx.Uint8(x)} {fx.Uint32(x)} {fx.Uint64(fx.Int64(x))}")
    fx.printf(f"{u} {fx.Float32(u)} {fx.Float16(u)} {fx.BFloat16(u)} {x < 0} {u:+.2e} {x:08x}")
    fx.printf("{:>6}|{:<6}|{:.1f}|{}", x, x, u, (x, [u, 7]))


def numbers(A: fx.Tensor[fx.Int32, 1], F: fx.Tensor[fx.Float64, 1]):
    numbers_kernel(A, F).launch(grid=1, block=1)


@fly.kernel
def many_kernel(A: fx.Tensor):
    for k in range(20):
        fx.printf("{}", k)
    A[0] = 1


def many(A: fx.Tensor[fx.Int32, 8]):
    many_kernel(A).launch(grid=1, block=256)


@fly.kernel
def far_kernel(A: fx.Tensor, n: fx.Int32):
    i = fx.thread_idx.x + n
    assert i < 8, f"index {i}"
    A[i] = 1


def far(A: fx.Tensor[fx.Int32, 8], n: fx.Int32):
    far_kernel(A, n).launch(grid=1, block=4)


def zeros() -> np.ndarray:
    return np.zeros(8, dtype=np.int32)


@TARGETS
def test_an_assert_fails_the_launch_of_its_first_thread(target):
    function = fly.jit(target=target)(checked)
    for _ in range(2):  # the second call is that of native code
        function(zeros(), 8)
        with pytest.raises(Fault) as caught:
            function(zeros(), 5)
    error = caught.value
    assert error.message == (
        "kernel 'checked_kernel': 5 is not less than 5 (0.625, {});"
        " block (1, 0, 0) thread (1, 0, 0); 2 more"
    )
    assert error.exit_code == 1
    assert error.place is not None
    assert error.place.line == checked_kernel.function.__code__.co_firstlineno + 3
    assert "assert i < n" in str(error.place.excerpt())


@TARGETS
def test_lines_in_the_order_of_blocks_and_threads(target, capsys):
    function = fly.jit(target=target)(printed)
    expected = ""
    for block in range(2):
        for thread in range(4):
            value = 0 if block else thread
            expected += f"{thread} of {block}: A = {value}\n"
            expected += f"  1 in {thread}\n" if thread > 1 else ""
            expected += "literally {}\n"
    given = np.arange(8, dtype=np.int32)
    function(given, 1)
    assert capsys.readouterr().out == expected


@TARGETS
def test_numbers_as_python_shows_them(target, capsys):
    fly.jit(target=target)(numbers)(np.array([-77], np.int32), np.array([0.1]))
    a, b, c = capsys.readouterr().out.splitlines()
    assert a == f"-77 -77 {256 - 77} {2**32 - 77} {2**64 - 77}"
    assert b == f"0.1 0.1 {np.float32(np.float16(0.1))!s} 0.100097656 True +1.00e-01 -000004d"
    assert c == "   -77|-77   |0.1|(-77, [0.1, 7])"


def test_lines_that_do_not_fit_are_counted(capsys):
    fly.jit(target="gfx942")(many)(zeros())
    found = capsys.readouterr()
    assert found.err == "fly: kernel 'many_kernel' printed 5120 lines, of which 4096 were kept\n"
    lines = found.out.splitlines()
    assert len(lines) == 4096
    assert set(lines) <= set(map(str, range(20)))


@TARGETS
def test_an_assert_explains_the_fault_behind_it(target):
    with pytest.raises(Fault, match=r"index 2000000000; block .* thread \(0, 0, 0\)"):
        fly.jit(target=target)(far)(zeros(), 2_000_000_000)


def test_asserts_may_be_left_out(monkeypatch):
    plain = fly.jit(target="gfx942")(checked)
    plain(zeros(), 8)
    off = fly.jit(target="gfx942", asserts=False)(checked)
    off(zeros(), 5)
    assert b"fly_report" in plain.compile(zeros(), 8).hsaco
    assert b"fly_report" not in off.compile(zeros(), 8).hsaco
    monkeypatch.setenv("FLY_ASSERTS", "0")
    again = fly.jit(target="gfx942")(checked)
    again(zeros(), 5)
    monkeypatch.setenv("FLY_ASSERTS", "2")
    with pytest.raises(UsageError, match="FLY_ASSERTS=2: must be 0 or 1"):
        fly.jit(target="gfx942")(checked)(zeros(), 5)
    with pytest.raises(UsageError, match="asserts=0: must be True or False"):
        fly.jit(target="gfx942", asserts=0)(checked)(zeros(), 5)


def test_what_is_known_while_tracing_stays_an_error_of_it():
    @fly.kernel
    def kernel(A: fx.Tensor):
        assert A.shape[0] == 7, f"{A.shape[0]} elements"

    @fly.jit
    def entry(A: fx.Tensor[fx.Int32, 8]):
        kernel(A).launch(grid=1, block=1)

    with pytest.raises(FlyError, match="AssertionError: 8 elements"):
        entry(zeros())


def test_printf_belongs_to_kernels():
    @fly.jit
    def entry(A: fx.Tensor[fx.Int32, 8], n: fx.Int32):
        fx.printf("{}", n)

    with pytest.raises(FlyError, match=r"fx\.printf can only be used in a kernel"):
        entry(zeros(), 3)


SOURCE = """\
import fly
import fly.expr as fx

@fly.kernel
def kernel(A: fx.Tensor, n: fx.Int32):
    i = fx.thread_idx.x
    fx.printf(f"{i}: {A[i]:.2f}")
    assert i < n, f"{i}"

@fly.jit
def entry(A: fx.Tensor[fx.Float32, 4], n: fx.Int32):
    kernel(A, n).launch(grid=1, block=4)
"""


def test_the_chain_of_tools(tmp_path: Path):
    (tmp_path / "k.py").write_text(SOURCE)
    tools = Path(sys.executable).parent

    def run(flags: str, n: int) -> subprocess.CompletedProcess[str]:
        line = (
            f"fly-trace k.py | fly-opt-py --target gfx942 {flags} | opt -S -O3 | fly-llc | fly-link"
            f" | fly-run - 'A=arange(4)' n={n}"
        )
        shell = ["bash", "-o", "pipefail", "-c", f"PATH={tools}:$PATH; {line}"]
        return subprocess.run(shell, cwd=tmp_path, capture_output=True, text=True, check=False)

    good, bad, off = run("", 4), run("", 2), run("--no-asserts", 2)
    lines = "0: 0.00\n1: 1.00\n2: 2.00\n3: 3.00\n"
    assert good.stdout.startswith(lines), good.stderr
    assert good.returncode == 0
    assert bad.stdout.startswith(lines), bad.stderr
    assert bad.returncode == 1
    assert "k.py:8:12: kernel 'kernel': 2; block (0, 0, 0) thread (2, 0, 0); 1 more" in bad.stderr
    assert 'assert i < n, f"{i}"' in bad.stderr
    assert off.returncode == 0, off.stderr


@pytest.mark.parametrize("value", [0.1, 1e-30, 3.0, 16777216.0, float("inf"), -0.0, 1e20])
def test_floats_have_the_digits_that_tell_them_apart(value):
    bits = int(np.float32(value).view(np.int32))
    text = shown(bits, "f32", "")
    assert np.float32(text) == np.float32(value)
    assert len(text) <= len(repr(float(np.float32(value))))


def test_not_a_number():
    assert shown(int(np.float32(np.nan).view(np.int32)), "f32", "") == "nan"
