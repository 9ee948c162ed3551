"""What is done to operands before products of warp groups, and to their parts behind."""

from __future__ import annotations

from fly_trace.values.dtypes import EVERY

import fly
import fly.expr as fx
from fly.kernels import dependent
from fly.kernels.gemm.epilogue import Epilogue
from fly.kernels.gemm.warpgroups.warpgroup_plans import ALIGNMENT, SUMMED, WarpgroupPlan

PADDED = 256  # threads that copy a row


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
    dependent.wait_for_previous()
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
    behind the end of a row is 0."""
    dependent.let_next_begin()
    batch, row = fx.block_idx.z, fx.block_idx.x
    first = (fx.block_idx.y * PADDED + fx.thread_idx.x) * unit
    held, zero = fx.make_rmem_tensor(unit, X.dtype), X.dtype(0)
    if first < Y.shape[2]:
        for i in fx.range_constexpr(unit):
            loaded = X[batch, row, fx.min(first + i, X.shape[2] - 1)]
            held[i] = fx.where(first + i < X.shape[2], loaded, zero)
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


def add_parts(C, shape, bias, addend, alpha, beta, plan, epilogue):
    """The results of parts of sums, in a host function. shape: of the results."""
    batches, m, n = shape
    D = fx.empty(shape, EVERY[epilogue.out])
    across = SUMMED // plan.lines * plan.unit
    sum_kernel(C, D, bias, addend, alpha, beta, plan, epilogue).launch(
        grid=(fx.ceildiv(m, plan.lines), fx.ceildiv(n, across), batches), block=SUMMED
    )
    return D
