"""Into which pieces registers are cut, so that what reads and writes them mostly takes whole ones.

A multiplication writes 4 of the 64 registers of its sum. As one value of 64 elements each of a
kernel's hundreds of writes would be an insertion into all of them, two shuffles with masks of 64
for LLVM to take apart; as sixteen values of 4 it is nothing. What fills or stores all of them is
then sixteen slices, but there are only few of those.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

# What is narrower shares a register with its neighbours; alone it would take a whole one.
REGISTER_BITS = 32


class Range(NamedTuple):
    """`count` elements from `offset` on."""

    offset: int
    count: int

    @property
    def end(self) -> int:
        return self.offset + self.count

    def common(self, other: Range) -> Range:
        """The elements that are in both, of which there must be some."""
        offset = max(self.offset, other.offset)
        return Range(offset, min(self.end, other.end) - offset)


def cut(size: int, bits: int, accesses: Mapping[Range, int]) -> list[Range]:
    """The pieces of `size` elements of `bits` bits, in order; `accesses` counts the reads and
    writes of each range.

    Of the cuts at both ends of all accesses up to some length, and of none at all, it is the one
    that leaves the fewest slices to build; of equal ones the one with the fewest pieces.
    """
    inside = {r: n for r, n in accesses.items() if r.offset >= 0 and r.end <= size}
    best = [Range(0, size)]
    least = slices(best, inside)
    bounds = {0, size}
    for length in sorted({r.count for r in inside}):
        if not least:
            break
        ends = {end for r in inside if r.count == length for end in (r.offset, r.end)}
        bounds |= {end for end in ends if end * bits % REGISTER_BITS == 0}
        places = sorted(bounds)
        pieces = [Range(a, b - a) for a, b in pairwise(places)]
        found = slices(pieces, inside)
        if (found, len(pieces)) < (least, len(best)):
            best, least = pieces, found
    return best


def slices(pieces: list[Range], accesses: Mapping[Range, int]) -> int:
    """How many slices the accesses take: none for a whole piece, else one for each piece that they
    reach."""
    total = 0
    offsets = [piece.offset for piece in pieces]
    for access, times in accesses.items():
        first, last = reached(offsets, access)
        if last - first > 1 or pieces[first] != access:
            total += times * (last - first)
    return total


def reached(offsets: list[int], access: Range) -> tuple[int, int]:
    """The indices of the first piece that an access reaches and of the first behind it; `offsets`
    are those of the pieces."""
    return bisect_right(offsets, access.offset) - 1, bisect_left(offsets, access.end)
