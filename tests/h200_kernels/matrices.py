"""Products of a warp: mma.sync, with operands by loads, and by ldmatrix and cp.async."""

import fly
import fly.expr as fx


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


@fly.jit
def product_f16(
    A: fx.Tensor[fx.Float16, 16, 16],
    B: fx.Tensor[fx.Float16, 8, 16],
    C: fx.Tensor[fx.Float32, 16, 8],
):
    one_product(A, B, C, 16).launch(grid=1, block=32)


@fly.jit
def product_f32(
    A: fx.Tensor[fx.Float32, 16, 8], B: fx.Tensor[fx.Float32, 8, 8], C: fx.Tensor[fx.Float32, 16, 8]
):
    one_product(A, B, C, 8).launch(grid=1, block=32)


@fly.jit
def product_i8(
    A: fx.Tensor[fx.Int8, 16, 32], B: fx.Tensor[fx.Int8, 8, 32], C: fx.Tensor[fx.Int32, 16, 8]
):
    one_product(A, B, C, 32).launch(grid=1, block=32)


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
