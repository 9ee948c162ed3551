"""Splits registers into pieces such that most accesses read or write whole pieces.

A multiplication writes 4 of the 64 registers of its accumulator. With one value of 64 elements,
each of a kernel's hundreds of writes would be an insertion into all of them: two shuffles with
masks of 64 that LLVM has to take apart. With sixteen values of 4 elements no shuffle is needed. An
access to all of the registers is then sixteen slices, but there are few of those.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

# A narrower value would share a register with its neighbours; alone it takes a whole one.
REGISTER_BITS = 32


class Range(NamedTuple):
    """`count` elements starting at `offset`."""

    offset: int
    count: int

    @property
    def end(self) -> int:
        return self.offset + self.count

    def common(self, other: Range) -> Range:
        """Returns the intersection, which must not be empty."""
        offset = max(self.offset, other.offset)
        return Range(offset, min(self.end, other.end) - offset)


def cut(size: int, bits: int, accesses: Mapping[Range, int]) -> list[Range]:
    """Returns the pieces of `size` elements of `bits` bits, in order; `accesses` counts the reads
    and writes of each range.

    The candidates are the cuts at both ends of all accesses up to some length, and no cut at all.
    The result is the one with the fewest slices, and among those the one with the fewest pieces.
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
    """Counts the slices that the accesses need: none for a whole piece, otherwise one for each
    piece that an access overlaps."""
    total = 0
    offsets = [piece.offset for piece in pieces]
    for access, times in accesses.items():
        first, last = reached(offsets, access)
        if last - first > 1 or pieces[first] != access:
            total += times * (last - first)
    return total


def reached(offsets: list[int], access: Range) -> tuple[int, int]:
    """Returns the index of the first piece that an access overlaps, and of the first one after it;
    `offsets` are those of the pieces."""
    return bisect_right(offsets, access.offset) - 1, bisect_left(offsets, access.end)
