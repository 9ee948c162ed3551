"""Products of matrices on Hopper: TMA, wgmma, warp specialisation, a persistent grid.

A block has three warp groups. One thread of the first one copies tiles of A and B to a ring of
buffers in shared memory. The other two multiply: each has rows of a tile of C, in registers, or
where C has few rows, columns of it. The tiles of C are dealt out to as many blocks as the device
runs at once, in columns of a few rows, so that blocks that run together share rows of A and columns
of B in the L2 cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fly_trace.values.dtypes import EVERY

import fly
import fly.expr as fx
from fly.kernels.gemm.epilogue import Epilogue
from fly.kernels.gemm.warpgroup_operands import add_parts, element, operand
from fly.kernels.gemm.warpgroup_plans import ALIGNMENT, GROUPS, ROW, ROWS, THREADS, WarpgroupPlan

FEW, MANY = 40, 232  # registers of a thread that copies, and of one that multiplies


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


class Place(NamedTuple):
    """Where a tile of C is: its part, the matrices of A and of B, its row and column, its steps
    along K, and the end of the rows that belong to C."""

    part: Any
    of_a: Any
    of_b: Any
    row: Any
    column: Any
    first: Any
    last: Any
    end: Any


class Schedule:
    """The tiles of C, in the order in which blocks take them, and a tile's part of K."""

    start = ()

    def __init__(self, extents, plan):
        batches, m, n, k = extents
        self.plan, self.rows = plan, m
        self.down, self.across = fx.ceildiv(m, plan.rows), fx.ceildiv(n, plan.columns)
        self.count = batches * plan.splits * self.down * self.across
        self.steps = fx.ceildiv(k, plan.depth)

    def place(self, number, state):
        """Of a tile by its number; `state` is that of the block's tile before, or `start`."""
        plan = self.plan
        part, number = divmod(number, self.down * self.across)
        each = fx.ceildiv(self.steps, plan.splits)
        first = part % plan.splits * each
        last = fx.min(first + each, self.steps)
        row, column = banded(number, self.down, self.across, plan)
        batch = part // plan.splits
        return Place(part, batch, batch, row, column, first, last, self.rows), state


class Groups:
    """The tiles of groups of rows, as `Schedule`. `offsets` are the ends of groups, each of which
    is multiplied by its own matrix of B."""

    def __init__(self, offsets, extents, plan):
        count, _, n, k = extents
        self.offsets, self.plan = offsets, plan
        self.across, self.steps = fx.ceildiv(n, plan.columns), fx.ceildiv(k, plan.depth)
        # Of a block's last tile: its group, the group's first row and first tile.
        self.start = fx.Int32(0), fx.Int32(0), fx.Int32(0)
        tiles = before = fx.Int32(0)
        for group in range(count):
            last = offsets[group]
            tiles += self.tiles(last - before)
            before = last
        self.count = tiles

    def tiles(self, rows):
        """The tiles of so many rows."""
        return fx.ceildiv(rows, self.plan.rows) * self.across

    def place(self, number, state):
        group, start, before = state
        end = self.offsets[group]
        while number >= before + self.tiles(end - start):
            before += self.tiles(end - start)
            group, start = group + 1, end
            end = self.offsets[group]
        down = fx.ceildiv(end - start, self.plan.rows)
        row, column = banded(number - before, down, self.across, self.plan)
        made = Place(0, 0, group, start + row, column, 0, self.steps, end)
        return made, (group, start, before)


def banded(number, down, across, plan):
    """The row and the column of a tile of `down` × `across`, in columns of a few rows."""
    band, inside = divmod(number, plan.band * across)
    column, row = divmod(inside, fx.min(down - band * plan.band, plan.band))
    return (band * plan.band + row) * plan.rows, column * plan.columns


@fly.kernel
def warpgroup_gemm_kernel(
    A,
    B,
    C,
    rows: fx.Tensor,
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
    offsets=None,
):
    element = EVERY[plan.element]
    tiles_a = fx.nvvm.SharedTiles(element, tiles(plan, plan.rows, plan.a_along_k), plan.stages)
    tiles_b = fx.nvvm.SharedTiles(element, tiles(plan, plan.columns, plan.b_along_k), plan.stages)
    buffers = fx.nvvm.SharedTiles(EVERY[plan.out], chunks(plan), 2 * GROUPS)
    ring = fx.nvvm.Pipeline(plan.stages, consumers=GROUPS)
    group, thread = fx.nvvm.warp_group_index(), fx.thread_idx.x % THREADS
    extents = batches, m, n, k
    schedule = Schedule(extents, plan) if offsets is None else Groups(offsets, extents, plan)
    state = schedule.start
    count = fx.Int32(0)  # of the ring's buffers so far

    if group == 0:
        fx.nvvm.set_registers(FEW, more=False)
        if thread == 0:
            for tile in range(fx.block_idx.x, schedule.count, fx.grid_dim.x):
                place, state = schedule.place(tile, state)
                for step in range(place.first, place.last):
                    slot = ring.fill(count, A.nbytes + B.nbytes)
                    of_a = place.of_a, place.row, step * plan.depth
                    of_b = place.of_b, place.column, step * plan.depth
                    fx.nvvm.tma_load(A, of_a, tiles_a[slot.stage], slot.barrier)
                    fx.nvvm.tma_load(B, of_b, tiles_b[slot.stage], slot.barrier)
                    count += 1
    else:
        fx.nvvm.set_registers(MANY, more=True)
        consumer = group - 1
        product = products(plan, plan.width, GROUPS // plan.beside, plan.beside)
        # What is in shared memory is the same for all threads of a group.
        own = product.get_slice(consumer * THREADS)
        sums = fx.make_rmem_tensor(fx.nvvm.accumulators(product), fx.Float32)
        for tile in range(fx.block_idx.x, schedule.count, fx.grid_dim.x):
            place, state = schedule.place(tile, state)
            if plan.grouped and place.row + consumer * plan.above >= place.end:
                # The rows are another group's. The other warp group's are multiplied faster then.
                for _ in range(place.first, place.last):
                    ring.wait(count)
                    if thread == 0:
                        ring.release(count)
                    count += 1
            else:
                sums.fill(0)
                for step in range(place.first, place.last):
                    slot = ring.wait(count)
                    a, b = tiles_a[slot.stage], tiles_b[slot.stage]
                    fx.nvvm.wgmma_fence()
                    fx.gemm(product, sums, own.partition_A(a), own.partition_B(b), sums)
                    fx.nvvm.wgmma_commit()
                    fx.nvvm.wgmma_wait(1, sums)  # the step before this one has been multiplied
                    if thread == 0 and step > place.first:
                        ring.release(count - 1)
                    count += 1
                fx.nvvm.wgmma_wait(0, sums)
                if thread == 0:
                    ring.release(count - 1)
                output = Output(
                    C, rows, bias, addend, (alpha, beta), (place.end, n), plan, epilogue
                )
                output.store(sums, buffers, consumer, place)
        if plan.tma_store and thread == 0:
            fx.nvvm.tma_wait(0)


class Output:
    """A warp group's part in storing a tile of C."""

    def __init__(self, C, rows, bias, addend, factors, extents, plan, epilogue):
        """C: what TMA stores to. rows: C as a tensor. extents: the end of C's rows and columns."""
        self.C, self.rows, self.bias, self.addend = C, rows, bias, addend
        self.factors, self.extents = factors, extents
        self.plan, self.epilogue = plan, epilogue

    def store(self, sums, buffers, consumer, place):
        """Applies the epilogue to what a warp group has of a tile, and stores it through shared
        memory, 64 rows and a few columns at a time, in two buffers in turn."""
        plan, thread = self.plan, fx.thread_idx.x % THREADS
        row, column = place.row, place.column
        out = EVERY[plan.out]
        product = products(plan, plan.chunk)
        form = fx.nvvm.accumulators(product)
        atom = fx.make_copy_atom(
            fx.nvvm.StoreMatrix(4) if out.bits == 16 else fx.UniversalCopy64b(), out
        )
        write = fx.make_tiled_copy_C(atom, product).get_slice(thread)
        column += consumer * (plan.width if plan.beside > 1 else 0)
        row += consumer * plan.above
        # TMA stores rows up to the end of C, which may be behind that of a group.
        by_tma = plan.tma_store and (not plan.grouped or row + ROWS <= place.end)
        for piece in fx.range_constexpr(plan.pieces):
            buffer, first = buffers[consumer * 2 + piece % 2], column + piece * plan.chunk
            some = fx.make_view(fx.get_iter(sums) + piece * int(fx.size(form)), form)
            held = fx.make_fragment_like(some, out)
            held.store(self.results(some, product, place.of_a, row, first))
            if plan.tma_store and thread == 0:
                fx.nvvm.tma_wait(1)  # the other buffer may still be read
            fx.nvvm.barrier_sync(consumer + 1, THREADS)
            fx.copy(atom, write.retile(held), write.partition_D(buffer))
            if plan.tma_store:
                fx.nvvm.fence_async()
            fx.nvvm.barrier_sync(consumer + 1, THREADS)
            if by_tma:
                if thread == 0:
                    fx.nvvm.tma_store(buffer, self.C, (place.part, row, first))
            else:
                self.store_vectors(buffer, place.part, row, first)
            if plan.tma_store and thread == 0:
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

    def store_vectors(self, buffer, part, row, column):
        """Stores what is in a buffer as far as it is in C: by vectors, or if rows of C are not
        aligned, by elements."""
        plan, dtype = self.plan, EVERY[self.plan.out]
        unit = ALIGNMENT // dtype.bytes if plan.tma_store else 1
        atom = fx.make_copy_atom(fx.UniversalCopy(unit * dtype.bits), dtype)
        across = plan.chunk // unit
        line, place = divmod(fx.thread_idx.x % THREADS, across)
        x = column + place * unit
        for y in fx.range_constexpr(0, ROWS, THREADS // across):
            source = fx.get_iter(buffer) + ((y + line) * plan.chunk + place * unit)
            if row + y + line < self.extents[0] and x < self.extents[1]:
                target = element(self.rows, part, row + y + line, x)
                form = fx.make_layout(unit, 1)
                fx.copy(atom, fx.make_view(source, form), fx.make_view(target, form))


def maps(A, B, plan):
    """The tensor maps of operands, which are copied first if TMA could not copy their tiles."""
    return [
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
    target = fx.nvvm.tensor_map(C, chunks(plan)) if plan.tma_store else C
    count = batches * plan.splits * fx.ceildiv(m, plan.rows) * fx.ceildiv(n, plan.columns)
    own = epilogue if whole else Epilogue(plan.out, 1)
    warpgroup_gemm_kernel(
        *maps(A, B, plan), target, C, bias, addend, alpha, beta, batches, m, n, k, plan, own
    ).launch(grid=fx.min(count, plan.blocks), block=(1 + GROUPS) * THREADS)
    if whole:
        return C
    return add_parts(C, (batches, m, n), bias, addend, alpha, beta, plan, epilogue)


@fly.jit
def grouped_warpgroup_gemm(
    A: fx.Tensor[fx.Numeric, 1, fx.sym_int32("M"), fx.sym_int32("K")],
    B: fx.Tensor[fx.Numeric, "G", fx.sym_int32("K"), fx.sym_int32("N")],
    offsets: fx.Tensor[fx.Int32, "G"],
    plan: fx.Constexpr[WarpgroupPlan],
    epilogue: fx.Constexpr[Epilogue],
):
    """epilogue(A·B) of groups of rows; as `grouped_gemm.grouped_gemm`."""
    m, k, groups, n = A.shape[1], A.shape[2], B.shape[0], B.shape[2]
    C = fx.empty((1, m, n), EVERY[plan.out])
    target = fx.nvvm.tensor_map(C, chunks(plan)) if plan.tma_store else C
    # Each group has at most one tile that is not full.
    count = (m // plan.rows + groups) * fx.ceildiv(n, plan.columns)
    warpgroup_gemm_kernel(
        *maps(A, B, plan), target, C, A, A, 1.0, 1.0, groups, m, n, k, plan, epilogue, offsets
    ).launch(grid=fx.min(count, plan.blocks), block=(1 + GROUPS) * THREADS)
    return C
