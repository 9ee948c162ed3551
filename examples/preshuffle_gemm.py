"""C = A·Bᵀ in f16 with a pre-shuffled B, and A double-buffered in LDS.

A workgroup of four waves computes a 64×128 tile of C, each wave 64×32. Every step of 64 along K
loads the next part of A into registers and the next part of B into its second set of registers,
multiplies the parts in LDS and in the first set, and then stores A to the other half of LDS: loads
overlap with the matrix cores.

B is shuffled so that a wave's part of it is contiguous in memory (`shuffled`): a block is 16 rows
by 32 of K, ordered by eight values of a row, then the 16 rows, then the four groups of eight. A
layout expresses this order, and the kernel sees B as an N×K matrix.
"""

import fly
import fly.expr as fx

TILE_M, TILE_N, TILE_K = 64, 128, 64
STAGES = 2
LDS_BYTES = TILE_M * TILE_K * STAGES * 2
VALUES = 8  # f16 values that a thread loads at a time: 128 bits


@fly.kernel
def preshuffle_kernel(
    A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, product: fx.TiledMma, to_lds: fx.TiledCopy
):
    thread = fx.thread_idx.x
    row, column = fx.block_idx.x, fx.block_idx.y
    A = fx.rocdl.make_buffer_tensor(A, max_size=False)
    B = fx.rocdl.make_buffer_tensor(B, max_size=False)
    C = fx.rocdl.make_buffer_tensor(C, max_size=False)
    tiles_a = fx.flat_divide(A, (TILE_M, TILE_K))[None, None, row, None]
    tiles_b = fx.flat_divide(B, (TILE_N, TILE_K))[None, None, column, None]
    tile_c = fx.flat_divide(C, (TILE_M, TILE_N))[None, None, row, column]

    # A in LDS: rows of 128 bytes, with groups of eight values permuted by the row.
    lds = fx.make_view(
        fx.get_dyn_shared(fx.Float16),
        fx.make_composed_layout(
            fx.static(fx.SwizzleType.get(3, 3, 3)),
            fx.make_ordered_layout((TILE_M, TILE_K, STAGES), (1, 0, 2)),
        ),
    )

    load = fx.make_copy_atom(fx.rocdl.BufferCopy128b(), fx.Float16)
    wide = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float16)
    single = fx.make_copy_atom(fx.rocdl.BufferCopy16b(), fx.Float16)
    write = to_lds.get_slice(thread)
    read = fx.make_tiled_copy_A(load, product).get_slice(thread)
    fetch = fx.make_tiled_copy_B(load, product).get_slice(thread)
    save = fx.make_tiled_copy_C(single, product).get_slice(thread)

    source_a, source_b = write.partition_S(tiles_a), fetch.partition_S(tiles_b)
    lds_in, lds_out = write.partition_D(lds), read.partition_S(lds)
    coming = fx.make_fragment_like(lds_in[None, None, None, 0])

    own = product.thr_slice(thread)
    a = own.make_fragment_A(lds[None, None, 0])
    b = own.make_fragment_B(tiles_b, stages=STAGES)
    c = own.make_fragment_C(tile_c)
    a_in, b_in = read.retile(a), fetch.retile(b)
    step_a, step_b = fx.get_scalar(tiles_a.stride[2]), fx.get_scalar(tiles_b.stride[2])

    def step(stage, k, last=False):
        """Multiplies the data of `stage`, and loads part k of K into the other unless `last`."""
        other = stage ^ 1
        if not last:
            k = fx.Int32(k)
            fx.copy(load, source_a[None, None, None, 0], coming, soffset=fx.Int32(k * step_a))
            fx.copy(
                load,
                source_b[None, None, None, 0],
                b_in[None, None, None, other],
                soffset=fx.Int32(k * step_b),
            )
        for half in fx.range_constexpr(TILE_K // 32):
            fx.copy(wide, lds_out[None, None, half, stage], a_in[None, None, half])
            fx.gemm(
                product,
                c,
                a[None, None, (None, half)],
                b[None, None, (None, half), stage],
                c,
                traversal_order=fx.GemmTraversalOrder.KNM,
            )
        if not last:
            fx.copy(wide, coming, lds_in[None, None, None, other])
        fx.barrier()

    fx.copy(load, source_a[None, None, None, 0], coming)
    fx.copy(load, source_b[None, None, None, 0], b_in[None, None, None, 0])
    c.fill(0.0)
    fx.copy(wide, coming, lds_in[None, None, None, 0])
    fx.barrier()

    steps = A.shape[1] // TILE_K
    for k in range(0, steps - 2, 2):
        step(0, k + 1)
        step(1, k + 2)
    step(0, steps - 1)
    step(1, None, last=True)

    halves = fx.make_fragment_like(c, fx.Float16)
    halves.store(c.load().to(fx.Float16))
    fx.copy(single, save.retile(halves), save.partition_D(tile_c))


@fly.jit
def preshuffle_gemm(A: fx.Tensor[fx.Float16, "M", "K"], B: fx.Tensor[fx.Float16, 128, 256]):
    """B is `shuffled` and its shape is static; K is a multiple of 128."""
    n, k = B.shape.unpack()
    layout = fx.make_layout(
        ((16, n // 16), (VALUES, 4, k // 32)),
        ((VALUES, 16 * k), (1, VALUES * 16, VALUES * 16 * 4)),
    )
    seen = fx.make_view(fx.get_iter(B), layout)

    along_k = TILE_K // VALUES
    to_lds = fx.make_tiled_copy_tv(
        fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float16),
        fx.make_ordered_layout((256 // along_k, along_k), (1, 0)),
        fx.make_layout((1, VALUES), (1, 1)),
    )
    product = fx.make_tiled_mma(
        fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16)),
        fx.make_layout((1, 4, 1), (0, 1, 0)),
        # Two consecutive products use the eight values of K that a thread loads at a time.
        fx.make_tile(None, None, fx.make_layout((4, 4, 2), (1, 8, 4))),
    )
    C = fx.empty((A.shape[0], n), fx.Float16)
    grid = (A.shape[0] // TILE_M, n // TILE_N)
    preshuffle_kernel(A, seen, C, product, to_lds).launch(grid=grid, block=256, smem=LDS_BYTES)
    return C


def shuffled(b):
    """Returns an N×K matrix in the order of the kernel's layout of B."""
    n, k = b.shape
    blocks = b.reshape(n // 16, 16, k // 32, 4, VALUES)
    return blocks.transpose(0, 2, 3, 1, 4).copy().reshape(n, k)


def main():
    import numpy as np

    random = np.random.default_rng(23)
    a = random.standard_normal((64, 256)).astype(np.float16)
    b = random.standard_normal((128, 256)).astype(np.float16)
    c = preshuffle_gemm(a, shuffled(b))
    exact = a.astype(np.float64) @ b.T.astype(np.float64)
    np.testing.assert_allclose(c, exact, rtol=2e-3, atol=2e-2)
    print("preshuffle_gemm: 64x128x256, within f16's rounding of NumPy's float64")


if __name__ == "__main__":
    main()
