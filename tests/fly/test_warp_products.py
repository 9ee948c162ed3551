"""`mma.sync`, and its operands by loads, `ldmatrix` and `cp.async`, on the device cpu."""

import pytest
import torch

import fly
import fly.expr as fx

TYPES = {
    torch.float16: 16,
    torch.bfloat16: 16,
    torch.float32: 8,
    torch.float8_e4m3fn: 32,
    torch.int8: 32,
}


@fly.kernel
def one_product(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, k: fx.Constexpr[int]):
    sums = fx.Int32 if A.dtype is fx.Int8 else fx.Float32
    atom = fx.make_mma_atom(fx.nvvm.MMA(16, 8, k, A.dtype, sums))
    product = fx.make_tiled_mma(atom, fx.make_layout((1, 1, 1), (0, 0, 0)))
    lane = fx.thread_idx.x
    own = product.get_slice(lane)
    a, b, c = own.make_fragment_A(A), own.make_fragment_B(B), own.make_fragment_C(C)
    element = fx.make_copy_atom(fx.UniversalCopy(A.dtype.bits), A.dtype)
    read = fx.make_tiled_copy_A(element, product).get_slice(lane)
    fx.copy(element, read.partition_S(A), read.retile(a))
    read = fx.make_tiled_copy_B(element, product).get_slice(lane)
    fx.copy(element, read.partition_S(B), read.retile(b))
    c.fill(0)
    fx.gemm(product, c, a, b, c)
    word = fx.make_copy_atom(fx.UniversalCopy32b(), C.dtype)
    write = fx.make_tiled_copy_C(word, product).get_slice(lane)
    fx.copy(word, write.retile(c), write.partition_D(C))


def host(k):
    @fly.jit
    def run(
        A: fx.Tensor[fx.Numeric, 16, k],
        B: fx.Tensor[fx.Numeric, 8, k],
        C: fx.Tensor[fx.Numeric, 16, 8],
    ):
        one_product(A, B, C, k).launch(grid=1, block=32)

    return run


@fly.kernel
def by_matrices(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    lane = fx.thread_idx.x
    plain = fx.make_layout((16, 16), (16, 1))
    tile_a = fx.nvvm.SharedTiles(fx.Float16, plain)[0]
    tile_b = fx.nvvm.SharedTiles(fx.Float16, fx.make_layout((8, 16), (16, 1)))[0]
    wide = fx.make_copy_atom(fx.nvvm.CpAsync(128), fx.Float16)
    for X, tile, lanes in ((A, tile_a, 32), (B, tile_b, 16)):
        order = fx.make_layout(((2, lanes // 2), 8), ((lanes // 2 * 8, 1), lanes // 2))
        load = fx.make_tiled_copy(wide, order, fx.make_tile(lanes // 2, 16)).get_slice(lane % lanes)
        if lane < lanes:
            fx.copy(wide, load.partition_S(X), load.partition_D(tile))
    fx.nvvm.cp_async_commit()
    fx.nvvm.cp_async_wait(0)
    fx.barrier()
    atom = fx.make_mma_atom(fx.nvvm.MMA(16, 8, 16, fx.Float16))
    product = fx.make_tiled_mma(atom, fx.make_layout((1, 1, 1), (0, 0, 0)))
    own = product.get_slice(lane)
    a, b, c = own.make_fragment_A(A), own.make_fragment_B(B), own.make_fragment_C(C)
    four = fx.make_copy_atom(fx.nvvm.LoadMatrix(4), fx.Float16)
    read = fx.make_tiled_copy_A(four, product).get_slice(lane)
    fx.copy(four, read.partition_S(tile_a), read.retile(a))
    two = fx.make_copy_atom(fx.nvvm.LoadMatrix(2), fx.Float16)
    read = fx.make_tiled_copy_B(two, product).get_slice(lane)
    fx.copy(two, read.partition_S(tile_b), read.retile(b))
    c.fill(0)
    fx.gemm(product, c, a, b, c)
    word = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
    write = fx.make_tiled_copy_C(word, product).get_slice(lane)
    fx.copy(word, write.retile(c), write.partition_D(C))


@fly.jit
def run_matrices(
    A: fx.Tensor[fx.Float16, 16, 16],
    B: fx.Tensor[fx.Float16, 8, 16],
    C: fx.Tensor[fx.Float32, 16, 8],
):
    by_matrices(A, B, C).launch(grid=1, block=32)


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
