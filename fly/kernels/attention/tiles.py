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
    return _buffer(group, start, step, matrix.shape[0] - tile * rows, rows)


def _buffer(group: Workgroup, start: Any, step: Any, left: Any, rows: int) -> Any:
    """A tile of so many rows from a pointer on, `step` elements apart, of which `left` exist."""
    row_bytes = fx.Int32(step) * (group.dtype.bits // 8)
    size = fx.max(fx.min(left, rows) * row_bytes, 0)
    layout = fx.make_layout((rows, group.d), (step, 1))
    return fx.make_view(fx.rocdl.make_buffer_ptr(start, size), layout)


def _along_k(matrix: Any, product: Any) -> Any:
    """Divides a matrix along K into what one product takes: (rows, columns, parts)."""
    return fx.flat_divide(matrix, (matrix.shape[0], product.tile_size_mnk[2]))[None, None, 0, None]


def _shared(dtype: Any, values: int) -> Any:
    """Memory in LDS."""
    return fx.SharedAllocator().allocate(fx.Array[dtype, values, 16]).peek()


def _in_lds(group: Workgroup, rows: int, columns: Any, *, turned: bool = False) -> Any:
    """The layout of a tile in LDS: of so many rows, whose elements have the layout `columns`. Eight
    of a row are adjacent. Threads that read one column of several rows use different banks: these
    eights are permuted by the row or, with `by_eights`, lie below those of the row before, with a
    gap of one between columns. An address then is that of the thread and a constant, which is a
    part of the instruction. `turned`: rows 0, 1, 8, 9, 16, 17 … come first, then 2, 3, 10, 11 …"""
    count = step = fx.size(columns)
    if group.by_eights:
        step, gap = VALUES, (rows + 1) * VALUES
        eights = fx.make_layout((VALUES, count // VALUES), (1, gap))
        columns = fx.composition(eights, columns)
    below = (rows, step)
    if turned:
        eights = rows // VALUES
        below = ((2, VALUES // 2, eights), (step, 2 * eights * step, 2 * step))
    shape, steps = columns.shape.unpack(), columns.stride.unpack()
    layout = fx.make_layout((below[0], shape), (below[1], steps))
    if group.by_eights:
        return layout
    groups = (count // VALUES).bit_length() - 1
    swizzle = fx.static(fx.SwizzleType.get(min(groups, 3), 3, max(groups, 3)))
    return fx.make_composed_layout(swizzle, layout)


class Streamed:
    """A matrix that goes through LDS, tile by tile: by rows, as scores need it, by columns, as sums
    do, or both. While one tile is used, the next is in registers."""

    def __init__(self, group: Workgroup, matrix: Any, *, rows: bool = False, columns: bool = False):
        self.group, self.matrix = group, matrix
        self.reader = group.by_row.get_slice(fx.thread_idx.x)
        first = _rows(group, matrix, 0, group.rows)
        self.held = fx.make_fragment_like(self.reader.partition_S(first))
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
        self._load(_rows(self.group, self.matrix, tile, self.group.rows))

    def load_from(self, start: Any, left: Any) -> None:
        """Starts to load the tile from a pointer on, where so many rows of the matrix are left."""
        step = self.matrix.stride[0]
        self._load(_buffer(self.group, start, step, left, self.group.rows))

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
        multiply = _multiply_ahead if self.group.turned else _multiply
        multiply(self.group.product, self.group.copy(VALUES), streamed.by_row, own, scores)
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
        """`store`, where columns are turned: rows of sums that are 2 · d / 8 apart, which a thread
        has, are adjacent pairs of d. It has two eights of each 32 of d, and stores them whole."""
        group, atom = self.group, self.group.buffer_copy(VALUES)
        lanes = fx.make_layout(((group.edge, WAVES), 2), ((1, 2 * group.edge), group.edge))
        write = fx.make_tiled_copy_tv(atom, lanes, fx.make_layout((1, 2 * VALUES), (0, 1)))
        target = write.get_slice(thread).partition_D(_rows(group, matrix, tile, group.own))
        rounded, numbers = fx.make_fragment_like(target, group.dtype), self.held.load()
        numbers = numbers.to(group.dtype)
        apart = group.d // VALUES
        for i in fx.range_constexpr(numbers.numel):
            pair, element = divmod(i % VALUES, 2)
            rounded[i] = numbers[apart * pair + i // VALUES * 2 + element]
        fx.copy(atom, rounded, target)


class Weights:
    """Moves weights from the threads that have them, as scores, to those that the product with them
    takes them from. These are the same except on RDNA3, where weights go through LDS."""

    def __init__(self, group: Workgroup):
        self.group = group
        if not group.in_place:
            memory = _shared(group.dtype, group.own * group.rows)
            self.memory = memory.view(_in_lds(group, group.own, fx.make_layout(group.rows, 1)))

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


def _multiply(product: Any, atom: Any, a: Any, b: list[Any], c: Any) -> None:
    """Computes c += a·b, with `a` in LDS, and `b` a list of fragments, one for each part of K."""
    own, read, parts = _operands(product, atom, a)
    for i, part in enumerate(b):
        fx.copy(atom, read.partition_S(parts[None, None, i]), read.retile(own))
        fx.gemm(product, c, own, part, c)


def _multiply_ahead(product: Any, atom: Any, a: Any, b: list[Any], c: Any) -> None:
    """`_multiply`, with the operands of the next part of K read before a part's are multiplied. The
    block of rows that is multiplied first is read last: one wait is for all of a part."""
    own, read, parts = _operands(product, atom, a)
    target = read.retile(own)
    blocks = fx.size(target.shape[1])
    for i, part in enumerate(b):
        source = read.partition_S(parts[None, None, i])
        for block in reversed(range(blocks)):
            fx.copy(atom, source[None, block, None], target[None, block, None])
        fx.gemm(product, c, own, part, c)
    m, _, k = product.mma_atom.shape_mnk.unpack()
    multiplications = fx.size(own) * fx.size(product.mma_atom.layout_A_tv[0]) // (m * k)
    fx.rocdl.sched_dsrd(2 * blocks)
    for _ in b[2:]:
        fx.rocdl.sched_mfma(multiplications)
        fx.rocdl.sched_dsrd(blocks)
    fx.rocdl.sched_mfma(2 * multiplications)


def _operands(product: Any, atom: Any, a: Any) -> tuple[Any, Any, Any]:
    """The fragment for a part of `a`, the thread's copy to it, and the parts."""
    thread = fx.thread_idx.x
    read = fx.make_tiled_copy_A(atom, product).get_slice(thread)
    parts = _along_k(a, product)
    return product.get_slice(thread).make_fragment_A(parts[None, None, 0]), read, parts
