"""The access pattern behind a picture of LDS banks: a wave reads a row or a column of a tile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from fly_target import bank_conflicts, registry
from fly_target.target import Target

WIDTHS = (16, 12, 8, 4, 2, 1)  # bytes per lane of the instructions that read LDS


@dataclass(frozen=True)
class Reads:
    """Reads of `vector` elements of `width` bytes per lane, on `target`."""

    target: str
    width: int
    vector: int

    def __post_init__(self) -> None:
        if registry.get(self.target) is None:
            known = ", ".join(registry.names())
            raise ValueError(f"the LDS of {self.target} is not known; the targets are {known}")

    @cached_property
    def _chip(self) -> Target:
        return registry.find(self.target)

    @property
    def banks(self) -> int:
        """The number of banks that serve these reads."""
        _, size = next(self._parts())
        return bank_conflicts.banks(self._chip, "load", size)

    def bank(self, offset: int) -> int:
        """Returns the bank of the element at `offset`."""
        return offset * self.width // bank_conflicts.BANK_BYTES % self.banks

    def degree(self, offsets: Sequence[int]) -> int:
        """Returns the worst conflict of waves whose lanes read the elements at `offsets`."""
        return max(
            bank_conflicts.degree(
                self._chip,
                "load",
                size,
                [
                    offset * self.width + at
                    for offset in offsets[first : first + bank_conflicts.LANES]
                ],
            )
            for first in range(0, len(offsets), bank_conflicts.LANES)
            for at, size in self._parts()
        )

    def _parts(self) -> Iterator[tuple[int, int]]:
        """Yields the (offset, size) in a lane's bytes of each instruction's read."""
        at, left = 0, self.width * self.vector
        while left:
            size = next(size for size in WIDTHS if size <= left)
            yield at, size
            at, left = at + size, left - size
