"""Library kernels on gfx1250, in strict mode, against torch."""

from __future__ import annotations

import pytest
import torch

from fly.kernels import (
    flash_attention,
    layer_norm,
    matmul,
    rms_norm,
    softmax,
)
from fly.kernels.gemm import plans
from fly_kernels.judging import judge, tensor


@pytest.fixture(autouse=True)
def chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLY_TARGET", "gfx1250")
    monkeypatch.setenv("FLY_DEVICE", "emulator")
    monkeypatch.setenv("FLY_STRICT", "1")


UNITS = [
    (torch.float16, 32, 8),
    (torch.bfloat16, 32, 8),
    (torch.float32, 4, 2),
    (torch.int8, 64, 8),
    (torch.float8_e4m3fn, 128, 8),
    (torch.float8_e5m2, 128, 8),
]


@pytest.mark.parametrize(("dtype", "k", "run"), UNITS, ids=str)
def test_matmul_by_wmma(dtype: torch.dtype, k: int, run: int) -> None:
    """Integers: their sums are exact. Ragged in every extent, and several tiles along K."""
    unit = plans.unit_of(dtype, (128, 64))
    assert (unit.kind, unit.edge, unit.k, unit.run) == ("WMMA", 16, k, run)
    random = torch.Generator().manual_seed(k)
    for m, depth, n, turned in ((70, 136, 48, False), (33, 290, 40, True)):
        a, b = (
            torch.randint(-4, 5, shape, generator=random).to(dtype)
            for shape in ((m, depth), (n, depth) if turned else (depth, n))
        )
        b = b.T if turned else b
        out = torch.int32 if dtype == torch.int8 else torch.float32
        assert torch.equal(matmul(a, b, out_dtype=out).double(), a.double() @ b.double())


def test_matmul_with_an_epilogue() -> None:
    a, b, bias = (tensor(n, s, torch.float16) for n, s in enumerate(((33, 72), (72, 40), (40,))))
    found = matmul(a, b, bias, activation="relu", split_k=2)
    judge(found, lambda a, b, bias: (a @ b + bias).relu(), a, b, bias)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_rows(dtype: torch.dtype) -> None:
    x, weight, bias = (tensor(n, s, dtype) for n, s in enumerate(((5, 333), (333,), (333,))))
    judge(softmax(x), lambda x: torch.softmax(x, -1), x)
    judge(
        layer_norm(x, weight, bias),
        lambda x, w, b: torch.nn.functional.layer_norm(x, (333,), w, b),
        x,
        weight,
        bias,
    )
    judge(
        rms_norm(x, weight),
        lambda x, w: torch.nn.functional.rms_norm(x, (333,), w, 1e-6),
        x,
        weight,
    )


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal: bool) -> None:
    q, k, v = (tensor(n, (1, 2, 70, 64), torch.float16, 1.0) for n in range(3))

    def reference(q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    judge(flash_attention(q, k, v, causal=causal)[0], reference, q, k, v)
