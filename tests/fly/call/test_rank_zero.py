"""Tensors of rank 0: one element, `A[()]`, from annotation to result."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from fly_common.errors import FlyError
from fly_trace.signatures.signature import parse

SOURCE = """
import fly
import fly.expr as fx

@fly.kernel
def total_kernel(A: fx.Tensor, S: fx.Tensor):
    fx.atomic_add(S, (), A[fx.thread_idx.x])

@fly.jit
def total(A: fx.Tensor[fx.Float32, "n"], S: fx.Tensor[fx.Float32, ()]):
    total_kernel(A, S).launch(grid=1, block=A.shape[0])

@fly.kernel
def scale_kernel(A: fx.Tensor[fx.Float32], s: fx.Tensor[fx.Float32, ()]):
    A[fx.thread_idx.x] = A[fx.thread_idx.x] * s[()]

@fly.jit
def scale(A: fx.Tensor[fx.Float32], s: fx.Tensor[fx.Float32, ()]):
    scale_kernel(A, s).launch(grid=1, block=A.shape[0])

@fly.kernel
def wrong_kernel(s: fx.Tensor):
    s[0] = 1.0

@fly.jit
def wrong(s: fx.Tensor[fx.Float32, ()]):
    wrong_kernel(s).launch(grid=1, block=1)
"""


@pytest.fixture
def functions(tmp_path: Path):
    path = tmp_path / "rank_zero.py"
    path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("rank_zero", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.usefixtures("shared_handlers")
def test_written_and_read(functions):
    a, s = np.arange(64, dtype=np.float32), np.zeros((), np.float32)
    functions.total(a, s)
    assert s == 2016
    functions.scale(a, np.array(3, np.float32))
    np.testing.assert_array_equal(a, 3 * np.arange(64))


def test_needs_an_empty_index(functions):
    with pytest.raises(FlyError, match=r"(?s)s has 0 dimensions.*its one element is s\[\(\)\]"):
        functions.wrong.compile()


def test_a_rank_of_one_does_not_fit(functions):
    with pytest.raises(FlyError, match=r"S is f32\[\] in the file, but given as f32\[7\]"):
        functions.total.compile(signature="A: f32[9], S: f32[7]")


def test_signature_spells_it():
    assert str(parse("S: f32[]")["S"]) == "f32[]"
    assert parse("S: f32[]")["S"].shape == ()
