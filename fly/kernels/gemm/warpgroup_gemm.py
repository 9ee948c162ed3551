"""Products of matrices on Hopper: TMA, wgmma, warp specialisation, a persistent grid.

A block has three warp groups. One thread of the first one copies tiles of A and B to a ring of
buffers in shared memory. The other two multiply: each has rows of a tile of C, in registers, or
where C has few rows, columns of it. The tiles of C are dealt out to as many blocks as the device
runs at once, in columns of a few rows, so that blocks that run together share rows of A and columns
of B in the L2 cache.
"""

from __future__ import annotations

from fly_trace.values.dtypes import EVERY

import fly
import fly.expr as fx
from fly.kernels.gemm.epilogue import Epilogue
from fly.kernels.gemm.warpgroup_plans import (
    ALIGNMENT,
    GROUPS,
    ROW,
    ROWS,
    SUMMED,
    THREADS,
    WarpgroupPlan,
)

FEW, MANY = 40, 232  # registers of a thread that copies, and of one that multiplies
PADDED = 256  # threads that copy a row


def tiles(plan, rows, along_k):
    """The layout of a tile of A or B in shared memory."""
    return fx.nvvm.tile_layout(EVERY[plan.element], (rows, plan.depth), int(along_k), ROW)


def chunks(plan):
    """The layout of what of C is stored together."""
    return fx.nvvm.tile_layout(EVERY[plan.out], (ROWS, plan.chunk), 1, ROW)


def products(plan, columns, above=1, beside=1):
    """The multiplication of warp groups above one another, or beside one another."""
    atom = fx.make_mma_atom(fx.nvvm.WGMMA(columns, EVERY[plan.element]))
    steps = (int(above > 1), int(beside > 1), 0)
    return fx.make_tiled_mma(atom, fx.make_layout((above, beside, 1), steps))


class Schedule:
    """The tiles of C, in the order in which blocks take them, and a tile's part of K."""

    def __init__(self, extents, plan):
        batches, m, n, k = extents
        self.plan = plan
        self.down, self.across = fx.ceildiv(m, plan.rows), fx.ceildiv(n, plan.columns)
        self.count = batches * plan.splits * self.down * self.across
        self.steps = fx.ceildiv(k, plan.depth)

    def place(self, number):
        """Of a tile by its number: the part, its matrix, row and column, and its steps along K."""
        plan = self.plan
        part, number = divmod(number, self.down * self.across)
        band, inside = divmod(number, plan.band * self.across)
        column, row = divmod(inside, fx.min(self.down - band * plan.band, plan.band))
        each = fx.ceildiv(self.steps, plan.splits)
        first = part % plan.splits * each
        last = fx.min(first + each, self.steps)
        row = (band * plan.band + row) * plan.rows
        return part, part // plan.splits, row, column * plan.columns, first, last


@fly.kernel
def warpgroup_gemm_kernel(
    A,
    B,
    C,
    bias: fx.Tensor,
    addend: fx.Tensor,
    alpha: fx.Float64,
    beta: fx.Float64,
    batches: fx.Int32,
    m: fx.Int32,
    n: fx.Int32,
    k: fx.Int32,
    plan: fx.Constexpr[WarpgroupPlan],
    epilogue: fx.Constexpr[Epilogue],
):
    element = EVERY[plan.element]
    tiles_a = fx.nvvm.SharedTiles(element, tiles(plan, plan.rows, plan.a_along_k), plan.stages)
    tiles_b = fx.nvvm.SharedTiles(element, tiles(plan, plan.columns, plan.b_along_k), plan.stages)
    buffers = fx.nvvm.SharedTiles(EVERY[plan.out], chunks(plan), 2 * GROUPS)
    ring = fx.nvvm.Pipeline(plan.stages, consumers=GROUPS)
    group, thread = fx.nvvm.warp_group_index(), fx.thread_idx.x % THREADS
    schedule = Schedule((batches, m, n, k), plan)
    count = fx.Int32(0)  # of the ring's buffers so far

    if group == 0:
        fx.nvvm.set_registers(FEW, more=False)
        if thread == 0:
            for tile in range(fx.block_idx.x, schedule.count, fx.grid_dim.x):
                _, batch, row, column, first, last = schedule.place(tile)
                for step in range(first, last):
                    slot = ring.fill(count, A.nbytes + B.nbytes)
                    at = step * plan.depth
                    fx.nvvm.tma_load(A, (batch, row, at), tiles_a[slot.stage], slot.barrier)
                    fx.nvvm.tma_load(B, (batch, column, at), tiles_b[slot.stage], slot.barrier)
                    count += 1
    else:
        fx.nvvm.set_registers(MANY, more=True)
        consumer = group - 1
        product = products(plan, plan.width, GROUPS // plan.beside, plan.beside)
        # What is in shared memory is the same for all threads of a group.
        own = product.get_slice(consumer * THREADS)
        sums = fx.make_rmem_tensor(fx.nvvm.accumulators(product), fx.Float32)
        for tile in range(fx.block_idx.x, schedule.count, fx.grid_dim.x):
            part, batch, row, column, first, last = schedule.place(tile)
            sums.fill(0)
            for step in range(first, last):
                slot = ring.wait(count)
                a, b = tiles_a[slot.stage], tiles_b[slot.stage]
                fx.nvvm.wgmma_fence()
                fx.gemm(product, sums, own.partition_A(a), own.partition_B(b), sums)
                fx.nvvm.wgmma_commit()
                fx.nvvm.wgmma_wait(1, sums)  # the step before this one has been multiplied
                if thread == 0 and step > first:
                    ring.release(count - 1)
                count += 1
            fx.nvvm.wgmma_wait(0, sums)
            if thread == 0:
                ring.release(count - 1)
            output = Output(C, bias, addend, alpha, beta, (m, n), plan, epilogue)
            output.store(sums, buffers, consumer, part, batch, row, column)
        if plan.tma_store and thread == 0:
            fx.nvvm.tma_wait(0)


class Output:
    """A warp group's part in storing a tile of C."""

    def __init__(self, C, bias, addend, alpha, beta, extents, plan, epilogue):
        self.C, self.bias, self.addend, self.extents = C, bias, addend, extents
        self.factors = alpha, beta
        self.plan, self.epilogue = plan, epilogue

    def store(self, sums, buffers, consumer, part, batch, row, column):
        """Applies the epilogue to what a warp group has of a tile, and stores it through shared
        memory, 64 rows and a few columns at a time, in two buffers in turn."""
        plan, thread = self.plan, fx.thread_idx.x % THREADS
        out = EVERY[plan.out]
        product = products(plan, plan.chunk)
        form = fx.nvvm.accumulators(product)
        atom = fx.make_copy_atom(
            fx.nvvm.StoreMatrix(4) if out.bits == 16 else fx.UniversalCopy64b(), out
        )
        write = fx.make_tiled_copy_C(atom, product).get_slice(thread)
        if plan.beside > 1:
            column += consumer * plan.width
        else:
            row += consumer * ROWS
        for piece in fx.range_constexpr(plan.pieces):
            buffer, first = buffers[consumer * 2 + piece % 2], column + piece * plan.chunk
            some = fx.make_view(fx.get_iter(sums) + piece * int(fx.size(form)), form)
            held = fx.make_fragment_like(some, out)
            held.store(self.results(some, product, batch, row, first))
            if plan.tma_store and thread == 0:
                fx.nvvm.tma_wait(1)  # the other buffer may still be read
            fx.nvvm.barrier_sync(consumer + 1, THREADS)
            fx.copy(atom, write.retile(held), write.partition_D(buffer))
            if plan.tma_store:
                fx.nvvm.fence_async()
            fx.nvvm.barrier_sync(consumer + 1, THREADS)
            if not plan.tma_store:
                self.store_elements(buffer, part, row, first)
            elif thread == 0:
                fx.nvvm.tma_store(buffer, self.C, (part, row, first))
                fx.nvvm.tma_commit()

    def results(self, sums, product, batch, row, column):
        """The results of a thread's sums."""
        epilogue = self.epilogue
        places = fx.make_view((row, column), fx.make_identity_layout((ROWS, self.plan.chunk)))
        places = product.get_slice(fx.thread_idx.x % THREADS).partition_C(places)
        added = [None, None]
        for kind, is_used in enumerate((epilogue.bias, epilogue.addend)):
            if is_used:
                source = (self.bias, self.addend)[kind]
                loaded = fx.make_fragment_like(sums, source.dtype)
                for i in fx.range_constexpr(fx.size(loaded)):
                    place = places[i].unpack()
                    y, x = [
                        fx.min(at, most - 1) for at, most in zip(place, self.extents, strict=True)
                    ]
                    loaded[i] = source[batch, y, x] if kind else source[x]
                added[kind] = loaded.load()
        return epilogue.apply(sums.load(), *added, *self.factors)

    def store_elements(self, buffer, part, row, column):
        """Stores what is in a buffer element by element: rows of C are not aligned for TMA."""
        lines = THREADS // self.plan.chunk
        line, place = divmod(fx.thread_idx.x % THREADS, self.plan.chunk)
        for y in fx.range_constexpr(0, ROWS, lines):
            if row + y + line < self.extents[0] and column + place < self.extents[1]:
                self.C[part, row + y + line, column + place] = buffer[y + line, place]


def element(X, batch, row, column):
    """The address of an element of matrices whose rows are adjacent elements."""
    return fx.get_iter(X) + (fx.Int64(batch) * X.stride[0] + fx.Int64(row) * X.stride[1] + column)


@fly.kernel
def sum_kernel(
    parts: fx.Tensor,
    D: fx.Tensor,
    bias: fx.Tensor,
    addend: fx.Tensor,
    alpha: fx.Float64,
    beta: fx.Float64,
    plan: fx.Constexpr[WarpgroupPlan],
    epilogue: fx.Constexpr[Epilogue],
):
    """Adds the parts of C, and applies the epilogue: `unit` adjacent elements a thread, and as many
    rows a block as its threads have elements for."""
    unit, across = plan.unit, SUMMED // plan.lines
    line, place = divmod(fx.thread_idx.x, across)
    row, batch = fx.block_idx.x * plan.lines + line, fx.block_idx.z
    column = (fx.block_idx.y * across + place) * unit
    form, width = fx.make_layout(unit, 1), unit * 32
    if row < D.shape[1] and column < D.shape[2]:
        sums = fx.make_rmem_tensor(form, fx.Float32)
        sums.fill(0)
        for part in fx.range_constexpr(plan.splits):
            one = fx.make_rmem_tensor(form, fx.Float32)
            source = element(parts, batch * plan.splits + part, row, column)
            atom = fx.make_copy_atom(fx.UniversalCopy(width), fx.Float32)
            fx.copy(atom, fx.make_view(source, form), one)
            sums.store(sums.load() + one.load())
        added = [None, None]
        for kind, is_used in enumerate((epilogue.bias, epilogue.addend)):
            if is_used:
                source = (bias, addend)[kind]
                loaded = fx.make_rmem_tensor(form, source.dtype)
                for i in fx.range_constexpr(unit):
                    loaded[i] = source[batch, row, column + i] if kind else source[column + i]
                added[kind] = loaded.load()
        held = fx.make_rmem_tensor(form, D.dtype)
        held.store(epilogue.apply(sums.load(), *added, alpha, beta))
        atom = fx.make_copy_atom(fx.UniversalCopy(unit * D.dtype.bits), D.dtype)
        fx.copy(atom, held, fx.make_view(element(D, batch, row, column), form))


@fly.kernel
def pad_kernel(X: fx.Tensor, Y: fx.Tensor, unit: fx.Constexpr[int]):
    """Copies rows to rows that begin at multiples of 16 bytes, `unit` elements a thread. What is
    behind the end of a row is not read."""
    batch, row = fx.block_idx.z, fx.block_idx.x
    first = (fx.block_idx.y * PADDED + fx.thread_idx.x) * unit
    held = fx.make_rmem_tensor(unit, X.dtype)
    if first < Y.shape[2]:
        for i in fx.range_constexpr(unit):
            held[i] = X[batch, row, fx.min(first + i, X.shape[2] - 1)]
        wide = fx.make_copy_atom(fx.UniversalCopy128b(), X.dtype)
        fx.copy(wide, held, fx.make_view(element(Y, batch, row, first), fx.make_layout(unit, 1)))


def operand(X, across, along_k, pad):
    """An operand as batches × rows (or columns of C) × K, copied if `pad`; mode `across` of X is
    not along K."""
    inner = 3 - across if along_k else across
    batches, lines, width = X.shape[0], X.shape[3 - inner], X.shape[inner]
    start, step, batch = fx.get_iter(X), X.stride[3 - inner], X.stride[0]
    if pad:
        unit = ALIGNMENT // X.dtype.bytes
        room = fx.ceildiv(width, unit) * unit
        source = fx.make_view(start, fx.make_layout((batches, lines, width), (batch, step, 1)))
        Y = fx.empty((batches, lines, room), X.dtype)
        blocks = fx.ceildiv(room, PADDED * unit)
        pad_kernel(source, Y, unit).launch(grid=(lines, blocks, batches), block=PADDED)
        start, step, batch = fx.get_iter(Y), room, lines * room
    if along_k:
        return fx.make_view(start, fx.make_layout((batches, lines, width), (batch, step, 1)))
    return fx.make_view(start, fx.make_layout((batches, width, lines), (batch, 1, step)))


@fly.jit
def warpgroup_gemm(
    A: fx.Tensor[fx.Numeric, "B", fx.sym_int32("M"), fx.sym_int32("K")],
    B: fx.Tensor[fx.Numeric, "B", fx.sym_int32("K"), fx.sym_int32("N")],
    bias: fx.Tensor,
    addend: fx.Tensor,
    alpha: fx.Float64,
    beta: fx.Float64,
    plan: fx.Constexpr[WarpgroupPlan],
    epilogue: fx.Constexpr[Epilogue],
):
    """epilogue(A·B) for batches of matrices; as `batched_gemm.gemm`."""
    batches, m, k, n = A.shape[0], A.shape[1], A.shape[2], B.shape[2]
    whole = plan.splits == 1
    C = fx.empty((batches * plan.splits, m, n), EVERY[plan.out])
    maps = [
        fx.nvvm.tensor_map(
            operand(X, across, along_k, pad),
            tiles(plan, rows, along_k),
            tf32=plan.element == "f32",  # rounded by TMA: wgmma truncates
        )
        for X, across, rows, along_k, pad in (
            (A, 1, plan.rows, plan.a_along_k, plan.pad_a),
            (B, 2, plan.columns, plan.b_along_k, plan.pad_b),
        )
    ]
    target = fx.nvvm.tensor_map(C, chunks(plan)) if plan.tma_store else C
    count = batches * plan.splits * fx.ceildiv(m, plan.rows) * fx.ceildiv(n, plan.columns)
    own = epilogue if whole else Epilogue(plan.out, 1)
    warpgroup_gemm_kernel(
        *maps, target, bias, addend, alpha, beta, batches, m, n, k, plan, own
    ).launch(grid=fx.min(count, plan.blocks), block=(1 + GROUPS) * THREADS)
    if whole:
        return C
    D = fx.empty((batches, m, n), EVERY[epilogue.out])
    across = SUMMED // plan.lines * plan.unit
    sum_kernel(C, D, bias, addend, alpha, beta, plan, epilogue).launch(
        grid=(fx.ceildiv(m, plan.lines), fx.ceildiv(n, across), batches), block=SUMMED
    )
    return D
