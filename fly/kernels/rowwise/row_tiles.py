"""The tiles of a row: which elements each thread has, and how they move between memory, shared
memory and registers.

Of each tile, every 64 threads have a part: 64 · `vectors` vectors of adjacent elements. Thread t
has its vectors t % 64, t % 64 + 64, and so on, so that the lanes of a wave access adjacent memory,
and a thread's vectors are near enough for offsets in instructions.
"""

from __future__ import annotations

from typing import Any

import fly.expr as fx


class Tile:
    """The part of a row from element `first` on that a block takes at a time."""

    def __init__(self, row: Any, first: Any):
        """row: a `rows.Row`."""
        self.plan, self.columns, self.first = row.plan, row.columns, first
        self.index, self.ahead = row.index, row.ahead

    def load(self, tensor: Any, default: float) -> Any:
        """Loads the thread's elements: an fx.Vector of the tensor's type."""
        held = self._registers(tensor.dtype)
        if not self.plan.whole:
            held.fill(default)
        place = None if self.ahead is None else self.ahead.place(tensor)
        self._copy(self._part(tensor) if place is None else self._at(place), held)
        return held.load()

    def request(self, tensor: Any, place: Any) -> None:
        """Begins to copy the thread's elements to shared memory, to those of the row there."""
        bits = self.plan.vector * tensor.dtype.bits
        atom = fx.make_copy_atom(fx.nvvm.CpAsync(bits), tensor.dtype)
        fx.copy(atom, self._part(tensor), self._at(place), pred=self._present())

    def store(self, tensor: Any, values: Any) -> None:
        """Stores the thread's elements, an fx.Vector of the tensor's type."""
        held = self._registers(tensor.dtype)
        held.store(values)
        self._copy(held, self._part(tensor))

    def store_one(self, tensor: Any, i: int, values: Any) -> None:
        """Stores the thread's vector i of a row in registers."""
        plan, inside = self.plan, None
        held = fx.make_rmem_tensor((plan.vector, 1), tensor.dtype)
        held.store(values.reshape((plan.vector, 1)))
        if not plan.whole:
            inside = fx.make_rmem_tensor(1, fx.Boolean)
            inside[0] = self._place(i) < self.columns
        start = fx.get_iter(self._part(tensor)) + i * plan.lanes * plan.vector
        target = fx.make_view(start, fx.make_layout((plan.vector, 1), (1, plan.vector)))
        self._copy_all(held, target, inside)

    def got(self, start: Any) -> Any:
        """The thread's elements of a row in shared memory that has room for whole tiles."""
        held = self._registers(start.dtype)
        self._copy_all(self._at(start), held)
        return held.load()

    def put(self, start: Any, values: Any) -> None:
        """Stores them there."""
        held = self._registers(start.dtype)
        held.store(values)
        self._copy_all(held, self._at(start))

    def _copy_all(self, source: Any, target: Any, present: Any = None) -> None:
        dtype = source.dtype
        atom = fx.make_copy_atom(fx.UniversalCopy(self.plan.vector * dtype.bits), dtype)
        fx.copy(atom, source, target, pred=present)

    def places(self) -> Any:
        """The columns of the thread's elements."""
        plan, held = self.plan, self._registers(fx.Int32)
        for i in fx.range_constexpr(plan.vectors):
            for j in fx.range_constexpr(plan.vector):
                held[j, i] = self._place(i) + j
        return held.load()

    def _place(self, i: int) -> Any:
        """The column of the thread's vector i."""
        place = self._own_place(i)
        return place if self.plan.cluster == 1 else self._share() + place

    def _share(self) -> Any:
        """The first column of the block's share of a row."""
        return fx.cluster.rank() * self.plan.share

    def _own_place(self, i: int) -> Any:
        """The place of the thread's vector i in what the block has of the row."""
        plan, thread = self.plan, fx.thread_idx.x
        lanes = plan.lanes
        vector = thread // lanes * (plan.vectors * lanes) + thread % lanes
        return self.first + (vector + i * lanes) * plan.vector

    def within(self, values: Any) -> Any:
        """The thread's elements, and 0 for those beyond the row's end."""
        if self.plan.whole:
            return values
        held, inside = self._registers(values.dtype), self._inside()
        held.store(values)
        for i in fx.range_constexpr(self.plan.vectors):
            part = held[None, i].load()
            held[None, i].store(fx.where(inside[i], part, fx.zeros_like(part)))
        return held.load()

    def _registers(self, dtype: Any) -> Any:
        return fx.make_rmem_tensor((self.plan.vector, self.plan.vectors), dtype)

    def _part(self, tensor: Any) -> Any:
        """The thread's elements in memory: as vectors, one after the other."""
        start = fx.get_iter(tensor if fx.rank(tensor) == 1 else tensor[self.index, None])
        return self._at(start if self.plan.cluster == 1 else start + self._share())

    def _at(self, start: Any) -> Any:
        """The thread's elements of what the block has of a row, which begins at an address."""
        plan = self.plan
        layout = fx.make_layout((plan.vector, plan.vectors), (1, plan.lanes * plan.vector))
        return fx.make_view(start + self._own_place(0), layout)

    def _copy(self, source: Any, target: Any) -> None:
        self._copy_all(source, target, self._present())

    def _present(self) -> Any:
        return None if self.plan.whole else self._inside()

    def _inside(self) -> Any:
        """Which of the thread's vectors lie in the row, whose length is a multiple of theirs."""
        inside, end = fx.make_rmem_tensor(self.plan.vectors, fx.Boolean), self.columns
        if self.plan.cluster > 1:
            end = fx.min(self.plan.share, self.columns - self._share())
        for i in fx.range_constexpr(self.plan.vectors):
            inside[i] = self._own_place(i) < end
        return inside
