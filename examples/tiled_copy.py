"""B = Aᵀ through LDS, one 32×32 tile per workgroup, with a swizzle that avoids bank conflicts in
both directions.

A thread moves four elements of a row of A at a time into LDS, and gathers four of a row of B from
it. In LDS the rows of a tile are 32 words apart, so that a column is in one bank; the swizzle xors
three bits of the row into the bank, in groups of four words.
"""

import fly
import fly.expr as fx

TILE = 32
THREADS = (32, 8)  # eight threads move a row of 32 elements


@fly.kernel
def transpose_kernel(A: fx.Tensor, B: fx.Tensor, rows: fx.TiledCopy):
    thread = fx.thread_idx.x
    i, j = fx.block_idx.x, fx.block_idx.y
    tile_a = fx.flat_divide(A, (TILE, TILE))[None, None, i, j]
    tile_b = fx.flat_divide(B, (TILE, TILE))[None, None, j, i]

    # One array in LDS, viewed by rows of A and by rows of B.
    memory = fx.SharedAllocator().allocate(fx.Array[fx.Float32, TILE * TILE, 16]).peek()
    swizzle = fx.static(fx.SwizzleType.get(3, 2, 5))
    by_a = fx.make_layout((TILE, TILE), (TILE, 1))
    by_b = fx.make_layout((TILE, TILE), (1, TILE))
    lds_a = memory.view(fx.make_composed_layout(swizzle, by_a))
    lds_b = memory.view(fx.make_composed_layout(swizzle, by_b))

    # The same threads and values one word at a time, for data that is not contiguous in LDS.
    single = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
    words = fx.make_tiled_copy(single, rows.layout_tv_tiled, rows.tile_mn).get_slice(thread)
    own = rows.get_slice(thread)

    source = own.partition_S(tile_a)
    held = fx.make_fragment_like(source)
    fx.copy(rows, source, held)
    fx.copy(rows, held, own.partition_D(lds_a))
    fx.barrier()
    fx.copy(words, words.partition_S(lds_b), words.retile(held))
    fx.copy(rows, held, own.partition_D(tile_b))


@fly.jit
def transpose_tiled(A: fx.Tensor[fx.Float32, "M", "N"]):
    height, width = A.shape[0], A.shape[1]
    B = fx.empty((width, height), fx.Float32)
    wide = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32)
    rows = fx.make_tiled_copy_tv(
        wide, fx.make_ordered_layout(THREADS, (1, 0)), fx.make_layout((1, 4), (1, 1))
    )
    grid = (height // TILE, width // TILE)
    transpose_kernel(A, B, rows).launch(grid=grid, block=THREADS[0] * THREADS[1])
    return B


def main():
    import numpy as np

    a = np.random.default_rng(21).standard_normal((64, 96), dtype=np.float32)
    np.testing.assert_array_equal(transpose_tiled(a), a.T)
    print("transpose_tiled: 64x96, equal to NumPy's transpose")


if __name__ == "__main__":
    main()
