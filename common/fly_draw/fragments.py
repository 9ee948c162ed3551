"""The fragments of an atom or a tiled operation: who holds which element of a tile."""

from __future__ import annotations

from dataclasses import dataclass

from fly_dialect.atoms import MmaOp
from fly_dialect.layout import AnyLayout


@dataclass(frozen=True)
class Fragment:
    """`layout` maps (thread, value) to a position in a tile of `tile` rows and columns, counted
    down the columns. A `transposed` one is drawn with its columns as rows."""

    layout: AnyLayout
    tile: tuple[int, int]
    transposed: bool = False

    def caption(self, name: str) -> str:
        rows, columns = self.tile
        return f"{name}  {rows} × {columns}{', transposed' if self.transposed else ''}"


def fragments_of(op: MmaOp) -> dict[str, Fragment]:
    """A, B and C of an MMA."""
    m, n, k = op.shape_mnk
    return {
        "A": Fragment(op.thr_val_layout_a, (m, k)),
        "B": Fragment(op.thr_val_layout_b, (n, k), transposed=True),
        "C": Fragment(op.thr_val_layout_c, (m, n)),
    }
