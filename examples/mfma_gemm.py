"""C = A·Bᵀ on matrix cores: a workgroup of four waves computes a 64×64 tile of C.

A is M×K, B is N×K, both of f16, bf16 or f32; C is M×N of f32. The kernel names no instruction: the
host function makes the tiled product, which tells the kernel what each thread holds. CDNA has MFMA
instructions, RDNA has WMMA, whose register layouts differ between RDNA3 and RDNA4: `fx.rocdl.WMMA`
is that of the target, which `@fly.jit` knows and `fly-trace --target gfx1201` specifies.
"""

import fly
import fly.expr as fx

TILE_M = TILE_N = 64
TILE_K = 32


@fly.kernel
def gemm_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, product: fx.TiledMma):
    thread = fx.thread_idx.x
    row, column = fx.block_idx.x, fx.block_idx.y

    # Tiles of the operands; the last mode iterates along K.
    tiles_a = fx.flat_divide(A, (TILE_M, TILE_K))[None, None, row, None]
    tiles_b = fx.flat_divide(B, (TILE_N, TILE_K))[None, None, column, None]
    tile_c = fx.flat_divide(C, (TILE_M, TILE_N))[None, None, row, column]

    # A thread holds several contiguous values of K: one load for each such group.
    values = fx.size(product.mma_atom.layout_A_tv[1])
    load = fx.make_copy_atom(fx.UniversalCopy(min(128, values * A.dtype.bits)), A.dtype)
    store = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
    copy_a = fx.make_tiled_copy_A(load, product).get_slice(thread)
    copy_b = fx.make_tiled_copy_B(load, product).get_slice(thread)
    copy_c = fx.make_tiled_copy_C(store, product).get_slice(thread)

    own = product.get_slice(thread)
    a = own.make_fragment_A(tiles_a[None, None, 0])
    b = own.make_fragment_B(tiles_b[None, None, 0])
    c = own.make_fragment_C(tile_c)
    c.fill(0.0)

    source_a, source_b = copy_a.partition_S(tiles_a), copy_b.partition_S(tiles_b)
    for k in range(A.shape[1] // TILE_K):
        fx.copy(load, source_a[None, None, None, k], copy_a.retile(a))
        fx.copy(load, source_b[None, None, None, k], copy_b.retile(b))
        fx.gemm(product, c, a, b, c)

    fx.copy(store, copy_c.retile(c), copy_c.partition_D(tile_c))


def gemm(A, B, instruction, wave):
    """Returns C. Four waves per workgroup: two along M, two along N."""
    product = fx.make_tiled_mma(fx.make_mma_atom(instruction), fx.make_layout((2, 2, 1), (1, 2, 0)))
    rows, columns = A.shape[0], B.shape[0]
    C = fx.empty((rows, columns), fx.Float32)
    grid = (rows // TILE_M, columns // TILE_N)
    gemm_kernel(A, B, C, product).launch(grid=grid, block=4 * wave)
    return C


@fly.jit
def gemm_f16(A: fx.Tensor[fx.Float16, "M", "K"], B: fx.Tensor[fx.Float16, "N", "K"]):
    C = gemm(A, B, fx.rocdl.MFMA(16, 16, 16, fx.Float16), 64)
    return C


@fly.jit
def gemm_bf16(A: fx.Tensor[fx.BFloat16, "M", "K"], B: fx.Tensor[fx.BFloat16, "N", "K"]):
    C = gemm(A, B, fx.rocdl.MFMA(32, 32, 8, fx.BFloat16), 64)
    return C


@fly.jit
def gemm_f32(A: fx.Tensor[fx.Float32, "M", "K"], B: fx.Tensor[fx.Float32, "N", "K"]):
    C = gemm(A, B, fx.rocdl.MFMA(16, 16, 4, fx.Float32), 64)
    return C


@fly.jit
def gemm_wmma(A: fx.Tensor[fx.Float16, "M", "K"], B: fx.Tensor[fx.Float16, "N", "K"]):
    C = gemm(A, B, fx.rocdl.WMMA(16, 16, 16, fx.Float16), 32)
    return C


def main():
    import numpy as np

    random = np.random.default_rng(20)
    a = random.standard_normal((128, 96)).astype(np.float16)
    b = random.standard_normal((64, 96)).astype(np.float16)
    c = gemm_f16(a, b)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.T.astype(np.float64), atol=1e-4)
    print("gemm_f16: 128x64x96, within 1e-4 of NumPy's float64")


if __name__ == "__main__":
    main()
