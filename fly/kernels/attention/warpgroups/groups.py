"""What the kernels of attention on Hopper share: warp groups, and how they store their results."""

from __future__ import annotations

from fly_backend.choice import choose, row_of

import fly.expr as fx

ROWS, THREADS, GROUPS = 64, 128, 2  # rows and threads of a warp group; those that multiply
ROW = 128  # bytes of a row of a tile in shared memory
CHUNK = 64  # columns of a result that are stored together
WORKERS = GROUPS * THREADS
SHARED = 1 + GROUPS  # the number of the barrier of all threads that multiply
FEW, MANY = 24, 240  # registers of a thread that copies, and of one that multiplies


def has_warpgroups() -> bool:
    """Whether the target has wgmma."""
    return row_of(choose()).family == "Hopper"


def result_layout(dtype, columns=CHUNK):
    """The layout in shared memory of what a group stores together."""
    return fx.nvvm.tile_layout(dtype, (ROWS, columns), 1, columns * dtype.bits // 8)


def clear(tiles, end):
    """Makes the rows of tiles from `end` on zeros, by all threads that multiply: what lies behind a
    sequence is another one's, of which not even NaNs may become part of a sum."""
    for tile in tiles:
        rows, columns = [int(fx.size(extent)) for extent in tile.shape]
        worker = fx.thread_idx.x - THREADS
        for row in range(end + worker // columns, rows, WORKERS // columns):
            tile[row, worker % columns] = 0.0
    fx.nvvm.fence_async()
    fx.nvvm.barrier_sync(SHARED, WORKERS)


def store(sums, buffers, consumer, target, at, dtype, rest=None):
    """Rounds a group's sums, 64 rows, and stores them at (batch, head, row, column) of a tensor,
    through its buffers in shared memory. `target` is the tensor's map. rest: if rows of others may
    follow, the tensor, and how many rows from the first one on are to be stored."""
    thread = fx.thread_idx.x % THREADS
    batch, head, row, column = at
    width = min(CHUNK, int(fx.size(sums)) * THREADS // ROWS)
    product = fx.make_tiled_mma(
        fx.make_mma_atom(fx.nvvm.WGMMA(width, dtype)), fx.make_layout((1, 1, 1), (0, 0, 0))
    )
    form = fx.nvvm.accumulators(product)
    atom = fx.make_copy_atom(fx.nvvm.StoreMatrix(4), dtype)
    write = fx.make_tiled_copy_C(atom, product).get_slice(thread)
    count = int(fx.size(form))
    chunks = int(fx.size(sums)) // count
    for chunk in fx.range_constexpr(chunks):
        some = fx.make_view(fx.get_iter(sums) + chunk * count, form)
        held = fx.make_fragment_like(some, dtype)
        held.store(some.load().to(dtype))
        if chunk == 0:
            if thread == 0:
                fx.nvvm.tma_wait(0)  # the buffers may still be read
            fx.nvvm.barrier_sync(consumer + 1, THREADS)
        buffer = buffers[consumer * chunks + chunk]
        fx.copy(atom, write.retile(held), write.partition_D(buffer))
    fx.nvvm.fence_async()
    fx.nvvm.barrier_sync(consumer + 1, THREADS)
    if rest is None or rest[1] >= ROWS:
        if thread == 0:
            for chunk in fx.range_constexpr(chunks):
                buffer = buffers[consumer * chunks + chunk]
                fx.nvvm.tma_store(buffer, target, (batch, head, row, column + chunk * width))
            fx.nvvm.tma_commit()
    else:
        matrix = rest[0][batch, head, None, None]
        for chunk in fx.range_constexpr(chunks):
            buffer = buffers[consumer * chunks + chunk]
            for line in range(thread // width, rest[1], THREADS // width):
                one = matrix[row + line, None]
                one[column + chunk * width + thread % width] = buffer[line, thread % width]
