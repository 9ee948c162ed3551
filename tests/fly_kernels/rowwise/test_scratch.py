"""Rows of narrow accesses that no block has registers for: their kernels take no scratch memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import torch
from fly.kernels import layer_norm, rms_norm, softmax

x = torch.ones(1, {columns}, dtype=torch.{dtype}, requires_grad=True)
w = torch.ones({columns}, dtype=torch.{dtype})
{call}.sum().backward()
"""


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("call", "columns", "dtype"),
    [
        ("layer_norm(x, w, w)", 65537, "float16"),
        ("layer_norm(x, w, w)", 32770, "float64"),
        ("rms_norm(x, w)", 65538, "float32"),
        ("softmax(x, 1)", 32769, "float64"),
    ],
)
def test_nothing_spills(tmp_path: Path, call: str, columns: int, dtype: str):
    program = PROGRAM.format(call=call, columns=columns, dtype=dtype)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "FLY_CACHE_DIR": str(tmp_path)},  # warnings are of compilations
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "spills" not in done.stderr
