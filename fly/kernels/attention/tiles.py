"""Tiles of attention: rows of a head as operands of matrix instructions.

A workgroup of four waves *owns* 64 rows of some matrices, 16 in each wave, in registers. It
*streams* the rows of others through LDS in tiles, and computes two kinds of products:

    scores  = streamed · ownᵀ            rows of the tile × own rows; sums over d
    sumsᵀ  += streamedᵀ · weights        d × own rows; sums over the rows of the tile

A thread's values of both belong to one own row, so that what softmax needs to know of a row is in
one register. The forward kernel owns queries and streams K and V; that of the gradients of K and V
owns keys and streams queries. Matrices are length × d, of f16 or bf16, with adjacent elements in a
row and rows at multiples of 16 bytes. Sums are f32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fly_common.errors import UsageError
from fly_target.registry import find

import fly.expr as fx

OWN = 64  # rows of a workgroup: 16 for each wave
WAVES = 4
VALUES = 8  # that a thread moves at a time: 128 bits
MOVES = 2  # of a thread for a streamed tile
WAVE_LANES = {"CDNA2": 64, "CDNA3": 64, "CDNA4": 64, "RDNA3": 32, "RDNA4": 32}


@dataclass(frozen=True)
class Workgroup:
    """How the threads of a workgroup share tiles of rows of d elements, and products of them.

    by_row, by_column: the moves of a streamed tile. A thread has eight columns of two adjacent
    rows, and accesses eight values of a row at a time, or the two of a column.
    """

    dtype: Any
    d: int
    threads: int
    scores: Any
    sums: Any
    by_row: Any
    by_column: Any

    @property
    def rows(self) -> int:
        """The rows of a streamed tile: 16 to 64."""
        return self.threads * MOVES * VALUES // self.d

    def copy(self, values: int) -> Any:
        """The copy atom of so many values."""
        return fx.make_copy_atom(fx.UniversalCopy(self.dtype.bits * values), self.dtype)


def workgroup(dtype: Any, d: int) -> Workgroup:
    """The workgroup for the target that is traced for; UsageError if it has neither MFMA nor WMMA
    of 16×16×16."""
    arch = fx.rocdl.get_rocm_arch()
    lanes = WAVE_LANES.get(find(arch).matrix)
    if lanes is None:
        raise UsageError(f"attention needs MFMA or WMMA of 16x16x16, which {arch} lacks")
    instruction = fx.rocdl.MFMA if lanes == 64 else fx.rocdl.WMMA
    atom = fx.make_mma_atom(instruction(16, 16, 16, dtype))
    waves = fx.make_layout((1, WAVES, 1), (0, 1, 0))
    sums = scores = fx.make_tiled_mma(atom, waves)
    if fx.size(atom.layout_A_tv[1]) < VALUES:
        # Two consecutive products use the eight values of d that a thread reads at a time.
        along_d = fx.make_tile(None, None, fx.make_layout((4, 4, 2), (1, 8, 4)))
        scores = fx.make_tiled_mma(atom, waves, along_d)
    threads, groups = WAVES * lanes, d // VALUES
    places = fx.make_ordered_layout((threads // groups, groups), (1, 0))
    by_row, by_column = [
        fx.make_tiled_copy_tv(
            fx.make_copy_atom(fx.UniversalCopy(dtype.bits * values), dtype),
            places,
            fx.make_ordered_layout((MOVES, VALUES), order),
        )
        for values, order in ((VALUES, (1, 0)), (MOVES, (0, 1)))
    ]
    return Workgroup(dtype, d, threads, scores, sums, by_row, by_column)


def transposed(matrix: Any) -> Any:
    """A view of a matrix with rows and columns exchanged."""
    return fx.make_view(fx.get_iter(matrix), fx.select(fx.get_layout(matrix), [1, 0]))


def across_rows(value: Any, combine: Any) -> Any:
    """Combines the values of the lanes that have the same own row: lanes 16 apart."""
    distance = 16
    while distance < fx.num_warp_threads():
        value = combine(value, fx.shuffle_xor(value, distance))
        distance *= 2
    return value


def _coordinates(shape: Any) -> Any:
    return fx.make_view((0, 0), fx.make_identity_layout(shape))


def _within(places: Any, length: Any) -> Any:
    """Which of a thread's accesses are in the first `length` rows."""
    first = places[(0, None), None, None]
    inside = fx.make_fragment_like(first, fx.Boolean)
    for i in fx.range_constexpr(fx.size(inside)):
        inside[i] = fx.get_scalar(first[i][0]) < length
    return inside


def _along_k(matrix: Any, product: Any) -> Any:
    """Divides a matrix along K into what one product takes: (rows, columns, parts)."""
    return fx.flat_divide(matrix, (matrix.shape[0], product.tile_size_mnk[2]))[None, None, 0, None]


def _shared_matrix(dtype: Any, rows: int, columns: int) -> Any:
    """A matrix in LDS, by rows, with groups of eight values permuted by the row, so that threads
    that read one column of several rows use different banks."""
    memory = fx.SharedAllocator().allocate(fx.Array[dtype, rows * columns, 16]).peek()
    groups = (columns // VALUES).bit_length() - 1
    swizzle = fx.static(fx.SwizzleType.get(min(groups, 3), 3, max(groups, 3)))
    return memory.view(
        fx.make_composed_layout(swizzle, fx.make_ordered_layout((rows, columns), (1, 0)))
    )


class Streamed:
    """A matrix that goes through LDS, tile by tile: by rows, as scores need it, by columns, as sums
    do, or both. While one tile is used, the next is in registers."""

    def __init__(self, group: Workgroup, matrix: Any, *, rows: bool = False, columns: bool = False):
        thread, shape = fx.thread_idx.x, (group.rows, group.d)
        self.group, self.length = group, matrix.shape[0]
        load = group.by_row.get_slice(thread)
        self.source, self.places = [
            load.partition_S(fx.flat_divide(one, shape)[None, None, None, 0])
            for one in (matrix, _coordinates(matrix.shape))
        ]
        self.held = fx.make_fragment_like(self.source[None, None, None, 0])
        if rows:
            self.by_row = _shared_matrix(group.dtype, *shape)
            self.row_part = load.partition_D(self.by_row)
        if columns:
            self.by_column = _shared_matrix(group.dtype, *shape[::-1])
            store = group.by_column.get_slice(thread)
            self.column_part = store.partition_D(transposed(self.by_column))
        self.rows, self.columns = rows, columns

    def load(self, tile: Any) -> None:
        """Starts to load a tile. Rows beyond the matrix become 0."""
        inside = _within(self.places[None, None, None, tile], self.length)
        self.held.fill(0)
        source = self.source[None, None, None, tile]
        fx.copy(self.group.by_row.copy_atom, source, self.held, pred=inside)

    def store(self) -> None:
        """Stores the tile that was loaded."""
        if self.rows:
            fx.copy(self.group.by_row.copy_atom, self.held, self.row_part)
        if self.columns:
            turned = fx.make_fragment_like(self.column_part)
            for i in fx.range_constexpr(MOVES):
                for j in fx.range_constexpr(VALUES):
                    turned[j * MOVES + i] = self.held[i * VALUES + j]
            fx.copy(self.group.by_column.copy_atom, turned, self.column_part)


def own_rows(group: Workgroup, matrix: Any, tile: Any) -> list[Any]:
    """Loads the workgroup's rows of a matrix: fragments, one for each part of d. Rows beyond the
    matrix are 0."""
    thread, atom = fx.thread_idx.x, group.copy(VALUES)
    read = fx.make_tiled_copy_B(atom, group.scores).get_slice(thread)
    parts, places = [
        _along_k(fx.flat_divide(one, (OWN, group.d))[None, None, tile, 0], group.scores)
        for one in (matrix, _coordinates(matrix.shape))
    ]
    fragments = []
    for i in fx.range_constexpr(fx.size(parts.shape[2])):
        part = parts[None, None, i]
        fragment = group.scores.get_slice(thread).make_fragment_B(part)
        fragment.fill(0)
        inside = _within(read.partition_S(places[None, None, i]), matrix.shape[0])
        fx.copy(atom, read.partition_S(part), read.retile(fragment), pred=inside)
        fragments.append(fragment)
    return fragments


class Scores:
    """Where a thread's scores are: `row(i)` in the streamed tile, `own(i)` among the own rows."""

    def __init__(self, group: Workgroup):
        self.group = group
        tile = _coordinates((group.rows, OWN))
        self.places = group.scores.get_slice(fx.thread_idx.x).partition_C(tile)
        self.count = fx.size(self.places)

    def place(self, i: int) -> Any:
        """(row of the tile, own row) of the thread's score i."""
        return self.places[i].unpack()

    def of(self, streamed: Streamed, own: list[Any]) -> Any:
        """streamed · ownᵀ, for the tile in LDS: a fragment of f32."""
        scores = fx.make_fragment_like(self.places, fx.Float32)
        scores.fill(0.0)
        _multiply(self.group.scores, self.group.copy(VALUES), streamed.by_row, own, scores)
        return scores


class Sums:
    """The thread's part of the transposed sums, d × own rows, in f32."""

    def __init__(self, group: Workgroup):
        self.group = group
        tile = _coordinates((group.d, OWN))
        part = group.sums.get_slice(fx.thread_idx.x).partition_C(tile)
        self.held = fx.make_fragment_like(part, fx.Float32)
        self.held.fill(0.0)

    def scale(self, factor: Any) -> None:
        """Multiplies the sums by a number or, with the own row's, each by its own."""
        self.held.store(self.held.load() * factor)

    def add(self, streamed: Streamed, weights: list[Any]) -> None:
        """Adds streamedᵀ · weights, for the tile in LDS."""
        _multiply(self.group.sums, self.group.copy(4), streamed.by_column, weights, self.held)

    def store(self, matrix: Any, tile: Any) -> None:
        """Stores the sums as rows of a matrix, as far as it has them."""
        group, thread = self.group, fx.thread_idx.x
        # As many values as are adjacent, up to four.
        adjacent = group.sums.mma_atom.layout_C_tv(0, 1) == 1
        atom = group.copy(4 if adjacent else 1)
        write = fx.make_tiled_copy_C(atom, group.sums).get_slice(thread)
        target, places = [
            write.partition_D(transposed(fx.flat_divide(one, (OWN, group.d))[None, None, tile, 0]))
            for one in (matrix, _coordinates(matrix.shape))
        ]
        rounded = fx.make_fragment_like(self.held, group.dtype)
        rounded.store(self.held.load().to(group.dtype))
        inside = _within(places, matrix.shape[0])
        fx.copy(atom, write.retile(rounded), target, pred=inside)


class Weights:
    """Moves weights from the threads that have them, as scores, to those that the product with them
    takes them from. On CDNA and RDNA4 these are the same; on RDNA3 weights go through LDS."""

    def __init__(self, group: Workgroup):
        self.group = group
        self.in_place = _stays_in_place(group.sums.mma_atom)
        if not self.in_place:
            self.memory = _shared_matrix(group.dtype, OWN, group.rows)

    def of(self, numbers: Any, scores: Scores) -> list[Any]:
        """Fragments of numbers, a vector in the order of scores, rounded to the matrices' type."""
        group, thread = self.group, fx.thread_idx.x
        rounded = fx.make_fragment_like(scores.places, group.dtype)
        rounded.store(numbers.to(group.dtype))
        parts = _along_k(_coordinates((OWN, group.rows)), group.sums)
        in_product = group.sums.get_slice(thread)
        fragments = [
            fx.make_fragment_like(in_product.partition_B(parts[None, None, i]), group.dtype)
            for i in range(fx.size(parts.shape[2]))
        ]
        if self.in_place:
            for i, fragment in enumerate(fragments):
                fragment.store(rounded[None, i, None].load())
            return fragments
        single, wide = group.copy(1), group.copy(VALUES)
        write = fx.make_tiled_copy_C(single, group.sums).get_slice(thread)
        read = fx.make_tiled_copy_B(wide, group.sums).get_slice(thread)
        fx.barrier()  # all have read the weights before
        fx.copy(single, write.retile(rounded), write.partition_D(transposed(self.memory)))
        fx.barrier()
        parts = _along_k(self.memory, group.sums)
        for i, fragment in enumerate(fragments):
            fx.copy(wide, read.partition_S(parts[None, None, i]), read.retile(fragment))
        return fragments


def _stays_in_place(atom: Any) -> bool:
    """Whether a thread holds the same elements of C and, as the next product's operand B, of Cᵀ."""
    c, b = atom.layout_C_tv, atom.layout_B_tv
    if fx.size(c) != fx.size(b):
        return False
    m, n, _ = atom.shape_mnk.unpack()
    threads, values = fx.size(c[0]), fx.size(c[1])
    return all(
        divmod(c(t, v), m) == divmod(b(t, v), n)[::-1]
        for t in range(threads)
        for v in range(values)
    )


def _multiply(product: Any, atom: Any, a: Any, b: list[Any], c: Any) -> None:
    """Computes c += a·b, with `a` in LDS, and `b` a list of fragments, one for each part of K."""
    thread = fx.thread_idx.x
    read = fx.make_tiled_copy_A(atom, product).get_slice(thread)
    parts = _along_k(a, product)
    own = product.get_slice(thread).make_fragment_A(parts[None, None, 0])
    for i, part in enumerate(b):
        fx.copy(atom, read.partition_S(parts[None, None, i]), read.retile(own))
        fx.gemm(product, c, own, part, c)
