"""How blocks take the rows of matrices: decided by the host, from arrays.

`row_plans.json` has the choices that were fastest where they were measured, by target, kernel and
the bytes of a row. A row is taken as the narrowest one there that is at least as wide. What is not
there is decided by rules that are right everywhere.
"""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from fly_backend.choice import choose

from fly.kernels.arrays import address, strides

WIDEST = 16  # bytes of an access
LINE = 128  # bytes of a line of a cache
LANES = 64  # of the widest wave: blocks are whole waves on every target
ITEMS, MOST_ITEMS = 16, 32  # of a thread, at least and at most: they are in registers
USUAL_THREADS, MOST_THREADS = 256, 1024
NARROW = 4  # elements: accesses of fewer are narrow
MOST_NARROW = 8  # elements of a thread where narrow accesses take a part of a row
# Kernels with other numbers: the least elements of a thread, and usual threads. A thread of
# add_layer_norm holds differences, weights and biases at once, in 38 VGPRs with 16 elements, and in
# 22 with eight; FlyDSL's kernel has 24 to 26. More threads than these execute too much for a row.
OTHERS = {target: {"add_layer_norm": (8, 512)} for target in ("gfx942", "gfx950")}
MOST_AHEAD = (
    8  # matrices that a kernel reads ahead, and tiles of a row that it waits for one by one
)


SHARED = 220 << 10  # bytes of a block's shared memory for rows
IN_REGISTERS = 32 << 10  # numbers that a multiprocessor's threads have registers for

FILE = Path(__file__).with_suffix(".json")


class Choice(NamedTuple):
    """A measured choice for a kernel and rows of so many bytes: blocks of `threads`, which take
    tiles of `vectors` vectors a thread. ahead: rows that a block has in shared memory, or asked
    for; 0 if it reads a single row from memory. blocks: those of the grid. among, cluster and
    resident: as in `Plan`."""

    threads: int
    vectors: int
    ahead: int = 0
    blocks: int = 0
    among: int = MOST_AHEAD
    cluster: int = 1
    resident: int = 0


class Plan(NamedTuple):
    """How a block takes a row: tiles of `threads` · `vectors` vectors of `vector` elements.

    fits: the row is not longer than one tile. whole: it is as long as one tile, or several.
    ahead: the rows of each matrix that fit into a block's shared memory, where they are read to
    before they are needed; `room` is the elements of one there. Then a grid of `blocks` blocks
    takes all rows. Otherwise each row has a block, which reads it from memory.

    cluster: the blocks that share a row, each of which takes `share` adjacent elements as others
    take a row: what is said above is then of a block's share. 1 if a block has whole rows.
    resident: the blocks that a multiprocessor shall have registers for; 0 leaves it open.
    """

    threads: int
    vector: int
    vectors: int
    fits: bool
    whole: bool
    ahead: int = 0
    room: int = 0
    blocks: int = 0
    among: int = MOST_AHEAD
    cluster: int = 1
    resident: int = 0
    share: int = 0

    @property
    def attributes(self) -> tuple[tuple[str, int], ...]:
        """Those of kernels with this plan."""
        return (("nvvm.minctasm", self.resident),) if self.resident else ()

    @property
    def groups(self) -> int:
        """The parts of a row that is read ahead, which are waited for one by one: its tiles."""
        tiles = self.room // self.tile
        return tiles if tiles <= MOST_AHEAD else 1

    @property
    def unrolled(self) -> bool:
        """Whether a kernel has code for each tile, so that a thread can have registers for each."""
        return self.groups > 1

    @property
    def unroll(self) -> int | None:
        """`unroll=` of loops over tiles. The code of several tiles of narrow accesses would have
        addresses, and elements for the next time that the row is read, in scratch memory."""
        return 1 if self.vector < NARROW else None

    @property
    def tile(self) -> int:
        """The elements of a tile."""
        return self.threads * self.vector * self.vectors

    @property
    def lanes(self) -> int:
        """The threads that have adjacent vectors."""
        return min(LANES, self.threads)


def plan(*matrices: Any, kernel: str = "") -> Plan:
    """The plan of a kernel for the rows of matrices with the same number of columns; among them may
    be vectors that are as long as a row.

    An access takes as many elements as each row of each array is aligned to. Unless a choice was
    measured, the tile is as long as the row if that is possible, and a block has 256 threads; fewer
    for rows of less than 4096 elements, where a thread has 16; more for those of over 8192, where
    it has 32. (benchmarks/h200 has the rates of other numbers.) OTHERS has other numbers.
    """
    columns, size = matrices[0].shape[-1], matrices[0].itemsize
    aligned = min(map(_aligned, matrices))
    target = choose().target if kernel else ""
    if kernel and size <= 4 and aligned * size == WIDEST and columns * size % WIDEST == 0:
        choice = measured(kernel, target, columns * size)
        if choice is not None:
            return _chosen(columns, aligned, choice)
    return _plan(columns, aligned, *OTHERS.get(target, {}).get(kernel, ()))


def sums_in_registers(plan: Plan, sums: int) -> int:
    """How many of so many f32 sums of each column the threads have in registers: all if rows fit
    there, or the plan would not have been chosen."""
    if plan.fits or not plan.unrolled:
        return sums if plan.fits else 0
    return min(sums, IN_REGISTERS // plan.room)


def has_room(plan: Plan, size: int, sums: int) -> bool:
    """Whether a block that reads rows of two matrices ahead, of elements of so many bytes, has room
    for f32 sums of each column: in registers or in shared memory."""
    rows = min(2, plan.among) * plan.ahead * plan.room * size
    others = sums - sums_in_registers(plan, sums)
    return rows + others * plan.room * 4 <= SHARED


@cache
def measured(kernel: str, target: str, nbytes: int) -> Choice | None:
    """The choice for rows of so many bytes, or None. Rows of less than half the bytes of the
    narrowest measured ones, and those wider than all, have none."""
    widths = {int(width): row for width, row in _measured().get(target, {}).get(kernel, {}).items()}
    width = min((one for one in widths if one >= nbytes), default=0)
    return Choice(*widths[width]) if width and 2 * nbytes > min(widths) else None


@cache
def _measured() -> dict[str, dict[str, dict[str, list[int]]]]:
    return json.loads(FILE.read_text(encoding="utf-8"))


@cache
def _chosen(columns: int, vector: int, choice: Choice) -> Plan:
    """The plan for a choice. Equal plans are one object."""
    threads, vectors, ahead, blocks, among, cluster, resident = choice
    tile = threads * vector * vectors
    share = columns
    if cluster > 1:  # of whole lines of a cache
        line = LINE // WIDEST * vector
        share = -(-columns // (cluster * line)) * line
    room = -(-share // tile) * tile if ahead or cluster > 1 else 0
    whole = share % tile == 0 and share * cluster == columns
    fits, own = share <= tile, share if cluster > 1 else 0
    taken = (ahead, room, blocks, among, cluster, resident, own)
    return Plan(threads, vector, vectors, fits, whole, *taken)


@cache
def _plan(columns: int, aligned: int, items: int = ITEMS, usual: int = USUAL_THREADS) -> Plan:
    """See `plan`; `aligned` is the number of elements that addresses admit. Equal plans are one
    object, which calls of `@fly.jit` functions find fastest."""
    vector = math.gcd(columns, aligned)
    count = max(1, -(-columns // vector))
    least = min(items // vector, _power(-(-count // LANES)))  # a short row needs fewer
    choices = [
        (threads, vectors)
        for vectors in _powers(max(1, least), MOST_ITEMS // vector)
        if (threads := _waves(-(-count // vectors))) <= MOST_THREADS
    ]
    if not choices:
        most = (MOST_NARROW if vector < NARROW else MOST_ITEMS) // vector
        return Plan(MOST_THREADS, vector, most, False, False)
    # A tile of the row's length first, then the usual threads at most, then few vectors for each.
    threads, vectors = min(choices, key=lambda one: (math.prod(one) != count, max(one[0], usual)))
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
