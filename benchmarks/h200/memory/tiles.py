"""Addition and transposition by tiles, with 16-byte accesses to global memory.

Each function returns a host function. No kernel uses words of a vendor, so the same kernels are
tested on the emulator.
"""

import fly
import fly.expr as fx


def one_row(threads, dtype):
    """Threads that copy a row: each accesses 16 bytes, adjacent to those of its neighbours."""
    values = 128 // dtype.bits
    return fx.make_tiled_copy_tv(
        fx.make_copy_atom(fx.UniversalCopy128b(), dtype),
        fx.make_ordered_layout((1, threads), (1, 0)),
        fx.make_layout((1, values), (1, 1)),
    )


# -- addition
def adding(threads=256, accesses=1):
    """C = A + B of f32; each thread adds four elements `accesses` times."""
    size = 4 * threads * accesses

    @fly.kernel
    def add_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, copy: fx.TiledCopy):
        own, n = copy.get_slice(fx.thread_idx.x), A.shape[0]
        parts = []
        for tensor in (A, B, C):
            row = fx.make_view(fx.get_iter(tensor), fx.make_layout((1, n), (n, 1)))
            tile = fx.flat_divide(row, (1, size))[None, None, 0, fx.block_idx.x]
            parts.append(own.partition_S(tile))
        a, b, c = parts
        x, y = fx.make_fragment_like(a), fx.make_fragment_like(b)
        fx.copy(copy, a, x)
        fx.copy(copy, b, y)
        x.store(x.load() + y.load())
        fx.copy(copy, x, c)

    @fly.jit
    def add(
        A: fx.Tensor[fx.Float32, "n"],
        B: fx.Tensor[fx.Float32, "n"],
        C: fx.Tensor[fx.Float32, "n"],
    ):
        """`n` is a multiple of the elements of a block."""
        copy = one_row(threads, fx.Float32)
        add_kernel(A, B, C, copy).launch(grid=A.shape[0] // size, block=threads)

    return add


# -- transposition
def transposing(dtype, tile=(64, 64), lanes=16, threads=256, down=False):
    """B = Aᵀ through shared memory, a tile per block. Blocks that follow each other are in a row of
    tiles of A, or with `down` in a column.

    Threads load 16 bytes of a row of A into shared memory and store 16 bytes of a row of B; `lanes`
    adjacent threads access adjacent ones. In between, each gathers words of a column: one f32, or
    two adjacent bf16 of which it keeps one for each of two rows of B. With the swizzle the words
    that 32 lanes gather are in different banks if `lanes` is 8; if it is 16, in each bank are two.
    """
    values = 128 // dtype.bits
    pair = 32 // dtype.bits  # elements of a word
    height, width = tile
    bits = (width // values).bit_length() - 1  # of a 16-byte access in a row of the tile
    swizzle = fx.static(
        fx.SwizzleType.get(3, values.bit_length() - 1, bits + values.bit_length() - 1)
    )

    @fly.kernel
    def transpose_kernel(
        A: fx.Tensor,
        B: fx.Tensor,
        load: fx.TiledCopy,
        turn: fx.TiledCopy,
        store: fx.TiledCopy,
    ):
        thread = fx.thread_idx.x
        i, j = fx.block_idx.y, fx.block_idx.x
        if fx.const_expr(down):
            i, j = j, i
        tile_a = fx.flat_divide(A, (height, width))[None, None, i, j]
        tile_b = fx.flat_divide(B, (width, height))[None, None, j, i]
        memory = fx.SharedAllocator().allocate(fx.Array[dtype, height * width, 16]).peek()
        by_a = fx.make_layout((height, width), (width, 1))
        by_b = fx.make_layout((width, height), (1, width))
        shared_a = memory.view(fx.make_composed_layout(swizzle, by_a))
        shared_b = memory.view(fx.make_composed_layout(swizzle, by_b))

        own = load.get_slice(thread)
        source = own.partition_S(tile_a)
        held = fx.make_fragment_like(source)
        fx.copy(load, source, held)
        fx.copy(load, held, own.partition_D(shared_a))
        fx.barrier()

        words = turn.get_slice(thread).partition_S(shared_b)
        found = fx.make_fragment_like(words)
        fx.copy(turn, words, found)
        target = store.get_slice(thread).partition_D(tile_b)
        turned = fx.make_fragment_like(target)
        turned.store(by_rows(found.load(), pair, values))
        fx.copy(store, turned, target)

    @fly.jit
    def transpose(A: fx.Tensor[dtype, "M", "N"], B: fx.Tensor[dtype, "N", "M"]):
        load = fx.make_tiled_copy_tv(
            fx.make_copy_atom(fx.UniversalCopy128b(), dtype),
            fx.make_ordered_layout((threads // lanes, lanes), (1, 0)),
            fx.make_layout((1, values), (1, 1)),
        )
        rows = pair * threads // lanes  # of B, which the block turns at a time
        across = ((lanes, threads // lanes), (values * rows, pair))
        turn = fx.make_tiled_copy(
            fx.make_copy_atom(fx.UniversalCopy32b(), dtype),
            fx.make_layout((across[0], (pair, values)), (across[1], (1, rows))),
            fx.make_tile(rows, lanes * values),
        )
        store = fx.make_tiled_copy(
            fx.make_copy_atom(fx.UniversalCopy128b(), dtype),
            fx.make_layout((across[0], (values, pair)), (across[1], (rows, 1))),
            fx.make_tile(rows, lanes * values),
        )
        grid = (A.shape[1] // width, A.shape[0] // height)
        grid = (grid[1], grid[0]) if down else grid
        transpose_kernel(A, B, load, turn, store).launch(grid=grid, block=threads)

    return transpose


def by_rows(vector, pair, values):
    """Orders blocks of `values` words, each with one element for each of `pair` rows, by rows."""
    block = pair * values
    order = [
        start + column * pair + row
        for start in fx.range_constexpr(0, vector.numel, block)
        for row in fx.range_constexpr(pair)
        for column in fx.range_constexpr(values)
    ]
    return vector.shuffle(vector, order)
