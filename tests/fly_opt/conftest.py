"""Fixtures for the tests of fly_opt: LLVM's programs, and modules to compile."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from fly_common.programs import toolchain

DATA = Path(__file__).with_name("data")


@pytest.fixture(scope="session")
def vector_add() -> bytes:
    """A traced module with one kernel and one host function."""
    return (DATA / "vector_add.mlir").read_bytes()


@pytest.fixture(scope="session")
def llvm():
    """`llvm(name, *arguments, text)` returns the standard output of LLVM's program, which must
    succeed."""

    def run(name: str, *arguments: str, text: str | bytes = "") -> bytes:
        data = text.encode() if isinstance(text, str) else text
        program = str(toolchain.find_program(name))
        done = subprocess.run([program, *arguments], input=data, capture_output=True)
        assert done.returncode == 0, f"{name}: {done.stderr.decode()}\n{data.decode()[:4000]}"
        return done.stdout

    return run


@pytest.fixture
def fly_opt(tmp_path):
    """`fly_opt(*arguments, text)` returns the finished process of the tool."""
    import os
    import sys

    program = Path(sys.executable).with_name("fly-opt-py")

    def run(*arguments: str | bytes, text: str | bytes = b"", **environment: str):
        data = text.encode() if isinstance(text, str) else text
        return subprocess.run(
            [program, *arguments],
            input=data,
            capture_output=True,
            env={**os.environ, "FLY_CACHE_DIR": str(tmp_path / "cache"), **environment},
        )

    return run
