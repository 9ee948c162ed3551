"""A block's tiles of an operand, and matrices of them in registers, for products by warps."""

from __future__ import annotations

import fly.expr as fx
from fly.kernels.gemm.warpgroups.warpgroup_plans import ROW
from fly.kernels.gemm.warps.warp_plans import PIECE, THREADS

ACROSS = ROW // PIECE  # threads that copy a row
LINES = THREADS // ACROSS  # rows that a block copies at a time


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
