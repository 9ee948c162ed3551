"""Products by mma.sync, ldmatrix and cp.async, on the device cpu, judged by torch in f64."""

from __future__ import annotations

import math

import pytest
import torch

from fly.kernels import matmul
from fly.kernels.gemm.epilogue import Epilogue
from fly.kernels.gemm.warps import warp_plans

BF16, F16, F32, I8, FP8 = (
    torch.bfloat16,
    torch.float16,
    torch.float32,
    torch.int8,
    torch.float8_e4m3fn,
)


@pytest.fixture
def ampere(monkeypatch):
    monkeypatch.setenv("FLY_TARGET", "sm_80")
    monkeypatch.setenv("FLY_DEVICE", "cpu")
    torch.manual_seed(0)


def operand(shape, dtype, adjacent=True):
    """A batch of matrices, whose rows are adjacent, or else its columns."""
    rows, columns = shape[-2:]
    whole = shape if adjacent else (*shape[:-2], columns, rows)
    made = torch.randint(-100, 100, whole) if dtype is I8 else torch.randn(whole)
    made = made.to(dtype)
    return made if adjacent else made.mT


def judged(found, a, b, exact=None):
    exact = a.double() @ b.double() if exact is None else exact
    rounding = {BF16: 2**-8, F16: 2**-11, F32: 2**-23, torch.int32: 0.0}[found.dtype]
    size = a.double().abs() @ b.double().abs()
    few = 0.0 if found.dtype is torch.int32 else 2**-20
    assert found.shape == exact.shape
    assert ((found.double() - exact).abs() <= rounding * exact.abs() + few * size).all()


def plan_of(a, b, out):
    return warp_plans.warp_plan(a[None], b[None], Epilogue(out, 1))


@pytest.mark.heavy
@pytest.mark.parametrize("stages", warp_plans.STAGES)
@pytest.mark.parametrize("tile", warp_plans.TILES)
def test_tiles(tile, stages, ampere, monkeypatch):
    """Two tiles along each dimension, none of them whole, and more steps than stages."""
    monkeypatch.setattr(warp_plans, "TILES", {tile: 1.0})
    monkeypatch.setattr(warp_plans, "STAGES", (min(stages, 3 if tile[1] > 128 else 4),))
    warp_plans._plan.cache_clear()
    a, b = operand((150, 344), F16), operand((344, 264), F16, False)
    assert (plan_of(a, b, "f16").rows, plan_of(a, b, "f16").columns) == tile
    found = matmul(a, b, out_dtype=F32, split_k=1)
    warp_plans._plan.cache_clear()
    judged(found, a, b)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("m", "n", "k", "dtype", "rows", "columns", "options"),
    [
        (70, 62, 50, F16, True, False, {}),
        (70, 62, 77, BF16, False, True, {}),  # rows that are copied first
        (33, 35, 129, I8, True, False, {}),
        (40, 48, 1024, BF16, True, False, {"split_k": 5}),
        (17, 130, 64, I8, False, True, {"out_dtype": F32}),
        (1, 1, 1, BF16, True, True, {}),
        (5, 7, 8, F16, True, True, {"out_dtype": F32}),
    ],
)
def test_products(m, n, k, dtype, rows, columns, options, ampere):
    a, b = operand((m, k), dtype, rows), operand((k, n), dtype, columns)
    judged(matmul(a, b, **options), a, b)


@pytest.mark.heavy
def test_8_bit_floats_of_ada(ampere, monkeypatch):
    a, b = operand((40, 144), FP8), operand((144, 24), FP8, False)
    assert not warp_plans.warp_multiplies(a[None], b[None], Epilogue("f32", 1))
    monkeypatch.setenv("FLY_TARGET", "sm_89")
    assert warp_plans.warp_multiplies(a[None], b[None], Epilogue("f32", 1))
    judged(matmul(a, b, out_dtype=BF16), a, b)


@pytest.mark.heavy
def test_a_product_of_batches_with_an_epilogue(ampere):
    a, b = operand((2, 70, 40), BF16), operand((2, 40, 24), BF16)
    c, bias = torch.randn(2, 70, 24).bfloat16(), torch.randn(24).bfloat16()
    found = matmul(a, b, bias, c, activation="relu", alpha=0.5, beta=0.25, out_dtype=F32)
    exact = 0.5 * (a.double() @ b.double()) + 0.25 * c.double() + bias.double()
    judged(found, a, b, exact.relu())


@pytest.mark.heavy
@pytest.mark.parametrize("k", [16, 17, 24])
def test_what_lies_beyond_is_no_part_of_a_sum(k, ampere):
    """Rows of a greater matrix, whose neighbours are NaN."""
    whole_a, whole_b = torch.full((30, 64), math.nan).half(), torch.full((40, 64), math.nan).half()
    a, b = whole_a[:20, :k], whole_b[:9, :k].T
    a.copy_(operand((20, k), F16))
    b.copy_(operand((k, 9), F16))
    judged(matmul(a, b, out_dtype=F32), a, b)


def test_which_targets_multiply_so(ampere, monkeypatch):
    """Hopper has wgmma, and f32 is not rounded."""
    a, b = operand((16, 32), F16)[None], operand((32, 8), F16)[None]
    wide = a.float(), b.float()
    assert warp_plans.warp_multiplies(a, b, Epilogue("f16", 1))
    assert not warp_plans.warp_multiplies(*wide, Epilogue("f32", 1))
    assert not warp_plans.warp_multiplies(a, b, Epilogue("f64", 1))
    monkeypatch.setenv("FLY_TARGET", "gfx942")
    assert not warp_plans.warp_multiplies(a, b, Epilogue("f16", 1))
    monkeypatch.setenv("FLY_TARGET", "sm_86")
    assert warp_plans.warp_plan(a, b, Epilogue("f16", 1)).stages > 1
