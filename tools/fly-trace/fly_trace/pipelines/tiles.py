"""The buffers of a ring: tiles in shared memory, in as many stages.

A tile has rows along its second mode. Where 32, 64 or 128 bytes divide a row it has the swizzled
layout that tensor maps and matrix instructions share; else rows follow each other. Either way it is
16-byte pieces without gaps, which threads copy one by one.
"""

from __future__ import annotations

from typing import Any

from fly_dialect.types import PtrSpec

from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.layouts.layouts import Layout, SwizzleType, make_layout, static
from fly_trace.layouts.swizzled_tiles import GROUP, SWIZZLES, swizzled_tile
from fly_trace.memory.pointers import Pointer, apply_swizzle, recast_iter
from fly_trace.memory.tensors import Tensor
from fly_trace.memory.view_construction import make_view, static_layout
from fly_trace.values.dtypes import DType

ALIGNMENT = 1024  # bytes after which the pattern of a swizzle repeats


class Tile:
    """Rows × columns of elements. `row` is the bytes of a swizzled row, 0 for none."""

    def __init__(self, what: str, dtype: Any, shape: Any):
        plain = isinstance(shape, tuple) and len(shape) == 2 and all(type(n) is int for n in shape)
        if not isinstance(dtype, DType) or not plain or min(shape) < 1:
            tracing.refuse(
                f"{what} takes an element type and the rows and columns of a tile, not"
                f" {describe(dtype)} and {describe(shape)}",
                "as in a=(fx.Float16, (128, 64))",
            )
        self.dtype, self.rows, self.columns = dtype, *shape
        row_bytes = self.columns * dtype.bits // 8
        if dtype.bits % 8 or row_bytes % GROUP:
            tracing.refuse(
                f"{what}: {self.columns} elements of {dtype.name} are no whole groups of {GROUP}"
                " bytes",
                "give tiles more columns",
            )
        self.row = next((row for row in (128, 64, 32) if row_bytes % row == 0), 0)
        self.unit = GROUP * 8 // dtype.bits  # elements of a piece
        self.nbytes = self.rows * row_bytes
        self.pieces = self.nbytes // GROUP

    @property
    def elements(self) -> int:
        return self.rows * self.columns

    @property
    def layout(self) -> Any:
        """The layout, for a tensor map."""
        if self.row:
            return swizzled_tile(self.dtype, (self.rows, self.columns), 1, self.row)
        return make_layout((self.rows, self.columns), (self.columns, 1))

    def _linear(self) -> Layout:
        spec = self.layout.spec.layout
        return static_layout(spec.linear) if self.row else self.layout

    def place(self, piece: Any) -> tuple[Any, Any]:
        """The row and the column of the first element of a piece. Threads with adjacent pieces use
        all banks, and adjacent addresses of memory."""
        if not self.row:
            across = self.columns // self.unit
            return piece // across, piece % across * self.unit
        groups = self.row // GROUP  # of a row of a column of the tile
        line, found = piece // groups, piece % groups
        # The swizzle: bits of the address from 7 on change those from 4 on.
        group = found ^ ((piece * GROUP >> 7) & (groups - 1))
        column = line // self.rows * (self.row * 8 // self.dtype.bits)
        return line % self.rows, column + group * self.unit


class Buffer:
    """A tile in shared memory, for each stage."""

    def __init__(self, tile: Tile, stages: int):
        from fly_trace.memory.shared_memory import SharedAllocator
        from fly_trace.memory.structs import Array

        self.tile = tile
        self.step = -(-tile.nbytes // ALIGNMENT) * ALIGNMENT * 8 // tile.dtype.bits
        kind = Array[tile.dtype, self.step * stages]
        self.base: Pointer = SharedAllocator().allocate(kind, ALIGNMENT).peek().ptr
        self.plain = tile._linear()

    def view(self, stage: Any) -> Tensor:
        """The tile of a stage."""
        pointer = self.base + stage * self.step
        if self.tile.row:
            swizzle = static(SwizzleType.get(SWIZZLES[self.tile.row], 4, 3))
            pointer = apply_swizzle(pointer, swizzle)
        return make_view(pointer, self.plain)

    def piece(self, stage: Any, piece: Any) -> Tensor:
        """The view of a piece of a tile's memory."""
        return piece_at(self.base + (stage * self.step + piece * self.tile.unit))


def piece_at(pointer: Pointer) -> Tensor:
    """The view of the 16 bytes at a pointer, which are at a multiple of 16 bytes."""
    spec = PtrSpec(pointer.spec.element, pointer.spec.space, GROUP)
    count = GROUP * 8 // pointer.dtype.bits
    return make_view(recast_iter(spec, pointer), make_layout(count, 1))
