"""What the warps of decoding multiply by, and a lane's part of keys, queries and values."""

from __future__ import annotations

from typing import Any

import fly.expr as fx
from fly.kernels.attention.decoding.cache_rows import fragment_of, load_run
from fly.kernels.attention.vectors import WIDTH

UNIT = 16  # keys of a product with values
EDGE = 8  # heads of a product with values, and keys of one with queries


class Product:
    """The multiplication of a warp: 16 × 16 times 16 × 8."""

    def __init__(self, dtype: Any):
        self.dtype = dtype
        atom = fx.make_mma_atom(fx.nvvm.MMA(UNIT, EDGE, UNIT, dtype, fx.Float32))
        self.product = fx.make_tiled_mma(atom, fx.make_layout((1, 1, 1), (0, 0, 0)))
        self.own = self.product.get_slice(fx.lane_id())

    def zeros(self) -> Any:
        """Sums of a lane: of rows r and r + 8, each of columns 2c and 2c + 1."""
        tile = fx.make_view((0, 0), fx.make_identity_layout((UNIT, EDGE)))
        sums = fx.make_fragment_like(self.own.partition_C(tile), fx.Float32)
        sums.fill(0.0)
        return sums

    def a(self, upper: list[Any], lower: list[Any]) -> Any:
        """The first operand, of four values of row r and four of row r + 8."""
        values = [*upper[:2], *lower[:2], *upper[2:], *lower[2:]]
        tile = fx.make_view((0, 0), fx.make_identity_layout((UNIT, UNIT)))
        return fragment_of(self.own.partition_A(tile), values)

    def b(self, values: list[Any]) -> Any:
        """The second operand, of four values of column r."""
        tile = fx.make_view((0, 0), fx.make_identity_layout((EDGE, UNIT)))
        return fragment_of(self.own.partition_B(tile), values)

    def add(self, sums: Any, a: Any, b: Any) -> None:
        """sums += a · b"""
        fx.gemm(self.product, sums, a, b, sums)


def value_part(row: Any, lane_row: Any, d: int) -> list[Any]:
    """A lane's elements of a value: each eighth vector."""
    run = value_run(d)
    parts = range(0, d // run, EDGE)
    return [x for part in parts for x in load_run(row, (part + lane_row) * run, run)]


def value_run(d: int) -> int:
    """The adjacent elements of a value that a lane has."""
    return min(WIDTH, d // EDGE)
