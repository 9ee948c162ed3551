"""The order in which blocks take the tiles of products of warp groups."""

from __future__ import annotations

from typing import Any, NamedTuple

import fly.expr as fx
from fly.kernels.gemm.warpgroups.warpgroup_plans import PART_STEPS


class Place(NamedTuple):
    """Where a tile of C is: its part, the matrices of A and of B, its row and column, its steps
    along K, and the end of the rows that belong to C. slot: where the sums of these steps are kept
    until others are added, or less than 0 for all steps of a tile. giver: the first cluster that
    has some of the tile's steps, where several may have."""

    part: Any
    of_a: Any
    of_b: Any
    row: Any
    column: Any
    first: Any
    last: Any
    end: Any
    slot: Any = None
    giver: Any = None


class Schedule:
    """The tiles of C, in the order in which blocks take them, and a tile's part of K."""

    start = ()

    def __init__(self, extents, plan):
        batches, m, n, k = extents
        self.plan, self.rows = plan, m
        self.down = fx.ceildiv(m, plan.rows * plan.cluster)
        self.across = fx.ceildiv(n, plan.columns)
        self.count = batches * plan.splits * self.down * self.across
        self.steps = fx.ceildiv(k, plan.depth)
        self.turns = fx.cluster.idx.x, self.count, fx.grid_dim.x // plan.cluster

    def place(self, number, state):
        """Of a tile of the cluster, by its number, the block's part; `state` is that of the block's
        tile before, or `start`."""
        plan = self.plan
        part, number = divmod(number, self.down * self.across)
        each = fx.ceildiv(self.steps, plan.splits)
        first = part % plan.splits * each
        last = fx.min(first + each, self.steps)
        row, column = of_cluster(number, self.down, self.across, plan)
        batch = part // plan.splits
        return Place(part, batch, batch, row, column, first, last, self.rows), state


class Groups:
    """The tiles of groups of rows, as `Schedule`. `offsets` are the ends of groups, each of which
    is multiplied by its own matrix of B.

    Blocks take whole tiles in turn, one each. What is left for the last turn has fewer tiles than
    there are blocks: their steps along K, one tile after the other, are divided into equal parts,
    one for each block, if that takes less time. A part has steps of one tile or of two.
    """

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
        self.whole, self.left = tiles // plan.blocks, tiles % plan.blocks
        each = self.steps
        if plan.least:
            fewer = fx.max(fx.ceildiv(self.left * self.steps, plan.blocks), plan.least)
            each = fx.where(fewer + PART_STEPS <= self.steps, fewer, each)
        self.each, self.is_divided = each, each < self.steps
        # The block's part of what is left.
        self.first = fx.block_idx.x * each
        self.last = fx.min(self.first + each, self.left * self.steps)
        second = self.last > (self.first // self.steps + 1) * self.steps
        more = (self.first < self.last).to(fx.Int32) + second.to(fx.Int32)
        self.turns = fx.Int32(0), self.whole + more, fx.Int32(1)

    def tiles(self, rows):
        """The tiles of so many rows."""
        return fx.ceildiv(rows, self.plan.rows) * self.across

    def place(self, turn, state):
        """Of what a block takes in a turn."""
        one = turn - self.whole  # of the block's part: 0 or 1
        left = self.first // self.steps + one
        first = fx.where(one == 0, self.first - left * self.steps, 0)
        last = fx.min(self.last - left * self.steps, self.steps)
        is_part = one >= 0
        number = fx.where(
            is_part,
            self.whole * self.plan.blocks + left,
            turn * self.plan.blocks + fx.block_idx.x,
        )
        slot = fx.where(is_part & self.is_divided, 2 * fx.block_idx.x + one, -1)
        first, last = fx.where(is_part, first, 0), fx.where(is_part, last, self.steps)
        return self.tile(number, state, first, last, slot)

    def tile(self, number, state, first, last, slot):
        """Steps of a tile by its number."""
        group, start, before = state
        end = self.offsets[group]
        while number >= before + self.tiles(end - start):
            before += self.tiles(end - start)
            group, start = group + 1, end
            end = self.offsets[group]
        down = fx.ceildiv(end - start, self.plan.rows)
        row, column = of_cluster(number - before, down, self.across, self.plan)
        made = Place(0, 0, group, start + row, column, first, last, end, slot)
        return made, (group, start, before)

    def slots(self, left):
        """Where the first and the last part of a tile are that is left for the last turn: the
        block, and a function of a block that tells its slot."""
        first = left * self.steps // self.each
        last = ((left + 1) * self.steps - 1) // self.each
        return (
            first,
            last,
            lambda block: 2 * block + (block * self.each // self.steps < left).to(fx.Int32),
        )


def of_cluster(number, down, across, plan):
    """As `banded`, of the tiles of clusters: those of a cluster's blocks are below one another."""
    row, column = banded(number, down, across, plan)
    return row * plan.cluster + fx.cluster.rank() * plan.rows, column


def banded(number, down, across, plan):
    """The row and the column of a tile of `down` × `across`, in columns of a few rows."""
    band, inside = divmod(number, plan.band * across)
    column, row = divmod(inside, fx.min(down - band * plan.band, plan.band))
    return (band * plan.band + row) * plan.rows, column * plan.columns
