"""Examples that have a counterpart in torch, with torch's tensors: the results are torch's."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from fly_trace.session.load import find_entry, load_file

import fly

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def _target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLY_TARGET", "gfx942")
    monkeypatch.setenv("FLY_DEVICE", "emulator")


def example(file: str, entry: str) -> fly.call.function.JitFunction:
    path = str(EXAMPLES / file)
    return find_entry(load_file(path), path, entry)


def normal(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(40)).to(dtype)


def test_softmax():
    x = normal(4, 781)
    x[1, 5], x[2, 6], x[3] = float("nan"), float("inf"), float("-inf")
    y = example("online_softmax.py", "online_softmax")(x)
    torch.testing.assert_close(y, torch.softmax(x, 1), rtol=1e-5, atol=1e-8, equal_nan=True)


def test_top_k():
    x = normal(3, 555)  # without ties, for which torch promises no order
    x[1, 5], x[2, 6], x[2, 7] = float("nan"), float("inf"), float("-inf")
    values, indices = example("top_k.py", "top_k")(x, 17)
    expected = torch.topk(x, 17)
    torch.testing.assert_close(values, expected.values, rtol=0, atol=0, equal_nan=True)
    assert torch.equal(indices.long(), expected.indices)


def test_prefix_sum():
    x = torch.arange(6001, dtype=torch.int32) % 13 - 6
    y = example("prefix_sum.py", "prefix_sum_i32")(x)
    assert torch.equal(y, torch.cumsum(x, 0, dtype=torch.int32))
    x = normal(6001)
    y = example("prefix_sum.py", "prefix_sum_f32")(x)
    torch.testing.assert_close(y.double(), torch.cumsum(x.double(), 0), rtol=0, atol=1e-4)


def test_gemm():
    a, b = normal(130, 72, dtype=torch.float16), normal(140, 72, dtype=torch.float16)
    c = example("pipelined_gemm.py", "pipelined_gemm_mfma")(a, b)
    torch.testing.assert_close(c, a.float() @ b.float().T, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("d", [64, 128])
def test_attention(d):
    q = normal(1, 4, 75, d, dtype=torch.float16)
    k, v = normal(2, 1, 2, 75, d, dtype=torch.float16)
    o = example("flash_attention.py", "flash_attention_mfma")(q, k, v, d)
    attention = torch.nn.functional.scaled_dot_product_attention
    expected = attention(q.float(), k.float(), v.float(), is_causal=True, enable_gqa=True)
    torch.testing.assert_close(o.float(), expected, rtol=2e-3, atol=2e-3)
