"""Rows that a block takes one after the other, and reads ahead to shared memory by `cp.async`.

A block that reads a row and then computes on it leaves the memory idle meanwhile, unless other
blocks of the multiprocessor read theirs. Rows that take much of its registers, or of its shared
memory, leave room for few such blocks. Here rows are asked for before the one at hand is computed:

    def normalize(row, _):
        ...

    each_row(plan, X.shape, normalize, X)

A thread copies those elements that it reads itself, so that no thread waits for another one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fly.expr as fx
from fly.kernels.rowwise.row_exchanges import Exchange, first_row
from fly.kernels.rowwise.row_plans import Plan
from fly.kernels.rowwise.row_tiles import Tile
from fly.kernels.rowwise.rows import Row


class Ahead:
    """The rows that a block has in shared memory: `ahead` of each of some matrices."""

    def __init__(self, plan: Plan, shape: Any, tensors: tuple[Any, ...]):
        self.plan, (self.rows, self.columns), self.tensors = plan, shape, tensors
        self.extent = Row(plan, self.columns).extent
        count = plan.ahead * plan.room
        self.starts = [
            fx.SharedAllocator().allocate(fx.Array[one.dtype, count, 16]).peek().ptr
            for one in tensors
        ]

    def ask(self, slot: Any, index: Any) -> None:
        """Begins to copy row `index` to a slot, if there is one."""
        taken = Slot(self, slot, index)
        if self.plan.fits:
            taken.replace(0)
        else:
            for first in range(0, self.extent, self.plan.tile):
                taken.replace(first)
        taken.end()


class Slot:
    """A row in shared memory. `index` is the row of the matrices that is to replace it.

    Each tile's copies are a group, or if there are many tiles, those of all.
    """

    def __init__(self, ahead: Ahead, slot: Any, index: Any, before: int = 0):
        """before: the rows in other slots that have been asked for before this one."""
        self.ahead, self.slot, self.index, self.before = ahead, slot, index, before
        self.is_replaced, self.has_arrived = False, False
        self.committed = 0  # groups of the row that replaces this one, while this one arrives

    def place(self, tensor: Any) -> Any:
        """The address of a matrix's row; None if the matrix is not read ahead, or if the row was
        in registers and has been replaced."""
        gone = self.is_replaced and self.ahead.plan.fits
        for one, start in zip(self.ahead.tensors, self.ahead.starts, strict=True):
            if one is tensor and not gone:
                return self._address(start)
        return None

    def _address(self, start: Any) -> Any:
        return start + self.slot * self.ahead.plan.room

    def wait(self, group: int) -> None:
        """Waits for a part of this row, and those before it."""
        plan = self.ahead.plan
        behind = (plan.ahead - self.before) * plan.groups - group - 1
        fx.nvvm.cp_async_wait(behind + self.committed)

    def replace(self, first: Any) -> None:
        """Begins to copy the tile from element `first` on, of the row that replaces this one."""
        self.is_replaced = True
        ahead = self.ahead
        if self.index < ahead.rows:
            tile = Tile(Row(ahead.plan, ahead.columns, self.index), first)
            for tensor, start in zip(ahead.tensors, ahead.starts, strict=True):
                tile.request(tensor, self._address(start))
        if ahead.plan.groups > 1:
            fx.nvvm.cp_async_commit()
            self.committed += 1

    def end(self) -> None:
        """Ends the copies of a row."""
        if self.ahead.plan.groups == 1:
            fx.nvvm.cp_async_commit()


def each_row(
    plan: Plan, shape: Any, function: Callable[[Row, Any], Any], *tensors: Any, state: Any = None
) -> Any:
    """`state = function(row, state)` of each row that the block takes; returns the last state.

    shape: of the matrices. tensors: those that are read ahead, if the plan says so: the first ones
    if there is no room for all.
    """
    rows, columns = shape
    exchange = None if plan.cluster == 1 else Exchange(plan)
    if not plan.ahead:
        state = function(Row(plan, columns, exchange=exchange), state)
        if exchange is not None:
            exchange.begin()  # if there was nothing to exchange
        return state
    ahead, start = Ahead(plan, shape, tensors[: plan.among]), first_row(plan)
    step = fx.grid_dim.x if plan.cluster == 1 else fx.grid_dim.x // plan.cluster
    for slot in fx.range_constexpr(plan.ahead):
        ahead.ask(slot, start + slot * step)
    slot = count = fx.Int32(0)
    if exchange is not None:
        exchange.begin()
    for index in range(start, rows, step):
        own = Slot(ahead, slot, index + plan.ahead * step)
        if plan.groups == 1:
            own.wait(0)
            own.has_arrived = True
        if exchange is not None:
            exchange.next_row(count)
        state = function(Row(plan, columns, index, own, exchange), state)
        if own.is_replaced:
            own.end()
        else:
            ahead.ask(slot, own.index)
        slot = fx.where(slot == plan.ahead - 1, 0, slot + 1)
        if exchange is not None:
            count += 1
    return state


def each_row_in_two(
    plan: Plan,
    shape: Any,
    send: Callable[[Row], None],
    function: Callable[[Row, Any], Any],
    *tensors: Any,
    state: Any = None,
) -> Any:
    """As `each_row`, two rows at a time: `send` of a row, which sends numbers to all warps that
    have it (`row.exchange`), is called before `function` of the row before it, so that nobody waits
    for them."""
    rows, columns = shape
    exchange = Exchange(plan)
    step = fx.grid_dim.x if plan.cluster == 1 else fx.grid_dim.x // plan.cluster
    ahead, start = Ahead(plan, shape, tensors[: plan.among]), first_row(plan)
    for slot in fx.range_constexpr(plan.ahead):
        ahead.ask(slot, start + slot * step)
    exchange.begin()
    send(_arriving(plan, columns, start, Slot(ahead, 0, None), exchange))
    slot = count = fx.Int32(0)
    for index in range(start, rows, step):
        after = fx.where(slot == plan.ahead - 1, 0, slot + 1)
        if index + step < rows:
            exchange.next_row(count + 1)
            send(_arriving(plan, columns, index + step, Slot(ahead, after, None, 1), exchange))
        exchange.next_row(count)
        own = Slot(ahead, slot, index + plan.ahead * step)
        own.has_arrived = True
        state = function(Row(plan, columns, index, own, exchange), state)
        if own.is_replaced:
            own.end()
        else:
            ahead.ask(slot, own.index)
        slot = after
        count += 1
    return state


def _arriving(plan: Plan, columns: Any, index: Any, slot: Slot, exchange: Exchange) -> Row:
    """A row that is read ahead."""
    if plan.groups == 1:
        slot.wait(0)
        slot.has_arrived = True
    return Row(plan, columns, index, slot, exchange)


class Sums:
    """Sums over a block's rows, of each column: in registers, or else in shared memory. Those of a
    column are added by the thread that has its elements."""

    def __init__(self, plan: Plan, columns: Any, dtype: Any, in_registers: bool):
        self.row, self.dtype, self.start = Row(plan, columns), dtype, None
        if not in_registers:
            storage = fx.SharedAllocator().allocate(fx.Array[dtype, plan.room, 4 * plan.vector])
            self.start = storage.peek().ptr
            self.row.each_tile(lambda first: Tile(self.row, first).put(self.start, self._zeros()))

    def none(self) -> list[Any]:
        """A thread's sums of no row: those of its elements of each tile, as far as they are in
        registers."""
        tiles = 0 if self.start is not None else self.row.plan.groups
        return [self._zeros() for _ in range(tiles)]

    def _zeros(self) -> Any:
        plan = self.row.plan
        return fx.full((plan.vector, plan.vectors), 0.0, self.dtype)

    def add(self, sums: list[Any], first: Any, values: Any) -> None:
        """Adds to the sums of the tile from element `first` on."""
        if self.start is None:
            sums[first // self.row.plan.tile] += values
        else:
            tile = Tile(self.row, first)
            tile.put(self.start, tile.got(self.start) + values)

    def store(self, sums: list[Any], matrix: Any) -> None:
        """Stores sums to the block's row of a matrix."""

        def moved(first: Any) -> None:
            tile = Tile(self.row, first)
            if self.start is None:
                tile.store(matrix, sums[first // self.row.plan.tile])
            else:
                tile.store(matrix, tile.got(self.start))

        self.row.each_tile(moved)


def goes_in_two(plan: Plan) -> bool:
    """Whether `each_row_in_two` takes the rows of kernels that have two parts: those in tiles."""
    return plan.ahead > 1 and not plan.fits


def grid_of(plan: Plan, rows: Any) -> Any:
    """The blocks for so many rows, in a host function."""
    taken = fx.min(rows, plan.blocks // plan.cluster) if plan.ahead else rows
    return taken if plan.cluster == 1 else taken * plan.cluster
