"""C = A·Bᵀ on matrix cores: MFMA on CDNA, WMMA on RDNA.

A is M×K and B is N×K, both of f16; C is M×N of f32. M and N are multiples of 64, K of 32.
"""

import fly
import fly.expr as fx

TILE = 64  # rows and columns of C that a workgroup computes
TILE_K = 32  # the extent of tiles of A and B along K
VALUES = 8  # of f16, that a thread loads at a time: 16 bytes


@fly.kernel
def gemm_kernel(
    A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, to_lds: fx.TiledCopy, product: fx.TiledMma
):
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

    # What the instruction takes from each lane, and the copies from LDS that load it.
    a = product.get_slice(thread).make_fragment_A(lds_a)
    b = product.get_slice(thread).make_fragment_B(lds_b)
    c = product.get_slice(thread).make_fragment_C(tile_c)
    wide = to_lds.copy_atom
    read_a = fx.make_tiled_copy_A(wide, product).get_slice(thread)
    read_b = fx.make_tiled_copy_B(wide, product).get_slice(thread)

    c.fill(0.0)
    for step in range(A.shape[1] // TILE_K):
        fx.copy(to_lds, source_a[None, None, None, step], held_a)
        fx.copy(to_lds, source_b[None, None, None, step], held_b)
        fx.copy(to_lds, held_a, target_a)
        fx.copy(to_lds, held_b, target_b)
        fx.barrier()
        fx.copy(wide, read_a.partition_S(lds_a), read_a.retile(a))
        fx.copy(wide, read_b.partition_S(lds_b), read_b.retile(b))
        fx.gemm(product, c, a, b, c)
        fx.barrier()

    single = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
    write_c = fx.make_tiled_copy_C(single, product).get_slice(thread)
    fx.copy(single, write_c.retile(c), write_c.partition_D(tile_c))


def gemm(A, B, product, threads):
    """Returns C. A workgroup has four waves, two along M and two along N."""
    rows, columns = A.shape[0], B.shape[0]
    C = fx.empty((rows, columns), fx.Float32)
    along_k = TILE_K // VALUES  # threads that load a row of a tile
    to_lds = fx.make_tiled_copy_tv(
        fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float16),
        fx.make_ordered_layout((threads // along_k, along_k), (1, 0)),
        fx.make_layout((1, VALUES), (1, 1)),
    )
    grid = (rows // TILE, columns // TILE)
    gemm_kernel(A, B, C, to_lds, product).launch(grid=grid, block=threads)
    return C


@fly.jit
def gemm_mfma(A: fx.Tensor[fx.Float16, "M", "K"], B: fx.Tensor[fx.Float16, "N", "K"]):
    product = fx.make_tiled_mma(
        fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16)),
        fx.make_layout((2, 2, 1), (1, 2, 0)),
        # Two consecutive products use the eight values of K that a lane reads at a time.
        fx.make_tile(None, None, fx.make_layout((4, 4, 2), (1, 8, 4))),
    )
    C = gemm(A, B, product, 256)
    return C


@fly.jit
def gemm_wmma(A: fx.Tensor[fx.Float16, "M", "K"], B: fx.Tensor[fx.Float16, "N", "K"]):
    atom = fx.make_mma_atom(fx.rocdl.WMMA(16, 16, 16, fx.Float16))
    product = fx.make_tiled_mma(atom, fx.make_layout((2, 2, 1), (1, 2, 0)))
    C = gemm(A, B, product, 128)
    return C
