"""When and how matrices are multiplied by TMA and wgmma, decided by the host from arrays and the
target."""

from __future__ import annotations

from typing import NamedTuple

from fly_numerics.element_types import ELEMENT_TYPES

ROW = 128  # bytes of a row of a tile in shared memory
THREADS = 128  # of a warp group
GROUPS = 2  # of them that multiply
ROWS = 64  # of C that one of them has
ALIGNMENT = 16  # bytes: of tensors that TMA copies, and of their rows
BLOCKS = 132  # that run at once: the multiprocessors of an H100 or H200
ROOM = 192 << 10  # bytes of shared memory for tiles of A and B
SUMMED, SUM_UNIT = 256, 4  # threads that add parts, and elements of each
BAND = 16
# Steps that a divided tile of groups of rows costs more, and the least ones of a part.
PART_STEPS, LEAST_STEPS = 18, 8


class WarpgroupPlan(NamedTuple):
    """element, out: the types of operands and of what the kernel stores. rows, columns: of a tile
    of C. a_along_k, b_along_k: whether the operand's values of K are adjacent in memory.
    pad_a, pad_b: whether the operand is copied first, because TMA could not copy its tiles.
    tma_store: whether C's rows begin at multiples of 16 bytes. splits: the parts of K that
    different blocks take. lines: the rows of C whose parts a block adds. band: the
    rows of tiles that blocks go through together. blocks: those that run at once. grouped: groups
    of rows of A are multiplied by different matrices. least: the least steps along K of a part of
    their last tiles, or 0 if these are not divided. cluster: the blocks of a cluster, whose tiles
    are below one another: each copies a part of B's tile to all of them. stream: the last tiles,
    too few for all blocks, are divided among them (`warpgroup_stream`)."""

    element: str
    out: str
    rows: int = 128
    columns: int = 256
    a_along_k: bool = True
    b_along_k: bool = True
    pad_a: bool = False
    pad_b: bool = False
    tma_store: bool = True
    splits: int = 1
    lines: int = 1
    band: int = BAND
    blocks: int = BLOCKS
    grouped: bool = False
    least: int = 0
    cluster: int = 1
    stream: bool = False

    @property
    def follows(self) -> bool:
        """Whether a kernel before the product prepares what it reads."""
        return self.pad_a or self.pad_b or self.stream

    @property
    def precedes(self) -> bool:
        """Whether a kernel behind the product adds parts of sums."""
        return self.splits > 1

    @property
    def stages(self) -> int:
        """The tiles of A and B that fit."""
        return ROOM // (ROW * (self.rows + self.columns))

    @property
    def beside(self) -> int:
        """The warp groups that are beside one another."""
        return GROUPS if self.rows == ROWS else 1

    @property
    def width(self) -> int:
        """The columns of a tile that a warp group has."""
        return self.columns // self.beside

    @property
    def pieces(self) -> int:
        """How many times a warp group stores 64 rows."""
        return self.width // self.chunk

    @property
    def held(self) -> int:
        """The sums of a tile that a thread has."""
        return self.rows * self.columns // (GROUPS * THREADS)

    @property
    def unit(self) -> int:
        """The elements whose parts a thread adds."""
        return SUM_UNIT if self.tma_store else 1

    @property
    def depth(self) -> int:
        """The extent of tiles along K."""
        return ROW * 8 // ELEMENT_TYPES[self.element].bits

    @property
    def chunk(self) -> int:
        """The columns of C that are stored together."""
        return ROW * 8 // ELEMENT_TYPES[self.out].bits
