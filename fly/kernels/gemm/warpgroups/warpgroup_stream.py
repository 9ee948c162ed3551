"""Tiles of products of warp groups that several blocks compute parts of: stream-K.

A block that has the beginning or the middle of a tile's steps along K gives its sums to the block
that has the end, through global memory. That one waits for it, adds the sums in a fixed order, and
stores the tile. It waits for blocks with lower numbers only, which the device starts no later.

Source: Osama et al., "Stream-K: Work-Centric Parallel Decomposition for Dense Matrix-Matrix
Multiplication on the GPU" (PPoPP 2023).
"""

from __future__ import annotations

import fly
import fly.expr as fx
from fly.kernels import dependent
from fly.kernels.gemm.warpgroups.warpgroup_parts import VECTOR, wide
from fly.kernels.gemm.warpgroups.warpgroup_plans import GROUPS, THREADS
from fly.kernels.gemm.warpgroups.warpgroup_schedule import Groups, Place, Schedule, of_cluster

LEAST = 8  # steps along K that a block takes of tiles that are divided
CLEARED = 256  # threads


class Stream(Schedule):
    """As `Schedule`, but for the last tiles, more than one for each cluster and less than two, or
    if there are fewer tiles than clusters, all of them: their steps are divided evenly among the
    clusters. Where there are more than one for each, no tile has more than two parts. A cluster's
    part is of the end of a tile, perhaps a whole one, and the beginning of the next, which it does
    first: the block that has the end waits for others.

    Source: Osama et al., section 5.3, "two-tile stream-K + data-parallel"."""

    def __init__(self, extents, plan):
        super().__init__(extents, plan)
        clusters = self.clusters = fx.grid_dim.x // plan.cluster
        own = fx.cluster.idx.x
        waves, rest = divmod(self.count, clusters)
        waves = fx.where(rest > 0, fx.max(waves - 1, 0), waves)
        rest = self.count - waves * clusters
        self.whole = waves * clusters
        total = fx.Int64(rest) * self.steps
        most = fx.Int64(clusters)
        takers = fx.max(fx.min(fx.Int64(rest), most), fx.min(most, total // LEAST))
        takers = fx.max(takers, fx.Int64(1))
        self.total, self.takers = total, takers
        first, last = own * total // takers, (own + 1) * total // takers
        some = (own < takers) & (first < last)
        self.first, self.last = first, last
        self.low = fx.Int32(first // self.steps)
        self.high = fx.where(some, fx.Int32((last - 1) // self.steps), self.low)
        self.segments = fx.where(some, self.high - self.low + 1, 0)
        # The numbers of a cluster's tiles end before this.
        self.turns = own, own + (waves + self.segments) * clusters, clusters

    def place(self, number, state):
        plan, steps = self.plan, self.steps
        is_whole = number < self.whole
        turn = (number - self.whole) // self.clusters  # the last one is the end of a tile
        divided = fx.where(turn == 0, self.high, self.low + 1)
        divided = fx.where(turn >= self.segments - 1, self.low, divided)
        begin = fx.Int64(divided) * steps
        first = fx.Int32(fx.max(self.first - begin, fx.Int64(0)))
        last = fx.Int32(fx.min(self.last - begin, fx.Int64(steps)))
        first, last = fx.where(is_whole, 0, first), fx.where(is_whole, steps, last)
        batch, tile = divmod(
            fx.where(is_whole, number, self.whole + divided), self.down * self.across
        )
        row, column = of_cluster(tile, self.down, self.across, plan)
        # The cluster that has the tile's first step.
        giver = fx.Int32(((begin + 1) * self.takers - 1) // fx.max(self.total, fx.Int64(1)))
        made = Place(batch, batch, batch, row, column, first, last, self.rows, giver=giver)
        return made, state


def schedule_of(extents, plan, offsets):
    """The order of the tiles of a plan; `offsets`: the ends of groups of rows, or None."""
    if plan.stream:
        return Stream(extents, plan)
    return Schedule(extents, plan) if offsets is None else Groups(offsets, extents, plan)


class Exchange:
    """How a warp group gives its sums to another block, and takes those of others. parts: room for
    a tile of f32 for each block. flags: for each block and warp group, whether it has given."""

    def __init__(self, parts, flags, consumer, plan):
        self.parts, self.flags, self.consumer, self.plan = parts, flags, consumer, plan

    def room(self, cluster, count):
        """The sums of this thread in a block's room, adjacent threads beside one another."""
        block = cluster * self.plan.cluster + fx.cluster.rank()
        thread = fx.thread_idx.x % THREADS
        start = (fx.Int64(block) * GROUPS + self.consumer) * (count * THREADS) + thread * VECTOR
        form = fx.make_layout((VECTOR, count // VECTOR), (1, VECTOR * THREADS))
        return fx.make_view(fx.get_iter(self.parts) + start, form)

    def flag(self, cluster):
        block = cluster * self.plan.cluster + fx.cluster.rank()
        return block * GROUPS + self.consumer

    def meet(self):
        fx.nvvm.barrier_sync(self.consumer + 1, THREADS)

    def finish(self, sums, place, steps, output, buffers):
        """Stores a tile, or gives the sums to the block that does. `steps`: those of a tile."""
        if place.last < steps:
            self.give(sums)
        else:
            if place.first > 0:
                self.take(sums, place.giver)
            output.store(sums, buffers, self.consumer, place)

    def give(self, sums):
        count = int(fx.size(sums))
        own = fx.make_view(
            fx.get_iter(sums), fx.make_layout((VECTOR, count // VECTOR), (1, VECTOR))
        )
        cluster = fx.cluster.idx.x
        fx.copy(wide(), own, self.room(cluster, count))
        self.meet()
        if fx.thread_idx.x % THREADS == 0:
            fx.memory_fence("release")
            fx.atomic_add(self.flags, self.flag(cluster), 1)

    def take(self, sums, giver):
        """Adds what the clusters from `giver` on, up to the own one, have given."""
        count = int(fx.size(sums))
        for cluster in range(giver, fx.cluster.idx.x):
            if fx.thread_idx.x % THREADS == 0:
                while fx.atomic_load(self.flags, self.flag(cluster), order="acquire") == 0:
                    fx.nvvm.nanosleep(50)
            self.meet()
            room = self.room(cluster, count)
            # A few registers at a time: the sums take most of them.
            for first in fx.range_constexpr(0, count // VECTOR, 4):
                held = fx.make_rmem_tensor(fx.make_layout((VECTOR, 4), (1, VECTOR)), fx.Float32)
                some = fx.make_layout((VECTOR, 4), (1, VECTOR * THREADS))
                at = fx.get_iter(room) + first * VECTOR * THREADS
                fx.copy(wide(), fx.make_view(at, some), held)
                mine = fx.make_view(fx.get_iter(sums) + first * VECTOR, fx.get_layout(held))
                mine.store(mine.load() + held.load())


@fly.kernel
def clear_kernel(flags: fx.Tensor, count: fx.Int32):
    dependent.let_next_begin()
    for i in range(fx.thread_idx.x, count, CLEARED):
        flags[i] = fx.Int32(0)


def rooms(plan):
    """parts and flags of an `Exchange`, in a host function."""
    parts = fx.empty((plan.blocks, plan.rows * plan.columns), fx.Float32)
    flags = fx.empty((plan.blocks * GROUPS,), fx.Int32)
    clear_kernel(flags, plan.blocks * GROUPS).launch(grid=1, block=CLEARED)
    return parts, flags
