"""A random chain: a shape and steps, as plain data.

("split", axis, factor, inner, padded)    ("merge", axis)    ("reorder", permutation)
("broadcast", axis)                       ("expand", axis, extent)
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from fly_host.domains.domain import Allocation, Dynamic

Step = tuple[Any, ...]
SMALL = (1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 9, 12, 16)
LARGE = (1, 2, 3, 7, 64, 1000, 2**20, 2**31 - 1, 2**31, 2**31 + 6, 2**33 + 8, 10**11)
MOST_SMALL = 400  # elements that are enumerated
MOST_LARGE = 2**61


@dataclass(frozen=True)
class Chain:
    shape: tuple[int, ...]
    steps: tuple[Step, ...]

    def allocation(self, dynamic: Callable[[int], int | Dynamic] = int) -> Allocation:
        """The chain as the library has it; `dynamic` makes a factor or an extent."""
        made = Allocation()
        for name, *values in self.steps:
            if name == "split":
                axis, factor, inner, padded = values
                made = made.split(axis, dynamic(factor), inner=inner, padded=padded)
            elif name == "expand":
                made = made.expand(values[0], dynamic(values[1]))
            elif name == "reorder":
                made = made.reorder(*values[0])
            else:
                made = getattr(made, name)(*values)
        return made

    def __str__(self) -> str:
        return f"{self.shape} {self.allocation()}".rstrip()


@dataclass
class Choice:
    """Where the decisions of a random chain come from: `below(n)` is one of 0 … n - 1."""

    below: Callable[[int], int]

    @staticmethod
    def of_seed(seed: object) -> Choice:
        return Choice(random.Random(str(seed)).randrange)

    def one(self, values: Sequence[Any]) -> Any:
        return values[self.below(len(values))]

    def odds(self, one_in: int) -> bool:
        return self.below(one_in) == one_in - 1

    def order(self, count: int) -> tuple[int, ...]:
        left = list(range(count))
        return tuple(left.pop(self.below(len(left))) for _ in range(count))


def random_chain(choice: Choice, large: bool = False) -> Chain:
    most = MOST_LARGE if large else MOST_SMALL
    shape, total = [], 1
    for _ in range(choice.one((0, 1, 1, 2, 2, 2, 3, 3, 4))):
        extent = choice.one(LARGE if large else SMALL)
        extent = 0 if choice.odds(25) else extent
        if total * max(extent, 1) <= most:
            shape.append(extent)
            total *= max(extent, 1)
    growing = _Growing(choice, list(shape), most)
    for _ in range(choice.below(10)):
        growing.step()
    return Chain(tuple(shape), tuple(growing.steps))


class _Growing:
    """A chain while it is made: it knows its axes so far, and keeps most steps sensible."""

    def __init__(self, choice: Choice, extents: list[int], most: int):
        self.choice = choice
        self.extents = extents
        self.most = most
        self.steps: list[Step] = []

    def step(self) -> None:
        early = all(step[0] in ("broadcast", "expand") for step in self.steps)
        names = ["split"] * 6 + ["reorder"] * 5 + ["merge"] * 4 + ["broadcast"]
        names += ["broadcast"] * 3 + ["expand"] * 6 if early else []
        getattr(self, f"_{self.choice.one(names)}")()

    def _position(self, count: int) -> tuple[int, int]:
        """A position, and how it is written: some count from the end."""
        axis = self.choice.below(count)
        return axis, axis - count if self.choice.odds(4) else axis

    def _split(self) -> None:
        if not self.extents or len(self.extents) > 7:
            return
        axis, written = self._position(len(self.extents))
        extent = self.extents[axis]
        padded, inner = self.choice.odds(2), self.choice.below(3) > 0
        divisors = [n for n in (1, 2, 3, 4, 5, 6, 7, 8, 1000, 2**20) if extent % n == 0]
        exact = not padded and not self.choice.odds(16)
        factor = self.choice.one(divisors) if exact else 1 + self.choice.below(9)
        rest = -(-extent // factor)
        others = prod(max(other, 1) for at, other in enumerate(self.extents) if at != axis)
        if others * max(rest, 1) * factor > 2 * self.most:
            return
        self.extents[axis : axis + 1] = [rest, factor] if inner else [factor, rest]
        self.steps.append(("split", written, factor, inner, padded))

    def _merge(self) -> None:
        if len(self.extents) > 1:
            axis = self.choice.below(len(self.extents) - 1)
            self.extents[axis : axis + 2] = [self.extents[axis] * self.extents[axis + 1]]
            self.steps.append(("merge", axis))

    def _reorder(self) -> None:
        order = self.choice.order(len(self.extents))
        self.extents = [self.extents[axis] for axis in order]
        self.steps.append(("reorder", order))

    def _broadcast(self) -> None:
        if len(self.extents) < 8:
            axis, written = self._position(len(self.extents) + 1)
            self.extents.insert(axis, 1)
            self.steps.append(("broadcast", written))

    def _expand(self) -> None:
        ones = [axis for axis, extent in enumerate(self.extents) if extent == 1]
        if self.choice.odds(16):
            ones = list(range(len(self.extents)))
        if ones:
            axis, extent = self.choice.one(ones), self.choice.one((0, 1, 2, 3, 5))
            if prod(max(other, 1) for other in self.extents) * extent > 2 * self.most:
                return
            self.extents[axis] = extent
            self.steps.append(("expand", axis, extent))
