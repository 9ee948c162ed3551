"""Tiles of attention: rows of a head as operands of matrix instructions.

A workgroup of four waves *owns* rows of some matrices, 16 or 32 in each wave, in registers. It
*streams* the rows of others through LDS in tiles, and computes two kinds of products:

    scores  = streamed · ownᵀ            rows of the tile × own rows; sums over d
    sumsᵀ  += streamedᵀ · weights        d × own rows; sums over the rows of the tile

A thread's values of both belong to one own row, so that what softmax needs to know of a row is in
one register. The forward kernel owns queries and streams K and V; that of the gradients of K and V
owns keys and streams queries. Matrices are length × d, of f16 or bf16, with adjacent elements in a
row and rows at multiples of 16 bytes. Sums are f32.
"""

from __future__ import annotations

from typing import Any

import fly.expr as fx
from fly.kernels.attention.tile_memory import along_k, in_lds, shared, tile_from, tile_rows
from fly.kernels.attention.views import transposed
from fly.kernels.attention.workgroup import VALUES, Workgroup


class Streamed:
    """A matrix that goes through LDS, tile by tile: by rows, as scores need it, by columns, as sums
    do, or both. While one tile is used, the next is in registers."""

    def __init__(self, group: Workgroup, matrix: Any, *, rows: bool = False, columns: bool = False):
        self.group, self.matrix = group, matrix
        self.reader = group.by_row.get_slice(fx.thread_idx.x)
        first = tile_rows(group, matrix, 0, group.rows)
        self.held = fx.make_fragment_like(self.reader.partition_S(first))
        if rows:
            layout = in_lds(group, group.rows, fx.make_layout(group.d, 1))
            memory = shared(group.dtype, fx.cosize(layout))
            self.by_row = memory.view(layout)
            self.row_part = self.reader.partition_D(self.by_row)
        if columns:
            layout = in_lds(group, group.d, fx.make_layout(group.rows, 1))
            memory = shared(group.dtype, fx.cosize(layout))
            self.by_column = memory.view(layout)
            written = memory.view(in_lds(group, group.d, group.columns, turned=group.turned))
            store = group.by_column.get_slice(fx.thread_idx.x)
            self.column_part = store.partition_D(transposed(written))
        self.rows, self.columns = rows, columns

    @property
    def start(self) -> Any:
        """A pointer to the first row of the matrix."""
        return fx.get_iter(self.matrix)

    @property
    def step(self) -> Any:
        """How many elements a tile is behind the one before."""
        return self.group.rows * self.matrix.stride[0]

    def load(self, tile: Any) -> None:
        """Starts to load a tile. Rows beyond the matrix become 0."""
        self._load(tile_rows(self.group, self.matrix, tile, self.group.rows))

    def load_from(self, start: Any, left: Any) -> None:
        """Starts to load the tile from a pointer on, where so many rows of the matrix are left."""
        step = self.matrix.stride[0]
        self._load(tile_from(self.group, start, step, left, self.group.rows))

    def _load(self, tile: Any) -> None:
        fx.copy(self.group.buffer_copy(VALUES), self.reader.partition_S(tile), self.held)

    def store(self) -> None:
        """Stores the tile that was loaded."""
        if self.rows:
            fx.copy(self.group.by_row.copy_atom, self.held, self.row_part)
        if self.columns:
            turned = fx.make_fragment_like(self.column_part)
            moves = self.group.moves
            for i in fx.range_constexpr(moves):
                for j in fx.range_constexpr(VALUES):
                    turned[j * moves + i] = self.held[i * VALUES + j]
            fx.copy(self.group.by_column.copy_atom, turned, self.column_part)


def advance(step: Any, *streamed: Streamed) -> None:
    """Makes the tiles that were loaded those of LDS, and starts to load the ones behind `step`."""
    publish(*streamed)
    for one in streamed:
        one.load(step + 1)


def publish(*streamed: Streamed) -> None:
    """Makes the tiles that were loaded those of LDS."""
    fx.barrier()  # all have read the tiles before
    for one in streamed:
        one.store()
    fx.barrier()


def own_rows(group: Workgroup, matrix: Any, tile: Any) -> list[Any]:
    """Loads the workgroup's rows of a matrix: fragments, one for each part of d. Rows beyond the
    matrix are 0."""
    thread, atom = fx.thread_idx.x, group.buffer_copy(VALUES)
    read = fx.make_tiled_copy_B(atom, group.product).get_slice(thread)
    parts = along_k(tile_rows(group, matrix, tile, group.own), group.product)
    fragments = []
    for i in fx.range_constexpr(fx.size(parts.shape[2])):
        part = parts[None, None, i]
        fragment = group.product.get_slice(thread).make_fragment_B(part)
        fx.copy(atom, read.partition_S(part), read.retile(fragment))
        fragments.append(fragment)
    return fragments
