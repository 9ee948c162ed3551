"""The workgroup of attention on AMD: which rows its waves own, and what multiplies them.

`fly.kernels.attention.tiles` says what a workgroup owns and streams.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fly_common.errors import UsageError
from fly_target.registry import find

import fly.expr as fx

WAVES = 4
VALUES = 8  # that a thread moves at a time: 128 bits
WIDE_ROWS = 64  # of a streamed tile, where waves own 32 rows
WAVE_LANES = {"CDNA2": 64, "CDNA3": 64, "CDNA4": 64, "RDNA3": 32, "RDNA4": 32, "gfx1250": 32}
# With LDS for tiles that are a little larger: on CDNA3, four workgroups of d = 64, or two of
# d = 128, just fill it.
BY_EIGHTS = ("CDNA4",)
WMMA_DEPTH = {"gfx1250": 32}  # of one instruction; 16 elsewhere


@dataclass(frozen=True)
class Workgroup:
    """How the threads of a workgroup share tiles of rows of d elements, and products of them.

    edge: the rows that a wave owns, and the rows of a block of scores of one instruction. rows:
    those of a streamed tile. columns: how the tile's rows follow each other in its columns in LDS.
    turned: whether columns lie in LDS in another order, for which a thread's eight values of a row
    are at constant distances. by_eights: whether eight adjacent values lie below those of the next
    row, instead of being permuted. waves: so many of a SIMD, the kernel shall have registers for; 0
    leaves it to LLVM.

    by_row, by_column: the moves of a streamed tile. A thread has eight columns of some adjacent
    rows, and accesses eight values of a row at a time, or its values of a column. in_place: whether
    a thread's scores are what it takes as weights. moves: the adjacent rows of a streamed tile that
    a thread has.
    """

    dtype: Any
    d: int
    edge: int
    rows: int
    threads: int
    product: Any
    columns: Any
    in_place: bool
    turned: bool
    by_eights: bool
    waves: int
    moves: int
    by_row: Any
    by_column: Any

    @property
    def own(self) -> int:
        """The rows that the workgroup owns."""
        return WAVES * self.edge

    def copy(self, values: int) -> Any:
        """The copy atom of so many values."""
        return fx.make_copy_atom(fx.UniversalCopy(self.dtype.bits * values), self.dtype)

    def buffer_copy(self, values: int) -> Any:
        """The copy atom of so many values from or to a buffer."""
        return fx.make_copy_atom(fx.rocdl.BufferCopy(self.dtype.bits * values), self.dtype)


def workgroup(dtype: Any, d: int, *, wide: bool = False) -> Workgroup:
    """The workgroup for the target that is traced for; UsageError if it has neither MFMA nor WMMA.
    `wide`: with MFMA, waves own 32 rows, which takes more registers."""
    arch = fx.rocdl.get_rocm_arch()
    matrix = find(arch).matrix
    lanes = WAVE_LANES.get(matrix)
    if lanes is None:
        raise UsageError(f"attention needs MFMA or WMMA of 16x16x16, which {arch} lacks")
    wide &= lanes == 64
    edge, threads = 32 if wide else 16, WAVES * lanes
    depth = WMMA_DEPTH.get(matrix, 16)
    rows = WIDE_ROWS if wide else max(2 * VALUES * threads // d, depth)
    product = _product(dtype, matrix, edge, rows)
    groups, moves = d // VALUES, rows * d // (threads * VALUES)
    places = fx.make_ordered_layout((threads // groups, groups), (1, 0))
    by_row, by_column = [
        fx.make_tiled_copy_tv(
            fx.make_copy_atom(fx.UniversalCopy(dtype.bits * values), dtype),
            places,
            fx.make_ordered_layout((moves, VALUES), order),
        )
        for values, order in ((VALUES, (1, 0)), (moves, (0, 1)))
    ]
    by_eights = wide and matrix in BY_EIGHTS
    waves = 4 if by_eights and d == 64 else 0
    lds = wide, by_eights, waves
    return Workgroup(dtype, d, edge, rows, threads, *product, *lds, moves, by_row, by_column)


def _product(dtype: Any, matrix: str, edge: int, rows: int) -> tuple[Any, Any, bool]:
    """`product`, `columns` and `in_place` of a workgroup.

    What MFMA has of scores in a lane, four rows of each block of four times as many, is what it
    takes as weights: of one block, or on CDNA4 of two. These are adjacent in LDS.
    """
    waves = fx.make_layout((1, WAVES, 1), (0, 1, 0))
    if not matrix.startswith("CDNA"):
        atom = fx.make_mma_atom(fx.rocdl.WMMA(16, 16, WMMA_DEPTH.get(matrix, 16), dtype))
        return fx.make_tiled_mma(atom, waves), fx.make_layout(rows, 1), _stays_in_place(atom)
    parts = 64 // edge  # the lanes that share an own row
    block = VALUES * parts
    columns = fx.make_layout((4, parts, 2, rows // block), (1, VALUES, 4, block))
    if matrix == "CDNA4":
        atom = fx.make_mma_atom(fx.rocdl.MFMA(edge, edge, block, dtype))
        return fx.make_tiled_mma(atom, waves), columns, True
    # Two consecutive products use the eight values that a lane reads at a time.
    atom = fx.make_mma_atom(fx.rocdl.MFMA(edge, edge, block // 2, dtype))
    order = fx.make_tile(None, None, fx.make_layout((4, parts, 2), (1, VALUES, 4)))
    return fx.make_tiled_mma(atom, waves, order), columns, True


def _stays_in_place(atom: Any) -> bool:
    """Whether a thread holds the same elements of Cs, one below the other, and, as the next
    product's operand B, of their transposes."""
    c, b = atom.layout_C_tv, atom.layout_B_tv
    if fx.size(b) % fx.size(c):
        return False
    m, n, _ = atom.shape_mnk.unpack()
    threads, values, every = fx.size(c[0]), fx.size(c[1]), fx.size(b[1])
    return all(
        c(t, v % values) // m == b(t, v) % n
        and c(t, v % values) % m + v // values * m == b(t, v) // n
        for t in range(threads)
        for v in range(every)
    )


def across_rows(group: Workgroup, value: Any, combine: Any) -> Any:
    """Combines the values of the lanes that have the same own row."""
    distance = group.edge
    while distance < fx.num_warp_threads():
        value = combine(value, fx.shuffle_xor(value, distance))
        distance *= 2
    return value
