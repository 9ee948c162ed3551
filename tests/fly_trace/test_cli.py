"""The command: what it prints, its error lines and exit codes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

GOOD = """\
import fly
import fly.expr as fx

@fly.kernel
def kernel(A: fx.Tensor, n: fx.Int32, W: fx.Constexpr[int]):
    A[n] = 1.0 * W

@fly.jit
def one(A: fx.Tensor, n: fx.Int32, W: fx.Constexpr[int] = 3):
    kernel(A, n, W).launch(grid=1, block=64)
"""
TWO = (
    GOOD
    + """
@fly.jit
def two(A: fx.Tensor[fx.Float32, "n"]):
    kernel(A, 1, 1).launch(grid=1, block=64)
"""
)
SIG = ["--sig", "A: f32[?]"]


def fly_trace(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fly_trace.cli", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


CASES = [
    # source, arguments, exit code, what is said
    (None, ["k.py"], 2, "k.py: no such file"),
    (GOOD, [], 2, "Missing argument 'FILE[:ENTRY]'."),
    ("def f(:\n", ["k.py"], 1, "k.py:1:7: SyntaxError: invalid syntax"),
    ("\0", ["k.py"], 1, "k.py: is not Python: source code string cannot contain null bytes"),
    ("x = 1\n", ["k.py"], 2, "k.py: has no host function"),
    ("import nothing_like_this\n", ["k.py"], 1,
     "k.py:1:1: ModuleNotFoundError: No module named 'nothing_like_this'"),
    ("1 / 0\n", ["k.py"], 1, "k.py:1:1: ZeroDivisionError: division by zero"),
    ("raise SystemExit(3)\n", ["k.py"], 1, "k.py: the file exits the process (SystemExit: 3)"),
    (GOOD, ["k.py:on", *SIG], 2, "k.py: has no host function 'on'"),
    (GOOD, ["k.py:kernel", *SIG], 2,
     "k.py: kernel is a kernel; an entry must be a host function, with @fly.jit"),
    (TWO, ["k.py"], 2, "k.py: has 2 host functions"),
    (GOOD, ["k.py"], 2, "the type of A is not known"),
    (GOOD, ["k.py", "--sig", "B: f32[?]"], 2, "one has no parameter 'B'"),
    (GOOD, ["k.py", "--sig", "A: f33[?]"], 2,
     "--sig: `A: f33[?]`: the element type is one of bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128"
     " f16 bf16 f32 f64 f8E4M3FN f8E4M3FNUZ f8E5M2 f8E5M2FNUZ f8E8M0FNU f6E2M3FN f6E3M2FN f4E2M1FN"
     " i4 u4"),
    (GOOD, ["k.py", "--sig", "A: f4E2M1FN[?]"], 2,
     "A is a tensor of f4E2M1FN, whose elements are not whole bytes"),
    (GOOD, ["k.py", "--sig", "A: f32[?"], 2,
     "--sig: `A: f32[?`: extents must be in brackets, as in f32[M,N]"),
    (GOOD, ["k.py", "--sig", "A: f32[0]"], 2, "--sig: `A: f32[0]`: `0` is not an extent"),
    (GOOD, ["k.py", "--sig", "A: f32[M,N:1]"], 2,
     "--sig: `A: f32[M,N:1]`: 2 extents need the same number of strides"),
    (GOOD, ["k.py", *SIG, "--sig", "n: f32"], 2, "n is i32 in the file, but given as f32"),
    (GOOD, ["k.py", *SIG, "--sig", "W: i32"], 2,
     "W is a compile-time constant in the file, but given as i32"),
    (GOOD, ["k.py", "--sig", "A: f32"], 2, "A is a tensor in the file, but given as f32"),
    (TWO, ["k.py:two", "--sig", "A: f16[n]"], 2, "A is f32[n] in the file, but given as f16[n]"),
    (TWO, ["k.py:two", "--sig", "A: f32[n,m]"], 2,
     "A is f32[n] in the file, but given as f32[n,m]"),
    (GOOD, ["k.py", "--like", "A"], 2, "--like A: is not NAME=FILE.npy"),
    (GOOD, ["k.py", "--like", "A=k.py"], 2, "k.py: is not a .npy file"),
    (GOOD, ["k.py", "--like", "A=none.npy"], 2, "none.npy: No such file or directory"),
    (GOOD, ["k.py", "--like", "A=c.npy"], 2,
     "c.npy: contains <c8, which is not an element type of the language"),
    (GOOD, ["k.py", "--static", *SIG], 2,
     "--static needs --like files"),
    (GOOD, ["k.py", *SIG, "-o", "no/such/place"], 2,
     "./no/such/place: the directory ./no/such does not exist"),
    (GOOD, ["k.py", "--fast"], 2, "No such option: --fast"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "arguments", "code", "said"), CASES)
def test_errors(
    source: str | None, arguments: list[str], code: int, said: str, tmp_path: Path
) -> None:
    if source is not None:
        (tmp_path / "k.py").write_text(source)
    np.save(tmp_path / "c.npy", np.zeros(3, np.complex64))
    done = fly_trace(tmp_path, *arguments)
    assert done.stderr.splitlines()[0].replace(str(tmp_path), ".") == f"fly-trace: error: {said}"
    assert (done.returncode, done.stdout) == (code, "")


def test_kernel_error_has_caret_and_no_output(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(
        GOOD.replace("A[n] = 1.0 * W", "if n > W:\n        raise OSError")
    )
    done = fly_trace(tmp_path, "k.py", *SIG, "-o", "out.mlir")
    assert done.returncode == 1
    assert done.stderr == (
        "fly-trace: error: k.py:7:9: `raise` inside a dynamic `if`: a kernel can't raise an"
        " exception\n"
        "          raise OSError\n"
        "          ^~~~~~~~~~~~~\n"
        "  check it on the host\n"
    )
    assert not (tmp_path / "out.mlir").exists()


def test_like_and_static(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(GOOD)
    np.save(tmp_path / "a.npy", np.zeros(24, np.float32))
    dynamic = fly_trace(tmp_path, "k.py", "--like", "A=a.npy", "--no-loc").stdout
    assert "%A: !fly.memref<f32, global, ?{i64}:1>" in dynamic
    static = fly_trace(tmp_path, "k.py", "--like", "A=a.npy", "--static", "--no-loc").stdout
    assert "%A: !fly.memref<f32, global, 24:1>" in static


def test_output_is_the_same_each_time_and_to_a_file(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(GOOD)
    first = fly_trace(tmp_path, "k.py", *SIG)
    assert (first.returncode, first.stderr) == (0, "")
    assert fly_trace(tmp_path, "k.py", *SIG, "-o", "m.mlir").stdout == ""
    assert (tmp_path / "m.mlir").read_text() == first.stdout
