"""Programs of one kernel in files that tests edit, load and call."""

from __future__ import annotations

import importlib.util
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import numpy as np

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


def result(function, *arguments, size: int = 100, **named) -> np.ndarray:
    """What `function(X, Y, …)` writes to Y, for X = 0, 1, 2, …"""
    x, y = np.arange(size, dtype=np.float32), np.full(size, np.nan, np.float32)
    function(x, y, *arguments, **named)
    return y


NUMBERS = np.arange(100, dtype=np.float32)
