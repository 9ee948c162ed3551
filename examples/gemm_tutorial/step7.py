"""C = A·Bᵀ, with a preshuffled B that goes from memory to registers, without LDS.

A is M×K and B is `shuffled` of an N×K matrix, both of f16; C is M×N of f32. M and N are multiples
of 64, K of 64. A is loaded and kept in LDS as in step6.py.
"""

import fly
import fly.expr as fx

TILE = 64  # rows and columns of C that a workgroup computes
TILE_K = 32  # the extent of tiles of A and B along K
STAGES = 2  # of the tiles of A in LDS, and of those of B in registers
VALUES = 8  # of f16, that a thread loads at a time: 16 bytes
ROWS = 16  # of B, in a block of the shuffled matrix


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

    layout = fx.make_layout((TILE, TILE_K, STAGES), (TILE_K, 1, TILE * TILE_K))
    swizzle = fx.static(fx.SwizzleType.get(2, 3, 3))
    lds_a = (
        fx.SharedAllocator()
        .allocate(fx.Array[fx.Float16, TILE * TILE_K * STAGES, 16])
        .peek()
        .view(fx.make_composed_layout(swizzle, layout))
    )
    own = to_lds.get_slice(thread)
    source_a, target_a = own.partition_S(tiles_a), own.partition_D(lds_a)
    held_a = fx.make_fragment_like(target_a[None, None, None, 0])

    # What the instruction takes from each lane, and the copies that load it.
    a = product.get_slice(thread).make_fragment_A(lds_a[None, None, 0])
    b = product.get_slice(thread).make_fragment_B(tiles_b, stages=STAGES)
    c = product.get_slice(thread).make_fragment_C(tile_c)
    wide = to_lds.copy_atom
    read_a = fx.make_tiled_copy_A(wide, product).get_slice(thread)
    read_b = fx.make_tiled_copy_B(wide, product).get_slice(thread)
    from_a, from_b = read_a.partition_S(lds_a), read_b.partition_S(tiles_b)
    to_b = read_b.retile(b)

    def load(step, stage):
        fx.copy(to_lds, source_a[None, None, None, step], held_a)
        fx.copy(wide, from_b[None, None, None, step], to_b[None, None, None, stage])

    def store(stage):
        fx.copy(to_lds, held_a, target_a[None, None, None, stage])
        fx.barrier()

    def multiply(stage):
        fx.copy(wide, from_a[None, None, None, stage], read_a.retile(a))
        fx.gemm(product, c, a, b[None, None, None, stage], c)

    def next_step(step, stage):
        load(step, 1 - stage)  # starts to load, into registers
        fx.rocdl.sched_barrier(0)  # LLVM moves no instructions across it
        multiply(stage)
        fx.rocdl.sched_barrier(0)
        store(1 - stage)  # waits for what was loaded

    steps = A.shape[1] // TILE_K
    c.fill(0.0)
    load(0, 0)
    store(0)
    # Registers have no run-time index: two steps at a time, one for each stage of B.
    for step in range(1, steps - 1, 2):
        next_step(step, 0)
        next_step(step + 1, 1)
    next_step(steps - 1, 0)
    multiply(1)

    single = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
    write_c = fx.make_tiled_copy_C(single, product).get_slice(thread)
    fx.copy(single, write_c.retile(c), write_c.partition_D(tile_c))


def gemm(A, B, product, groups):
    """Returns C. `groups` of lanes share a row of B: each has other values along K."""
    rows, inner, columns = A.shape[0], A.shape[1], B.shape[0]
    C = fx.empty((rows, columns), fx.Float32)
    # The shuffled matrix, seen as an N×K matrix.
    block = ROWS * VALUES * groups
    order = fx.make_layout(
        ((ROWS, columns // ROWS), (VALUES, groups, inner // (VALUES * groups))),
        ((VALUES, ROWS * inner), (1, ROWS * VALUES, block)),
    )
    seen = fx.make_view(fx.get_iter(B), order)
    threads = 4 * ROWS * groups
    along_k = TILE_K // VALUES  # threads that load a row of a tile
    to_lds = fx.make_tiled_copy_tv(
        fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float16),
        fx.make_ordered_layout((threads // along_k, along_k), (1, 0)),
        fx.make_layout((1, VALUES), (1, 1)),
    )
    grid = (rows // TILE, columns // TILE)
    gemm_kernel(A, seen, C, to_lds, product).launch(grid=grid, block=threads)
    return C


@fly.jit
def gemm_mfma(A: fx.Tensor[fx.Float16, "M", "K"], B: fx.Tensor[fx.Float16, "N", "K"]):
    product = fx.make_tiled_mma(
        fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16)),
        fx.make_layout((1, 4, 1), (0, 1, 0)),
        # Two consecutive products use the eight values of K that a lane reads at a time.
        fx.make_tile(None, None, fx.make_layout((4, 4, 2), (1, 8, 4))),
    )
    C = gemm(A, B, product, 4)
    return C


@fly.jit
def gemm_wmma(A: fx.Tensor[fx.Float16, "M", "K"], B: fx.Tensor[fx.Float16, "N", "K"]):
    """For RDNA4; on RDNA3 a lane has all 16 values of a row of an instruction's B."""
    atom = fx.make_mma_atom(fx.rocdl.WMMA(16, 16, 16, fx.Float16))
    product = fx.make_tiled_mma(atom, fx.make_layout((1, 4, 1), (0, 1, 0)))
    C = gemm(A, B, product, 2)
    return C


def shuffled(b, groups):
    """Returns an N×K matrix in blocks of 16 rows by groups of 8 values of K. In a block, the values
    of a group that are in one row are adjacent, then come the rows, then the groups."""
    n, k = b.shape
    blocks = b.reshape(n // ROWS, ROWS, k // (VALUES * groups), groups, VALUES)
    return blocks.transpose(0, 2, 3, 1, 4).copy().reshape(n, k)
