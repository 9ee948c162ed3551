"""Products of tiles of attention: scores, weights and sums of a workgroup (`tiles`)."""

from __future__ import annotations

from typing import Any

import fly.expr as fx
from fly.kernels.attention.tile_memory import along_k, in_lds, shared, tile_rows
from fly.kernels.attention.tiles import Streamed
from fly.kernels.attention.views import coordinates, transposed
from fly.kernels.attention.workgroup import VALUES, WAVES, Workgroup


class Scores:
    """Where a thread's scores are: `row(i)` in the streamed tile, `own(i)` among the own rows."""

    def __init__(self, group: Workgroup, thread: Any = None):
        self.group = group
        tile = coordinates((group.rows, group.own))
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
        tile = coordinates((group.d, group.own))
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
        target = write.partition_D(transposed(tile_rows(group, matrix, tile, group.own)))
        rounded = fx.make_fragment_like(self.held, group.dtype)
        rounded.store(self.held.load().to(group.dtype))
        fx.copy(atom, write.retile(rounded), target)

    def _store_turned(self, matrix: Any, tile: Any, thread: Any) -> None:
        """`store`, where columns are turned: rows of sums that are 2 · d / 8 apart, which a thread
        has, are adjacent pairs of d. It has two eights of each 32 of d, and stores them whole."""
        group, atom = self.group, self.group.buffer_copy(VALUES)
        lanes = fx.make_layout(((group.edge, WAVES), 2), ((1, 2 * group.edge), group.edge))
        write = fx.make_tiled_copy_tv(atom, lanes, fx.make_layout((1, 2 * VALUES), (0, 1)))
        target = write.get_slice(thread).partition_D(tile_rows(group, matrix, tile, group.own))
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
            memory = shared(group.dtype, group.own * group.rows)
            self.memory = memory.view(in_lds(group, group.own, fx.make_layout(group.rows, 1)))

    def of(self, numbers: Any, scores: Scores) -> list[Any]:
        """Fragments of numbers, a vector in the order of scores, rounded to the matrices' type."""
        group, thread = self.group, fx.thread_idx.x
        rounded = fx.make_fragment_like(scores.places, group.dtype)
        rounded.store(numbers.to(group.dtype))
        parts = along_k(coordinates((group.own, group.rows)), group.product)
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
        parts = along_k(self.memory, group.product)
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
    parts = along_k(a, product)
    return product.get_slice(thread).make_fragment_A(parts[None, None, 0]), read, parts
