"""Buffers of a ring in use: whose turn it is, its tiles, and the function that fills it later."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.memory.view_construction import make_rmem_tensor
from fly_trace.values.dtypes import I32
from fly_trace.values.functions.math_functions import where

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

    from fly_trace.pipelines.ring import Pipeline


class Turn:
    """Whose turn it is: the number of a buffer, and the parity of how often all had theirs. They
    are in registers, so that branches and loops carry them."""

    def __init__(self, stages: int):
        self._stages = stages
        self._cells = make_rmem_tensor(2, I32)
        self._cells[0] = self._cells[1] = 0

    @property
    def stage(self) -> Any:
        return self._cells[0]

    @property
    def parity(self) -> Any:
        return self._cells[1]

    def pass_on(self) -> None:
        following = self.stage + 1
        last = following == self._stages
        parity = self.parity
        self._cells[0] = where(last, 0, following)
        self._cells[1] = where(last, 1 - parity, parity)


class Later:
    """A function that is called later, and the variables around it that it sees: they must then
    be what they are now, and be there."""

    def __init__(self, load: Callable[[Slot, Any], None]):
        self._load = load
        self._seen = _around(load)
        self._block = tracing.kernel("ring.fill").ip.block

    def call(self, slot: Slot, step: Any) -> None:
        if not _is_within(tracing.kernel("ring.wait").ip.block, self._block):
            tracing.refuse(
                "ring.fill was called in a loop or branch that has ended, and where all threads"
                " fill and read, ring.wait goes on with that",
                "call both in the same loop: ring.fill in front of `with ring.consumer_warps():`",
            )
        for name, value in _around(self._load).items():
            if self._seen.get(name) is not value:
                tracing.refuse(
                    f"the function that fills a ring uses `{name}`, which has changed since"
                    " ring.fill, and is called later",
                    f"give it a default: def load(slot, step, {name}={name})",
                )
        self._load(slot, step)


def _is_within(block: ir.Block, outer: ir.Block) -> bool:
    """Whether a block is another one, or in an op of it."""
    while block != outer:
        op = block.owner.operation
        if op.name == "gpu.func":
            return False
        block = op.block
    return True


def _around(function: Any) -> dict[str, Any]:
    """The values of a function's free variables."""
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    found = {}
    for name, cell in zip(code.co_freevars if code else (), cells or (), strict=True):
        with suppress(ValueError):  # it has no value yet
            found[name] = cell.cell_contents
    return found


class Slot:
    """A buffer of the ring, by whose names its tiles are found: `slot.a`."""

    def __init__(self, ring: Pipeline, stage: Any):
        self._ring, self._stage = ring, stage

    @property
    def stage(self) -> Any:
        """The number of the buffer."""
        return self._stage

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._ring._buffer(name).view(self._stage)

    def copy(self, **sources: Any) -> None:
        """Starts to copy a tile to each of the buffers named: a=(A, row, column), from the element
        of a tensor with these coordinates. A tensor of more dimensions has more coordinates, in
        front. Elements beyond the tensor are 0."""
        for name, given in sources.items():
            if not isinstance(given, tuple) or len(given) < 2:
                tracing.refuse(
                    f"{name}= takes a tensor and the tile's first coordinates, not"
                    f" {describe(given)}",
                    f"as in slot.copy({name}=(A, row, column))",
                )
            self._ring._copy(name, given[0], given[1:], self._stage)
