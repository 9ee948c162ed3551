"""How tiles lie in shared memory, and what multiplies them: forward, and for gradients.

Both tile keys by 128: forward a group has 64 queries of scores with all of them, backward a group
has 64 of the keys.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fly_trace.values.dtypes import EVERY

import fly.expr as fx
from fly.kernels.attention.warpgroups.groups import GROUPS, ROW, ROWS, result_layout

KEYS = 128  # of a tile
QUERIES = {64: 128, 128: 64}  # of a tile of the gradients' kernels, for each d


class Forward(NamedTuple):
    """The layouts in shared memory, and the multiplications: of queries and keys, of weights and
    values."""

    queries: Any
    keys: Any
    results: Any
    scores: Any
    outputs: Any


class Backward(NamedTuple):
    """The layouts in shared memory of own rows, streamed rows, numbers of these, and dS; and the
    multiplications: of scores and dP, of dV and dK, of dQ."""

    own: Any
    streamed: Any
    numbers: Any
    gradients: Any
    scores: Any
    sums: Any
    queries: Any


def _tile(dtype: Any, rows: int, columns: int) -> Any:
    return fx.nvvm.tile_layout(dtype, (rows, columns), 1, ROW)


def _product(dtype: Any, columns: int, steps: Any, weights: bool = False) -> Any:
    """Of groups that are apart by `steps`; of weights, which are in registers."""
    atom = fx.make_mma_atom(fx.nvvm.WGMMA(columns, dtype, a_in_registers=weights))
    return fx.make_tiled_mma(atom, steps)


def _above() -> Any:
    return fx.make_layout((GROUPS, 1, 1), (1, 0, 0))


def forward(element: str, d: int) -> Forward:
    """For elements of a type, and heads of d."""
    dtype, above = EVERY[element], _above()
    return Forward(
        _tile(dtype, GROUPS * ROWS, d),
        _tile(dtype, KEYS, d),
        result_layout(dtype),
        _product(dtype, KEYS, above),
        _product(dtype, d, above, weights=True),
    )


def backward(element: str, d: int) -> Backward:
    """For elements of a type, and heads of d."""
    dtype, rows, above = EVERY[element], QUERIES[d], _above()
    width, beside = columns(d), fx.make_layout((1, GROUPS, 1), (0, 1, 0))
    return Backward(
        _tile(dtype, KEYS, d),
        _tile(dtype, rows, d),
        fx.make_layout((rows,), (1,)),
        _tile(dtype, KEYS, rows),
        _product(dtype, rows, above),
        _product(dtype, d, above, weights=True),
        _product(dtype, width, above if width == d else beside),
    )


def columns(d: int) -> int:
    """Those of a tile of dQ that a group adds to: all, of its own 64 queries, or a half."""
    return d if QUERIES[d] > ROWS else d // GROUPS
