"""Products of matrices on Hopper: TMA, wgmma, warp specialisation, a persistent grid.

A block has three warp groups. One thread of the first one copies tiles of A and B to a ring of
buffers in shared memory. The other two multiply: each has 64 rows of a tile of C, in registers. The
tiles of C are dealt out to as many blocks as the device runs at once, in columns of a few rows, so
that blocks that run together share rows of A and columns of B in the L2 cache.
"""

from __future__ import annotations

from typing import NamedTuple

from fly_trace.values.dtypes import EVERY

import fly
import fly.expr as fx

ROW = 128  # bytes of a row of a tile in shared memory
THREADS = 128  # of a warp group
GROUPS = 2  # of them that multiply
ROWS = 64  # of C that one of them has


class WarpgroupPlan(NamedTuple):
    """element, out: the types of operands and result. columns: of a tile of C. stages: buffers.
    a_along_k, b_along_k: whether the operand's values of K are adjacent in memory. tma_store:
    whether C's rows begin at multiples of 16 bytes. band: the rows of tiles that blocks go through
    together. blocks: those that run at once."""

    element: str
    out: str
    columns: int = 256
    stages: int = 4
    a_along_k: bool = True
    b_along_k: bool = True
    tma_store: bool = True
    band: int = 16
    blocks: int = 132

    @property
    def rows(self) -> int:
        return GROUPS * ROWS

    @property
    def depth(self) -> int:
        """The extent of tiles along K."""
        return ROW * 8 // EVERY[self.element].bits

    @property
    def chunk(self) -> int:
        """The columns of C that are stored together."""
        return ROW * 8 // EVERY[self.out].bits

    def tiles(self, rows: int, along_k: bool):
        """The layout of a tile of A or B in shared memory."""
        return fx.nvvm.tile_layout(EVERY[self.element], (rows, self.depth), int(along_k), ROW)

    @property
    def chunks(self):
        """The layout of a part of C in shared memory."""
        return fx.nvvm.tile_layout(EVERY[self.out], (ROWS, self.chunk), 1, ROW)

    def product(self, columns: int, groups: int):
        atom = fx.make_mma_atom(fx.nvvm.WGMMA(columns, EVERY[self.element]))
        return fx.make_tiled_mma(atom, fx.make_layout((groups, 1, 1), (1, 0, 0)))


def tile_of(number, tiles_m, tiles_n, plan):
    """Batch, row and column of a tile, by its number."""
    batch, number = divmod(number, tiles_m * tiles_n)
    band, inside = divmod(number, plan.band * tiles_n)
    rows = fx.min(tiles_m - band * plan.band, plan.band)
    column, row = divmod(inside, rows)
    return batch, (band * plan.band + row) * plan.rows, column * plan.columns


@fly.kernel
def warpgroup_gemm_kernel(
    A,
    B,
    C,
    m: fx.Int32,
    n: fx.Int32,
    k: fx.Int32,
    batches: fx.Int32,
    plan: fx.Constexpr[WarpgroupPlan],
):
    element, out = EVERY[plan.element], EVERY[plan.out]
    tiles_a = fx.nvvm.SharedTiles(element, plan.tiles(plan.rows, plan.a_along_k), plan.stages)
    tiles_b = fx.nvvm.SharedTiles(element, plan.tiles(plan.columns, plan.b_along_k), plan.stages)
    chunks = fx.nvvm.SharedTiles(out, plan.chunks, 2 * GROUPS)
    ring = fx.nvvm.Pipeline(plan.stages, consumers=GROUPS)
    group = fx.nvvm.warp_group_index()
    thread = fx.thread_idx.x % THREADS
    tiles_m, tiles_n = fx.ceildiv(m, plan.rows), fx.ceildiv(n, plan.columns)
    tiles, steps = batches * tiles_m * tiles_n, fx.ceildiv(k, plan.depth)
    count = fx.Int32(0)  # of the ring's buffers

    if group == 0:
        fx.nvvm.set_registers(40, more=False)
        if thread == 0:
            for tile in range(fx.block_idx.x, tiles, fx.grid_dim.x):
                batch, row, column = tile_of(tile, tiles_m, tiles_n, plan)
                for step in range(steps):
                    slot = ring.fill(count, A.nbytes + B.nbytes)
                    fx.nvvm.tma_load(
                        A, (batch, row, step * plan.depth), tiles_a[slot.stage], slot.barrier
                    )
                    fx.nvvm.tma_load(
                        B, (batch, column, step * plan.depth), tiles_b[slot.stage], slot.barrier
                    )
                    count += 1
    else:
        fx.nvvm.set_registers(232, more=True)
        consumer = group - 1
        product = plan.product(plan.columns, GROUPS)
        # What is in shared memory is the same for all threads of a group.
        own = product.get_slice(consumer * THREADS)
        sums = own.make_fragment_C(
            fx.make_view(
                fx.get_iter(tiles_b[0]),
                fx.make_layout((plan.rows, plan.columns), (plan.columns, 1)),
            )
        )
        for tile in range(fx.block_idx.x, tiles, fx.grid_dim.x):
            batch, row, column = tile_of(tile, tiles_m, tiles_n, plan)
            sums.fill(0)
            for step in range(steps):
                slot = ring.wait(count)
                a, b = own.partition_A(tiles_a[slot.stage]), own.partition_B(tiles_b[slot.stage])
                fx.nvvm.wgmma_fence()
                fx.gemm(product, sums, a, b, sums)
                fx.nvvm.wgmma_commit()
                fx.nvvm.wgmma_wait(1, sums)  # the step before this one has been multiplied
                if thread == 0 and step > 0:
                    ring.release(count - 1)
                count += 1
            fx.nvvm.wgmma_wait(0, sums)
            if thread == 0:
                ring.release(count - 1)
            store(sums, C, chunks, consumer, (batch, row + consumer * ROWS, column), (m, n), plan)
        if plan.tma_store and thread == 0:
            fx.nvvm.tma_wait(0)


def store(sums, C, chunks, consumer, place, extents, plan):
    """Converts a warp group's rows of C, and stores them through shared memory, in parts of `chunk`
    columns with two buffers in turn."""
    out = EVERY[plan.out]
    thread = fx.thread_idx.x % THREADS
    product = plan.product(plan.chunk, 1)
    matrices = fx.nvvm.StoreMatrix(4) if out.bits == 16 else fx.UniversalCopy64b()
    atom = fx.make_copy_atom(matrices, out)
    write = fx.make_tiled_copy_C(atom, product).get_slice(thread)
    batch, row, column = place
    values = ROWS * plan.chunk // THREADS  # of a thread
    for part in fx.range_constexpr(plan.columns // plan.chunk):
        buffer = chunks[consumer * 2 + part % 2]
        first = column + part * plan.chunk
        own = product.get_slice(thread).make_fragment_C(buffer)
        held = fx.make_fragment_like(own, out)
        some = fx.make_view(fx.get_iter(sums) + part * values, held.layout)
        held.store(some.load().to(out))
        if plan.tma_store and thread == 0:
            fx.nvvm.tma_wait(1)  # the other buffer may still be read
        fx.nvvm.barrier_sync(consumer + 1, THREADS)
        fx.copy(atom, write.retile(held), write.partition_D(buffer))
        if plan.tma_store:
            fx.nvvm.fence_async()
        fx.nvvm.barrier_sync(consumer + 1, THREADS)
        if plan.tma_store:
            if thread == 0:
                fx.nvvm.tma_store(buffer, C, (batch, row, first))
                fx.nvvm.tma_commit()
        else:
            lines = THREADS // plan.chunk
            line, place_x = divmod(thread, plan.chunk)
            for y in fx.range_constexpr(0, ROWS, lines):
                if row + y + line < extents[0] and first + place_x < extents[1]:
                    C[batch, row + y + line, first + place_x] = buffer[y + line, place_x]


@fly.jit
def warpgroup_gemm(
    A: fx.Tensor[fx.Numeric, "B", fx.sym_int32("M"), fx.sym_int32("K")],
    B: fx.Tensor[fx.Numeric, "B", fx.sym_int32("K"), fx.sym_int32("N")],
    plan: fx.Constexpr[WarpgroupPlan],
):
    """C = A·B for batches of matrices, of which TMA can copy tiles: see `fx.nvvm.tensor_map`."""
    batches, m, k, n = A.shape[0], A.shape[1], A.shape[2], B.shape[2]
    C = fx.empty((batches, m, n), EVERY[plan.out])
    transposed = fx.make_view(
        fx.get_iter(B), fx.make_layout((batches, n, k), (B.stride[0], B.stride[2], B.stride[1]))
    )
    map_a = fx.nvvm.tensor_map(A, plan.tiles(plan.rows, plan.a_along_k))
    map_b = fx.nvvm.tensor_map(transposed, plan.tiles(plan.columns, plan.b_along_k))
    target = fx.nvvm.tensor_map(C, plan.chunks) if plan.tma_store else C
    tiles = batches * fx.ceildiv(m, plan.rows) * fx.ceildiv(n, plan.columns)
    warpgroup_gemm_kernel(map_a, map_b, target, m, n, k, batches, plan).launch(
        grid=fx.min(tiles, plan.blocks), block=(1 + GROUPS) * THREADS
    )
    return C
