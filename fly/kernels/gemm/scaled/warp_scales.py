"""The scales of the products of a warp, brought to shared memory ahead of their use."""

from __future__ import annotations

import math

import fly.expr as fx
from fly.kernels.gemm.scaled.scaled_gemm import BLOCK
from fly.kernels.gemm.warpgroups.warpgroup_plans import GROUPS, ROWS, THREADS

LANES, WARPS = 32, THREADS // 32
LINES = ROWS // WARPS  # rows of C that a warp has
SLOTS, AHEAD = 4, 3  # steps of which scales have room; steps that they are copied ahead
WIDTH = 20  # numbers of a slot: a warp's rows, and groups of columns


class WarpScales:
    """The scales of a warp's products: of its 16 rows of A, and of its columns of B, by groups of
    columns that share one. Each lane copies at most one of a step, by `cp.async`, to a ring of the
    warp's own: a load takes longer than a step.

    count: a number of the step, which goes on from tile to tile, for the place in the ring.
    """

    def __init__(self, of_a, of_b, consumer, plan):
        self.of_a, self.of_b, self.consumer, self.plan = of_a, of_b, consumer, plan
        self.group = math.gcd(BLOCK, plan.columns, plan.width)
        self.groups = plan.width // self.group
        assert LINES + self.groups <= WIDTH
        held = fx.shared_array(fx.Float32, GROUPS * WARPS * SLOTS * WIDTH)
        warp, self.lane = divmod(fx.thread_idx.x % THREADS, LANES)
        self.held = fx.get_iter(held) + (consumer * WARPS + warp) * (SLOTS * WIDTH)
        # The lane's row of the tile, or the first column of its group.
        self.has_row = self.lane < LINES
        self.row = warp * LINES + self.lane
        self.column = (self.lane - LINES) * self.group
        if plan.beside == 1:
            self.row += consumer * ROWS
        else:
            self.column += consumer * plan.width
        self.has_scale = self.lane < LINES + self.groups
        base = fx.get_iter(of_a)
        if not self.has_row:
            base = fx.get_iter(of_b)
        self.base = base
        self.stride = fx.where(self.has_row, fx.Int64(of_a.stride[2]), fx.Int64(of_b.stride[1]))

    def tile(self, place):
        """Where the lane's scale of a tile's step 0 is, beside the first one of its tensor."""
        batches, rows, columns = self.of_a.shape[0], self.of_a.shape[1], self.of_b.shape[2]
        row = fx.min(place.row + self.row, rows - 1)
        block = fx.max(fx.min((place.column + self.column) // BLOCK, columns - 1), 0)
        batch = fx.Int64(fx.min(place.of_a, batches - 1))
        of_row = batch * self.of_a.stride[0] + fx.Int64(row) * self.of_a.stride[1]
        return fx.where(self.has_row, of_row, fx.Int64(block) * self.of_b.stride[2])

    def begin(self, at, place, count):
        """Copies the scales of a tile's first steps. `at`: see `tile`."""
        for ahead in fx.range_constexpr(AHEAD):
            self.copy(at, place.first + ahead, place.last, count + ahead)

    def copy(self, at, step, last, count):
        """A group of copies, for one step; of none if there is no such step."""
        if (step < last) & self.has_scale:
            source = self.base + (at + fx.Int64(step) * self.stride)
            one, atom = fx.make_layout(1, 1), fx.make_copy_atom(fx.nvvm.CpAsync(32), fx.Float32)
            to = self.slot(count) + self.lane
            fx.copy(atom, fx.make_view(source, one), fx.make_view(to, one))
        fx.nvvm.cp_async_commit()

    def slot(self, count):
        return self.held + count % SLOTS * WIDTH

    def take(self, at, step, place, count):
        """The factors of the thread's two rows, for each group of columns, of a step; starts to
        copy those of a later one."""
        fx.nvvm.cp_async_wait(AHEAD - 1)
        fx.nvvm.syncwarp()
        slot = fx.make_view(self.slot(count), fx.make_layout(WIDTH, 1))
        # Of wgmma's sums, a thread has columns of two rows.
        rows = [slot[self.lane // 4 + below] for below in (0, LINES // 2)]
        columns = [slot[LINES + group] for group in range(self.groups)]
        # All lanes have read the slot before the one of this step.
        self.copy(at, step + AHEAD, place.last, count + AHEAD)
        return [[row * column for row in rows] for column in columns]

    def end(self):
        """No copy outlasts the kernel."""
        fx.nvvm.cp_async_wait(0)
