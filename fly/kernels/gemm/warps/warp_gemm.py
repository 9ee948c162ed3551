"""Products of matrices by warps: `cp.async`, `ldmatrix` and `mma.sync` (sm_80 and later).

A block of eight warps has a tile of C, a warp an eighth of it in registers. Threads copy tiles of A
and B, 128 bytes of K each, to a ring of buffers in shared memory, several steps ahead. Warps load
matrices of the next 32 bytes of K while those before are multiplied. C is stored through shared
memory, 16 rows of a warp at a time, as whole vectors.
"""

from __future__ import annotations

from fly_trace.values.dtypes import EVERY

import fly
import fly.expr as fx
from fly.kernels.gemm.epilogue import Epilogue
from fly.kernels.gemm.warpgroup_operands import add_parts, element, operand
from fly.kernels.gemm.warpgroup_plans import ROW
from fly.kernels.gemm.warpgroup_schedule import banded
from fly.kernels.gemm.warps.warp_plans import THREADS, WARPS, WarpPlan

PIECE = 16  # bytes that a thread copies at a time
ACROSS = ROW // PIECE  # threads that copy a row
LINES = THREADS // ACROSS  # rows that a block copies at a time
ROWS = 16  # of a matrix instruction, which are stored together


def tiled_product(plan, warps=WARPS, rows=None, columns=None):
    """The product of warps, each of which has adjacent rows and columns."""
    sums = EVERY[plan.sum]
    atom = fx.make_mma_atom(fx.nvvm.MMA(ROWS, 8, plan.k, EVERY[plan.element], sums))
    down, across = (rows or plan.rows) // warps[0], (columns or plan.columns) // warps[1]
    order = fx.make_tile(
        fx.make_layout((ROWS, warps[0], down // ROWS), (1, down, ROWS)),
        fx.make_layout((8, warps[1], across // 8), (1, across, 8)),
        None,
    )
    return fx.make_tiled_mma(atom, fx.make_layout((*warps, 1), (1, warps[0], 0)), order)


class Operand:
    """A block's tiles of an operand, and a thread's part in copying them.

    A tile in shared memory has rows of 128 bytes along K, whose groups of 16 bytes are permuted by
    the row, so that a matrix is in all banks. Where threads have something in a tile is computed
    once: neither the stage nor eight rows more change the permutation.
    """

    def __init__(self, X, batch, first, rows, plan):
        """X: batches × rows × K. first: the tile's first row."""
        self.plan, self.last, self.size = plan, X.shape[2], rows * plan.depth
        self.unit = PIECE // X.dtype.bytes
        self.form = fx.make_layout(self.unit, 1)
        plain = fx.make_layout((rows, plan.depth), (plan.depth, 1))
        self.base = fx.nvvm.SharedTiles(X.dtype, plain, plan.stages).base
        self.wide = fx.make_copy_atom(fx.nvvm.CpAsync(8 * PIECE), X.dtype)
        self.row, place = divmod(fx.thread_idx.x, ACROSS)
        self.column = place * self.unit
        self.target = self.base + self.place(self.row, place)
        self.count = rows // LINES
        self.offsets = fx.make_rmem_tensor(self.count, fx.Int64)
        for i in fx.range_constexpr(self.count):
            # Rows beyond the matrix are not stored in the end, so any row is copied for them.
            row = fx.min(first + self.row + i * LINES, X.shape[1] - 1)
            self.offsets[i] = fx.Int64(row) * X.stride[1] + self.column
        self.start = fx.get_iter(X) + fx.Int64(batch) * X.stride[0]

    def place(self, row, group):
        """Where a group of 16 bytes of a row is in a tile, in elements."""
        return row * self.plan.depth + (group ^ row % ACROSS) * self.unit

    def copy(self, step, stage):
        """Starts to copy a tile; what lies beyond K is 0."""
        source, target = self.start + step * self.plan.depth, self.target + stage * self.size
        inside = step * self.plan.depth + self.column < self.last
        if fx.const_expr(self.plan.whole):
            inside = True
        if inside:
            for i in fx.range_constexpr(self.count):
                piece = fx.make_view(source + self.offsets[i], self.form)
                fx.copy(self.wide, piece, self.piece(target, i))
        else:
            zeros = fx.make_rmem_tensor(self.unit, self.base.dtype)
            zeros.fill(0)
            for i in fx.range_constexpr(self.count):
                fx.copy(
                    fx.make_copy_atom(fx.UniversalCopy128b(), zeros.dtype),
                    zeros,
                    self.piece(target, i),
                )

    def piece(self, target, number):
        return fx.make_view(target + number * LINES * self.plan.depth, self.form)


class Matrices:
    """A thread's part of an operand in registers, in two sets that take turns."""

    def __init__(self, operand, product, is_a, rows, plan):
        self.operand = operand
        self.atom = fx.make_copy_atom(fx.nvvm.LoadMatrix(4), operand.base.dtype)
        make = fx.make_tiled_copy_A if is_a else fx.make_tiled_copy_B
        read = make(self.atom, product).get_slice(fx.thread_idx.x)
        own = product.get_slice(fx.thread_idx.x)
        whole = fx.make_view((0, 0), fx.make_identity_layout((rows, plan.k)))
        places = read.partition_S(whole)[(0, None), None, None]
        part = fx.make_view(operand.base, fx.make_layout((rows, plan.k), (plan.depth, 1)))
        make = own.make_fragment_A if is_a else own.make_fragment_B
        self.sets = [make(part), make(part)]
        self.targets = [read.retile(one) for one in self.sets]
        # Rows of a thread's matrices are the same but for multiples of eight.
        row, column = places[0].unpack()
        groups, unit = plan.k // operand.unit, operand.unit
        self.first = fx.make_rmem_tensor(plan.depth // plan.k, fx.Int32)
        for part in fx.range_constexpr(plan.depth // plan.k):
            self.first[part] = operand.place(row, part * groups + column // unit)
        self.offsets = fx.make_fragment_like(places, fx.Int32)
        for i in fx.range_constexpr(fx.size(places)):
            self.offsets[i] = (places[i].unpack()[0] - row) * plan.depth

    def load(self, stage, part):
        """Loads a part along K of a tile."""
        start = self.operand.base + (stage * self.operand.size + self.first[part])
        fx.gather(self.atom, start, self.offsets, self.targets[part % 2])


@fly.kernel
def warp_gemm_kernel(
    A: fx.Tensor,
    B: fx.Tensor,
    C: fx.Tensor,
    bias: fx.Tensor,
    addend: fx.Tensor,
    alpha: fx.Float64,
    beta: fx.Float64,
    n: fx.Int32,
    plan: fx.Constexpr[WarpPlan],
    epilogue: fx.Constexpr[Epilogue],
):
    m, k = A.shape[1], A.shape[2]
    part, number = fx.block_idx.y, fx.block_idx.x
    down, across = fx.ceildiv(m, plan.rows), fx.ceildiv(n, plan.columns)
    row, column = banded(number, down, across, plan)
    batch, piece = divmod(part, plan.splits)
    a = Operand(A, batch, row, plan.rows, plan)
    b = Operand(B, batch, column, plan.columns, plan)
    steps = fx.ceildiv(k, plan.depth)
    each = fx.ceildiv(steps, plan.splits)
    first, last = piece * each, fx.min((piece + 1) * each, steps)
    product = tiled_product(plan)
    own_a = Matrices(a, product, True, plan.rows, plan)
    own_b = Matrices(b, product, False, plan.columns, plan)
    tile = fx.make_view((0, 0), fx.make_identity_layout((plan.rows, plan.columns)))
    sums = product.get_slice(fx.thread_idx.x).partition_C(tile)
    sums = fx.make_fragment_like(sums, EVERY[plan.sum])
    sums.fill(0)
    for ahead in fx.range_constexpr(plan.stages - 1):
        if first + ahead < last:
            a.copy(first + ahead, ahead)
            b.copy(first + ahead, ahead)
        fx.nvvm.cp_async_commit()
    fx.nvvm.cp_async_wait(plan.stages - 2)
    fx.barrier()
    stage = fx.Int32(0)
    parts = plan.depth // plan.k
    own_a.load(stage, 0)
    own_b.load(stage, 0)
    for step in range(first, last):
        ahead = step + plan.stages - 1
        free = fx.where(stage == 0, plan.stages - 1, stage - 1)  # multiplied in the step before
        for number in fx.range_constexpr(parts):
            if fx.const_expr(number == parts - 1):
                fx.nvvm.cp_async_wait(plan.stages - 2)
                fx.barrier()
                following = fx.where(stage == plan.stages - 1, 0, stage + 1)
                stage = fx.where(step + 1 < last, following, stage)
            own_a.load(stage, (number + 1) % parts)
            own_b.load(stage, (number + 1) % parts)
            if fx.const_expr(number == 0):
                if ahead < last:
                    a.copy(ahead, free)
                    b.copy(ahead, free)
                fx.nvvm.cp_async_commit()
            fx.gemm(product, sums, own_a.sets[number % 2], own_b.sets[number % 2], sums)
    fx.nvvm.cp_async_wait(0)
    fx.barrier()
    added, extents = (bias, addend, alpha, beta), (m, n)
    store(sums, C, b.base, (part, batch, row, column), extents, added, plan, epilogue)


def store(sums, C, buffer, place, extents, added, plan, epilogue):
    """Applies the epilogue, and stores a warp's sums by 16 rows."""
    part, batch, row, column = place
    out, lane, warp = EVERY[plan.out], fx.thread_idx.x % 32, fx.thread_idx.x // 32
    height, width = plan.rows // WARPS[0], plan.columns // WARPS[1]
    row += warp % WARPS[0] * height
    column += warp // WARPS[0] * width
    unit = PIECE // out.bytes
    pitch = width + unit  # so that lanes use different banks
    start = fx.recast_iter(out, buffer) + warp * (ROWS * pitch)
    tile = fx.make_view(start, fx.make_layout((ROWS, width), (pitch, 1)))
    product = tiled_product(plan, (1, 1), ROWS, width)
    pair = fx.make_copy_atom(fx.UniversalCopy(2 * out.bits), out)
    write = fx.make_tiled_copy_C(pair, product).get_slice(lane)
    vector = unit if plan.vectors else 1
    atom = fx.make_copy_atom(fx.UniversalCopy(vector * out.bits), out)
    form, beside = fx.make_layout(vector, 1), width // vector
    for block in fx.range_constexpr(height // ROWS):
        some = fx.make_rmem_tensor(fx.nvvm.accumulators(product), sums.dtype)
        some.store(sums[None, block, None].load())
        held = fx.make_fragment_like(some, out)
        top = row + block * ROWS
        places = fx.make_view((top, column), fx.make_identity_layout((ROWS, width)))
        places = product.get_slice(lane).partition_C(places)
        given = operands(places, some.layout, batch, added, extents, epilogue)
        held.store(epilogue.apply(some.load(), *given, *added[2:]))
        fx.copy(pair, write.retile(held), write.partition_D(tile))
        fx.nvvm.syncwarp()
        for piece in fx.range_constexpr(ROWS * width // (32 * vector)):
            y, x = divmod(piece * 32 + lane, beside)
            x *= vector
            if (top + y < extents[0]) & (column + x < extents[1]):
                source = fx.make_view(start + (y * pitch + x), form)
                target = fx.make_view(element(C, part, top + y, column + x), form)
                fx.copy(atom, source, target)
        fx.nvvm.syncwarp()


def operands(places, layout, batch, added, extents, epilogue):
    """What the epilogue adds to a thread's sums, which lie in registers as `layout` says: of the
    bias and of the addend, or None."""
    found = [None, None]
    for kind, is_used in enumerate((epilogue.bias, epilogue.addend)):
        if is_used:
            source = added[kind]
            loaded = fx.make_rmem_tensor(layout, source.dtype)
            for i in fx.range_constexpr(fx.size(loaded)):
                place = places[i].unpack()
                y, x = [fx.min(at, most - 1) for at, most in zip(place, extents, strict=True)]
                loaded[i] = source[batch, y, x] if kind else source[x]
            found[kind] = loaded.load()
    return found


@fly.jit
def warp_gemm(
    A: fx.Tensor[fx.Numeric, "B", fx.sym_int32("M"), fx.sym_int32("K")],
    B: fx.Tensor[fx.Numeric, "B", fx.sym_int32("K"), fx.sym_int32("N")],
    bias: fx.Tensor,
    addend: fx.Tensor,
    alpha: fx.Float64,
    beta: fx.Float64,
    plan: fx.Constexpr[WarpPlan],
    epilogue: fx.Constexpr[Epilogue],
):
    """epilogue(A·B) for batches of matrices; as `batched_gemm.gemm`."""
    batches, m, n = A.shape[0], A.shape[1], B.shape[2]
    C = fx.empty((batches * plan.splits, m, n), EVERY[plan.out])
    own = epilogue if plan.splits == 1 else Epilogue(plan.out, 1)
    count = fx.ceildiv(m, plan.rows) * fx.ceildiv(n, plan.columns)
    given = operand(A, 1, True, plan.pad_a), operand(B, 2, True, plan.pad_b)
    warp_gemm_kernel(*given, C, bias, addend, alpha, beta, n, plan, own).launch(
        grid=(count, batches * plan.splits), block=THREADS
    )
    if plan.splits == 1:
        return C
    return add_parts(C, (batches, m, n), bias, addend, alpha, beta, plan, epilogue)
