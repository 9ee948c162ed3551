"""The product of warps, and how they store tiles of C: the epilogue, shared memory, vectors."""

from __future__ import annotations

from fly_trace.values.dtypes import EVERY

import fly.expr as fx
from fly.kernels.gemm.warpgroups.warpgroup_operands import element
from fly.kernels.gemm.warps.warp_plans import PIECE, WARPS

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
