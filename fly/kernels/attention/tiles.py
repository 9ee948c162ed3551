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
from fly.kernels.attention.workgroup import VALUES, WAVES, Workgroup


def transposed(matrix: Any) -> Any:
    """A view of a matrix with rows and columns exchanged."""
    return fx.make_view(fx.get_iter(matrix), fx.select(fx.get_layout(matrix), [1, 0]))


def _coordinates(shape: Any) -> Any:
    return fx.make_view((0, 0), fx.make_identity_layout(shape))


def _rows(group: Workgroup, matrix: Any, tile: Any, rows: int) -> Any:
    """A tile of so many rows, as a buffer: beyond the matrix, loads are 0, and stores nothing."""
    step = matrix.stride[0]
    start = fx.get_iter(matrix) + fx.Int64(fx.Uint32(tile)) * (rows * step)
    row_bytes = fx.Int32(step) * (group.dtype.bits // 8)
    size = fx.max(fx.min(matrix.shape[0] - tile * rows, rows) * row_bytes, 0)
    layout = fx.make_layout((rows, group.d), (step, 1))
    return fx.make_view(fx.rocdl.make_buffer_ptr(start, size), layout)


def below(matrix: Any, rows: int) -> Any:
    """A matrix without its first rows."""
    step = matrix.stride[0]
    layout = fx.make_layout((matrix.shape[0] - rows, fx.size(matrix.shape[1])), (step, 1))
    return fx.make_view(fx.get_iter(matrix) + rows * step, layout)


def _along_k(matrix: Any, product: Any) -> Any:
    """Divides a matrix along K into what one product takes: (rows, columns, parts)."""
    return fx.flat_divide(matrix, (matrix.shape[0], product.tile_size_mnk[2]))[None, None, 0, None]


def _shared(dtype: Any, values: int) -> Any:
    """Memory in LDS."""
    return fx.SharedAllocator().allocate(fx.Array[dtype, values, 16]).peek()


def _by_rows(rows: int, columns: Any, *, turned: bool = False) -> Any:
    """The layout of a matrix in LDS by rows, which have the layout `columns`. Groups of eight
    values are permuted by the row, so that threads that read one column of several rows use
    different banks."""
    count = fx.size(columns)
    groups = (count // VALUES).bit_length() - 1
    swizzle = fx.static(fx.SwizzleType.get(min(groups, 3), 3, max(groups, 3)))
    below = ((VALUES, rows // VALUES), (rows // VALUES * count, count)) if turned else (rows, count)
    shape, steps = (below[0], columns.shape.unpack()), (below[1], columns.stride.unpack())
    return fx.make_composed_layout(swizzle, fx.make_layout(shape, steps))


def _in_lds(group: Workgroup, rows: int, columns: Any, *, turned: bool = False) -> Any:
    if not group.padded:
        return _by_rows(rows, columns, turned=turned)
    apart = (rows + 1) * VALUES
    c = list(zip(columns.shape.unpack(), columns.stride.unpack(), strict=True)) if isinstance(columns.shape.unpack(), tuple) else [(VALUES, 1), (fx.size(columns) // VALUES, VALUES)]
    shape = tuple(n for n, _ in c)
    steps = tuple(s // VALUES * apart if s >= VALUES else s for _, s in c)
    g = rows // VALUES
    first = ((VALUES, g), (g * VALUES, VALUES)) if turned else (rows, VALUES)
    return fx.make_layout((first[0], shape), (first[1], steps))


class Streamed:
    """A matrix that goes through LDS, tile by tile: by rows, as scores need it, by columns, as sums
    do, or both. While one tile is used, the next is in registers."""

    def __init__(self, group: Workgroup, matrix: Any, *, rows: bool = False, columns: bool = False):
        self.group, self.matrix = group, matrix
        self.reader = group.by_row.get_slice(fx.thread_idx.x)
        self.held = fx.make_fragment_like(self._part(0))
        if rows:
            layout = _in_lds(group, group.rows, fx.make_layout(group.d, 1))
            memory = _shared(group.dtype, fx.cosize(layout))
            self.by_row = memory.view(layout)
            self.row_part = self.reader.partition_D(self.by_row)
        if columns:
            layout = _in_lds(group, group.d, fx.make_layout(group.rows, 1))
            memory = _shared(group.dtype, fx.cosize(layout))
            self.by_column = memory.view(layout)
            written = memory.view(_in_lds(group, group.d, group.columns, turned=group.turned))
            store = group.by_column.get_slice(fx.thread_idx.x)
            self.column_part = store.partition_D(transposed(written))
        self.rows, self.columns = rows, columns

    def _part(self, tile: Any) -> Any:
        """The thread's part of a tile in memory."""
        return self.reader.partition_S(_rows(self.group, self.matrix, tile, self.group.rows))

    def load(self, tile: Any) -> None:
        """Starts to load a tile. Rows beyond the matrix become 0."""
        fx.copy(self.group.buffer_copy(VALUES), self._part(tile), self.held)

    def load_from(self, start, rows) -> None:
        """`load` of the first tile of a matrix."""
        matrix = fx.make_view(start, fx.make_layout((rows, self.group.d), (self.matrix.stride[0], 1)))
        part = self.reader.partition_S(_rows(self.group, matrix, 0, self.group.rows))
        fx.copy(self.group.buffer_copy(VALUES), part, self.held)

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


def own_rows(group: Workgroup, matrix: Any, tile: Any) -> list[Any]:
    """Loads the workgroup's rows of a matrix: fragments, one for each part of d. Rows beyond the
    matrix are 0."""
    thread, atom = fx.thread_idx.x, group.buffer_copy(VALUES)
    read = fx.make_tiled_copy_B(atom, group.product).get_slice(thread)
    parts = _along_k(_rows(group, matrix, tile, group.own), group.product)
    fragments = []
    for i in fx.range_constexpr(fx.size(parts.shape[2])):
        part = parts[None, None, i]
        fragment = group.product.get_slice(thread).make_fragment_B(part)
        fx.copy(atom, read.partition_S(part), read.retile(fragment))
        fragments.append(fragment)
    return fragments


class Scores:
    """Where a thread's scores are: `row(i)` in the streamed tile, `own(i)` among the own rows."""

    def __init__(self, group: Workgroup, thread: Any = None):
        self.group = group
        tile = _coordinates((group.rows, group.own))
        thread = fx.thread_idx.x if thread is None else thread
        self.places = group.product.get_slice(thread).partition_C(tile)
        self.count = fx.size(self.places)

    def place(self, i: int) -> Any:
        """(row of the tile, own row) of the thread's score i."""
        return self.places[i].unpack()

    def row(self, i: int) -> int:
        """How far score i of a thread is below its score 0, in the streamed tile."""
        layout = self.group.product.mma_atom.layout_C_tv
        values = fx.size(layout[1])
        return layout(0, i % values) % self.group.edge + i // values * self.group.edge

    def of(self, streamed: Streamed, own: list[Any]) -> Any:
        """streamed · ownᵀ, for the tile in LDS: a fragment of f32."""
        scores = fx.make_fragment_like(self.places, fx.Float32)
        scores.fill(0.0)
        import os
        _multiply(self.group.product, self.group.copy(VALUES), streamed.by_row, own, scores, ahead=int(os.environ.get("AHEAD","1")))
        return scores


class Sums:
    """The thread's part of the transposed sums, d × own rows, in f32."""

    def __init__(self, group: Workgroup):
        self.group = group
        tile = _coordinates((group.d, group.own))
        part = group.product.get_slice(fx.thread_idx.x).partition_C(tile)
        self.held = fx.make_fragment_like(part, fx.Float32)
        self.held.fill(0.0)

    def scale(self, factor: Any) -> None:
        """Multiplies the sums by a number or, with the own row's, each by its own."""
        self.held.store(self.held.load() * factor)

    def add(self, streamed: Streamed, weights: list[Any]) -> None:
        """Adds streamedᵀ · weights, for the tile in LDS."""
        _multiply(
            self.group.product, self.group.copy(VALUES), streamed.by_column, weights, self.held
        )

    def store(self, matrix: Any, tile: Any, thread: Any = None) -> None:
        """Stores the sums as rows of a matrix, as far as it has them."""
        group, thread = self.group, fx.thread_idx.x if thread is None else thread
        if group.turned:
            self._store_turned(matrix, tile, thread)
            return
        # As many values as are adjacent, up to four.
        adjacent = group.product.mma_atom.layout_C_tv(0, 1) == 1
        atom = group.buffer_copy(4 if adjacent else 1)
        write = fx.make_tiled_copy_C(atom, group.product).get_slice(thread)
        target = write.partition_D(transposed(_rows(group, matrix, tile, group.own)))
        rounded = fx.make_fragment_like(self.held, group.dtype)
        rounded.store(self.held.load().to(group.dtype))
        fx.copy(atom, write.retile(rounded), target)

    def _store_turned(self, matrix: Any, tile: Any, thread: Any) -> None:
        """`store` where the d of a thread's sums are eights."""
        group, atom = self.group, self.group.buffer_copy(VALUES)
        parts = 64 // group.edge
        threads = fx.make_layout(((group.edge, WAVES), parts), ((1, 64), group.edge))
        write = fx.make_tiled_copy_tv(atom, threads, fx.make_layout((1, 4 * VALUES), (0, 1)))
        target = write.get_slice(thread).partition_D(_rows(group, matrix, tile, group.own))
        rounded = fx.make_fragment_like(target, group.dtype)
        numbers = self.held.load().to(group.dtype)
        count = fx.size(rounded)
        below = count // (4 * VALUES)
        for i in fx.range_constexpr(count):
            element, row, block = i % VALUES, i // VALUES % 4, i // (4 * VALUES)
            rounded[i] = numbers[row + 4 * (block + below * element)]
        fx.copy(atom, rounded, target)


class Weights:
    """Moves weights from the threads that have them, as scores, to those that the product with them
    takes them from. These are the same except on RDNA3, where weights go through LDS."""

    def __init__(self, group: Workgroup):
        self.group = group
        if not group.in_place:
            memory = _shared(group.dtype, group.own * group.rows)
            self.memory = memory.view(_by_rows(group.own, fx.make_layout(group.rows, 1)))

    def of(self, numbers: Any, scores: Scores) -> list[Any]:
        """Fragments of numbers, a vector in the order of scores, rounded to the matrices' type."""
        group, thread = self.group, fx.thread_idx.x
        rounded = fx.make_fragment_like(scores.places, group.dtype)
        rounded.store(numbers.to(group.dtype))
        parts = _along_k(_coordinates((group.own, group.rows)), group.product)
        in_product = group.product.get_slice(thread)
        fragments = [
            fx.make_fragment_like(in_product.partition_B(parts[None, None, i]), group.dtype)
            for i in range(fx.size(parts.shape[2]))
        ]
        if group.in_place:
            values = fx.size(fragments[0])
            for i, fragment in enumerate(fragments):
                for j in fx.range_constexpr(values):
                    fragment[j] = rounded[i * values + j]
            return fragments
        single, wide = group.copy(1), group.copy(VALUES)
        write = fx.make_tiled_copy_C(single, group.product).get_slice(thread)
        read = fx.make_tiled_copy_B(wide, group.product).get_slice(thread)
        fx.barrier()  # all have read the weights before
        fx.copy(single, write.retile(rounded), write.partition_D(transposed(self.memory)))
        fx.barrier()
        parts = _along_k(self.memory, group.product)
        for i, fragment in enumerate(fragments):
            fx.copy(wide, read.partition_S(parts[None, None, i]), read.retile(fragment))
        return fragments


def _multiply(product: Any, atom: Any, a: Any, b: list[Any], c: Any, ahead: int = 0) -> None:
    """Computes c += a·b, with `a` in LDS, and `b` a list of fragments, one for each part of K."""
    thread = fx.thread_idx.x
    read = fx.make_tiled_copy_A(atom, product).get_slice(thread)
    parts = _along_k(a, product)
    own = product.get_slice(thread).make_fragment_A(parts[None, None, 0])
    for i, part in enumerate(b):
        src, dst = read.partition_S(parts[None, None, i]), read.retile(own)
        if ahead:
            for m in reversed(range(int(fx.size(src.shape[1])))):
                fx.copy(atom, src[None, m, None], dst[None, m, None])
        else:
            fx.copy(atom, src, dst)
        fx.gemm(product, c, own, part, c)
    if ahead:
        reads = int(fx.size(own)) // VALUES
        m, n, k = product.mma_atom.shape_mnk.unpack()
        many = int(fx.size(own)) * 64 // (m * k)
        count = len(b)
        for i in range(count):
            first = reads * (min(ahead, count) + 1) if i == 0 else reads
            if i + ahead < count:
                fx.rocdl.sched_group_barrier(0x100, first, 0)
            fx.rocdl.sched_group_barrier(0x008, many, 0)
