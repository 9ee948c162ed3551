"""C = A·Bᵀ, with tiles that are loaded by vectors, and 4×4 elements of C for each thread.

A is M×K and B is N×K, both of f16; C is M×N of f32. M and N are multiples of 64, K of 32.
"""

import fly
import fly.expr as fx

TILE = 64  # rows and columns of C that a workgroup computes
TILE_K = 32  # the extent of tiles of A and B along K
THREADS = 16  # along the rows and along the columns of the tile of C
VALUES = 8  # of f16, that a thread loads at a time: 16 bytes


@fly.kernel
def gemm_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, to_lds: fx.TiledCopy):
    thread = fx.thread_idx.x
    row, column = fx.block_idx.x, fx.block_idx.y
    # Tiles of the operands; the last mode counts them along K.
    tiles_a = fx.flat_divide(A, (TILE, TILE_K))[None, None, row, None]
    tiles_b = fx.flat_divide(B, (TILE, TILE_K))[None, None, column, None]
    tile_c = fx.flat_divide(C, (TILE, TILE))[None, None, row, column]

    lds_a, lds_b = [
        fx.SharedAllocator()
        .allocate(fx.Array[fx.Float16, TILE * TILE_K, 16])
        .peek()
        .view(fx.make_layout((TILE, TILE_K), (TILE_K, 1)))
        for _ in range(2)
    ]
    own = to_lds.get_slice(thread)
    source_a, source_b = own.partition_S(tiles_a), own.partition_S(tiles_b)
    target_a, target_b = own.partition_D(lds_a), own.partition_D(lds_b)
    held_a, held_b = fx.make_fragment_like(target_a), fx.make_fragment_like(target_b)

    # Rows y, y + 16, y + 32 and y + 48 of the tile of C, and such columns.
    x, y = thread % THREADS, thread // THREADS
    each = range(TILE // THREADS)
    totals = [[fx.Float32(0) for _ in each] for _ in each]
    for step in range(A.shape[1] // TILE_K):
        fx.copy(to_lds, source_a[None, None, None, step], held_a)
        fx.copy(to_lds, source_b[None, None, None, step], held_b)
        fx.copy(to_lds, held_a, target_a)
        fx.copy(to_lds, held_b, target_b)
        fx.barrier()
        for k in range(TILE_K):
            a = [lds_a[y + THREADS * i, k].to(fx.Float32) for i in each]
            b = [lds_b[x + THREADS * j, k].to(fx.Float32) for j in each]
            totals = [[totals[i][j] + a[i] * b[j] for j in each] for i in each]
        fx.barrier()
    for i in each:
        for j in each:
            tile_c[y + THREADS * i, x + THREADS * j] = totals[i][j]


@fly.jit
def gemm(A: fx.Tensor[fx.Float16, "M", "K"], B: fx.Tensor[fx.Float16, "N", "K"]):
    rows, columns = A.shape[0], B.shape[0]
    C = fx.empty((rows, columns), fx.Float32)
    along_k = TILE_K // VALUES  # threads that load a row of a tile
    threads = THREADS * THREADS
    to_lds = fx.make_tiled_copy_tv(
        fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float16),
        fx.make_ordered_layout((threads // along_k, along_k), (1, 0)),
        fx.make_layout((1, VALUES), (1, 1)),
    )
    gemm_kernel(A, B, C, to_lds).launch(grid=(rows // TILE, columns // TILE), block=threads)
    return C
