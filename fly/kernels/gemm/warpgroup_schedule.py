"""The order in which blocks take the tiles of products of warp groups."""

from __future__ import annotations

from typing import Any, NamedTuple

import fly.expr as fx


class Place(NamedTuple):
    """Where a tile of C is: its part, the matrices of A and of B, its row and column, its steps
    along K, and the end of the rows that belong to C. giver: the first cluster that has some of the
    tile's steps, where several may have."""

    part: Any
    of_a: Any
    of_b: Any
    row: Any
    column: Any
    first: Any
    last: Any
    end: Any
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

    def place(self, number, state):
        """Of a tile of the cluster, by its number, the block's part; `state` is that of the block's
        tile before, or `start`."""
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
    row = (band * plan.band + row) * plan.cluster + fx.cluster.rank()
    return row * plan.rows, column * plan.columns
