"""`mma.sync`, and its operands by loads, `ldmatrix` and `cp.async`, on the device cpu."""

import pytest
import torch
from h200_kernels.matrices import one_product, run_matrices

import fly
import fly.expr as fx

TYPES = {
    torch.float16: 16,
    torch.bfloat16: 16,
    torch.float32: 8,
    torch.float8_e4m3fn: 32,
    torch.int8: 32,
}


def host(k):
    @fly.jit
    def run(
        A: fx.Tensor[fx.Numeric, 16, k],
        B: fx.Tensor[fx.Numeric, 8, k],
        C: fx.Tensor[fx.Numeric, 16, 8],
    ):
        one_product(A, B, C, k).launch(grid=1, block=32)

    return run


@pytest.fixture(autouse=True)
def device(monkeypatch):
    monkeypatch.setenv("FLY_TARGET", "sm_90a")
    monkeypatch.setenv("FLY_DEVICE", "cpu")
    torch.manual_seed(0)


@pytest.mark.heavy
@pytest.mark.parametrize("dtype", TYPES)
def test_products_of_a_warp(dtype):
    k = TYPES[dtype]
    a, b = torch.randint(-4, 5, (16, k)).to(dtype), torch.randint(-4, 5, (8, k)).to(dtype)
    c = torch.zeros(16, 8, dtype=torch.int32 if dtype is torch.int8 else torch.float32)
    host(k)(a, b, c)
    assert torch.equal(c.double(), a.double() @ b.double().T)  # whole numbers: exact


@pytest.mark.heavy
def test_operands_by_ldmatrix():
    a, b = torch.randint(-9, 9, (16, 16)).half(), torch.randint(-9, 9, (8, 16)).half()
    c = torch.zeros(16, 8)
    run_matrices(a, b, c)
    assert torch.equal(c.double(), a.double() @ b.double().T)
