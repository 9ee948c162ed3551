"""How blocks take the rows of matrices: decided by the host, from arrays."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

from fly.kernels.arrays import address, strides

WIDEST = 16  # bytes of an access
LANES = 64  # of the widest wave: blocks are whole waves on every target
ITEMS, MOST_ITEMS = 16, 32  # of a thread, at least and at most: they are in registers
USUAL_THREADS, MOST_THREADS = 256, 1024


class Plan(NamedTuple):
    """How a block takes a row: tiles of `threads` · `vectors` vectors of `vector` elements.

    fits: the row is not longer than one tile. whole: it is as long as one tile.
    """

    threads: int
    vector: int
    vectors: int
    fits: bool
    whole: bool

    @property
    def tile(self) -> int:
        """The elements of a tile."""
        return self.threads * self.vector * self.vectors


def plan(*matrices: Any) -> Plan:
    """The plan for the rows of matrices with the same number of columns; among them may be vectors
    that are as long as a row.

    An access takes as many elements as each row of each array is aligned to. The tile is as long as
    the row if that is possible. A block has 256 threads; fewer for rows of less than 4096 elements,
    where a thread has 16; more for those of over 8192, where it has 32. (benchmarks/h200 has the
    rates of other numbers.)
    """
    return _plan(matrices[0].shape[-1], min(map(_aligned, matrices)))


@cache
def _plan(columns: int, aligned: int) -> Plan:
    """See `plan`; `aligned` is the number of elements that addresses admit. Equal plans are one
    object, which calls of `@fly.jit` functions find fastest."""
    vector = math.gcd(columns, aligned)
    count = max(1, -(-columns // vector))
    least = min(ITEMS // vector, _power(-(-count // LANES)))  # a short row needs fewer
    choices = [
        (threads, vectors)
        for vectors in _powers(max(1, least), MOST_ITEMS // vector)
        if (threads := _waves(-(-count // vectors))) <= MOST_THREADS
    ]
    if not choices:
        return Plan(MOST_THREADS, vector, MOST_ITEMS // vector, False, False)
    # A tile of the row's length first, then at most 256 threads, then few vectors for each.
    threads, vectors = min(
        choices, key=lambda one: (math.prod(one) != count, max(one[0], USUAL_THREADS))
    )
    return Plan(threads, vector, vectors, True, threads * vectors == count)


def _power(number: int) -> int:
    """The least power of two that is not less than a number."""
    return 1 << (number - 1).bit_length()


def _powers(least: int, most: int) -> list[int]:
    """The powers of two from one to another."""
    return [1 << i for i in range(least.bit_length() - 1, most.bit_length())]


def _waves(threads: int) -> int:
    return -(-threads // LANES) * LANES


def _aligned(matrix: Any) -> int:
    """The elements that can be accessed at a time from the start of any row of a matrix."""
    nbytes = matrix.itemsize
    rows = [step * nbytes for step in strides(matrix)[:-1]]
    return max(1, math.gcd(WIDEST, address(matrix), *rows) // nbytes)
