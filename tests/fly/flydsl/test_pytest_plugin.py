"""`pytest -p fly.flydsl.pytest_plugin`: tests of a program of FlyDSL's, with a GPU's tensors."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")

CONFTEST = "from flydsl._mlir.ir import Context\n"
TEST = """
import flydsl.compiler as flyc
import flydsl.expr as fx
import pytest
import torch

@flyc.kernel
def add(A: fx.Tensor, B: fx.Tensor):
    B[fx.thread_idx.x] = A[fx.thread_idx.x] + 1

@flyc.jit
def launch(A: fx.Tensor, B: fx.Tensor, stream: fx.Stream = fx.Stream(None)):
    add(A, B).launch(grid=(1, 1, 1), block=(64, 1, 1), stream=stream)

@pytest.mark.skipif(not torch.cuda.is_available(), reason="requires a GPU")
def test_add():
    torch.manual_seed(0)
    a = torch.randn(64, device="cuda")
    b = torch.empty(64).cuda()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    launch(a, b, stream=torch.cuda.Stream())
    end.record()
    torch.cuda.synchronize()
    assert start.elapsed_time(end) >= 0
    assert torch.equal(b.cpu(), a.cpu() + 1)
"""


@pytest.mark.heavy
@pytest.mark.usefixtures("shared_handlers")
@pytest.mark.parametrize(("option", "said"), [("", "1 passed"), ("--flydsl-gpu", "1 skipped")])
def test_the_plugin(option: str, said: str, tmp_path: Path):
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_program.py").write_text(TEST)
    command = [sys.executable, "-m", "pytest", "-p", "fly.flydsl.pytest_plugin", "-q"]
    command += ["-p", "no:cacheprovider", *option.split()]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert said in done.stdout, done.stdout + done.stderr
