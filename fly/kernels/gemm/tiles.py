"""Products of tiles in a kernel: each block multiplies tiles of A and B in LDS, and loads the next
ones while it does. `tiled_products` says how tiles lie there, and what multiplies them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fly_trace.values.dtypes import EVERY

import fly.expr as fx
from fly.kernels.gemm.movers import Mover
from fly.kernels.gemm.plans import Access, Plan
from fly.kernels.gemm.tiled_products import (
    all_loaded,
    multiply,
    products_first,
    shared_tiles,
    zeros,
)


def tile_end(extent: Any, first: Any, size: int) -> Any:
    """The end of a tile that begins within an extent: the extent, unless it is known to be whole
    tiles. Nothing is then tested at the end."""
    return first + size if isinstance(extent, int) and extent % size == 0 else extent


class Part(NamedTuple):
    """The part of an operand that a block multiplies.

    start: the address of its first element. steps: the distances of rows (of A, or columns of B)
    and of values of K. extents: how many there are of both, one row at least.
    """

    start: Any
    steps: tuple[Any, Any]
    extents: tuple[Any, Any]

    def operand(self, access: Access, lds: Any) -> Operand:
        return Operand(self, access, lds)

    @classmethod
    def of_a(cls, A: Any, access: Access, batch: Any, rows: Any, k: Any) -> Part:
        """The elements of matrix `batch` of A in ranges of rows and of K: pairs of first and
        last."""
        return cls._of(A, batch, (1, 2), access, rows, k)

    @classmethod
    def of_b(cls, B: Any, access: Access, batch: Any, columns: Any, k: Any) -> Part:
        """As `of_a`, of B."""
        return cls._of(B, batch, (2, 1), access, columns, k)

    @classmethod
    def _of(cls, X: Any, batch: Any, modes: Any, access: Access, rows: Any, k: Any) -> Part:
        across, along = [X.stride[mode] for mode in modes]
        steps = (across, 1) if access.along_k else (1, along)
        first = [fx.Int64(one) * step for one, step in zip((rows[0], k[0]), steps, strict=True)]
        start = fx.get_iter(X) + (fx.Int64(batch) * X.stride[0] + first[0] + first[1])
        return cls(start, steps, (rows[1] - rows[0], k[1] - k[0]))


class Operand:
    """The tiles of a part of a matrix."""

    def __init__(self, part: Part, access: Access, lds: Any):
        self.part, self.mover = part, Mover(part.start.dtype, access, lds)
        rows, self.width = [fx.size(lds.shape[mode]) for mode in range(2)]
        places = self.mover.places
        self.columns = fx.make_fragment_like(places, fx.Int32)
        self.source = self.mover.source(part.start)
        distance = self.mover.distance
        self.offsets = fx.make_fragment_like(places, distance)
        across, along = [distance(step) for step in part.steps]
        last = fx.min(part.extents[0], rows) - (1 if access.along_k else self.mover.vector)
        for i in fx.range_constexpr(fx.size(places)):
            row, column = places[i].unpack()
            # Rows beyond the matrix are not stored in the end, so any row is loaded for them.
            row = fx.min(distance(row), distance(last))
            self.columns[i] = fx.Int32(column)
            self.offsets[i] = row * across + distance(column) * along

    def load(self, step: Any, whole: bool) -> None:
        """Starts to load a tile, of which only a part is in the matrix unless `whole`."""
        inside, first = None, step * self.width  # of K
        if not whole:
            inside = fx.make_fragment_like(self.columns, fx.Boolean)
            for i in fx.range_constexpr(fx.size(inside)):
                inside[i] = self.columns[i] < self.part.extents[1] - first
        self.mover.load(self.source, first * self.part.steps[1], self.offsets, inside)


class Tiles:
    """The tiles of both operands, and a thread's part in multiplying them."""

    def __init__(self, plan: Plan, product: Any, a: Any, b: Part):
        """`a` is a `Part`, or another one whose `operand` loads tiles of rows along K."""
        dtype = EVERY[plan.unit.element]
        lds_a, lds_b = [shared_tiles(plan.unit, rows) for rows in (plan.rows, plan.columns)]
        self.a = a.operand(plan.a, lds_a)
        self.b = b.operand(plan.b, lds_b)
        self.plan, self.product = plan, product
        thread = fx.thread_idx.x
        self.wide = fx.make_copy_atom(fx.UniversalCopy128b(), dtype)
        read_b = fx.make_tiled_copy_A(self.wide, product).get_slice(thread)
        read_a = fx.make_tiled_copy_B(self.wide, product).get_slice(thread)
        _, _, part = product.tile_size_mnk.unpack()
        parts_b = fx.flat_divide(lds_b, (plan.columns, part))[None, None, 0, None, None]
        parts_a = fx.flat_divide(lds_a, (plan.rows, part))[None, None, 0, None, None]
        own = product.get_slice(thread)
        self.own_b = own.make_fragment_A(parts_b[None, None, 0, 0])
        self.own_a = own.make_fragment_B(parts_a[None, None, 0, 0])
        self.from_b, self.from_a = read_b.partition_S(parts_b), read_a.partition_S(parts_a)
        self.to_b, self.to_a = read_b.retile(self.own_b), read_a.retile(self.own_a)
        self.parts = plan.unit.depth // part

    def load(self, step: Any) -> None:
        self.a.load(step, self.plan.whole)
        self.b.load(step, self.plan.whole)

    def store(self, stage: Any) -> None:
        all_loaded(self.plan.unit)
        self.a.mover.store(stage)
        self.b.mover.store(stage)

    def multiply(self, stage: Any, c: Any) -> None:
        for part in fx.range_constexpr(self.parts):
            fx.copy(self.wide, self.from_b[None, None, None, part, stage], self.to_b)
            fx.copy(self.wide, self.from_a[None, None, None, part, stage], self.to_a)
            multiply(self.plan.unit, self.product, c, self.own_b, self.own_a)

    def sum(self, first: Any, last: Any) -> Any:
        """Returns the sums of the products of tiles `first` to `last`, of which there is one at
        least, as a fragment of Cᵀ."""
        c = zeros(self.plan, self.product)
        self.load(first)
        self.store(0)
        fx.barrier()
        stage = 0
        for step in range(first + 1, last, unroll=1):
            self.load(step)
            self.multiply(stage, c)
            products_first(self.plan.unit)
            stage = 1 - stage
            self.store(stage)
            fx.barrier()
        self.multiply(stage, c)
        return c
