"""Fragments of an atom or a tiled operation: which thread holds which element of a tile."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from fly_dialect import algebra, tiled
from fly_dialect.atoms import MmaOp, TiledCopySpec, TiledMmaSpec
from fly_dialect.layouts.layout import AnyLayout


@dataclass(frozen=True)
class Fragment:
    """`layout` maps (thread, value) to a position in a tile of `tile` rows and columns, numbered
    column by column. A `transposed` fragment is drawn with rows and columns exchanged."""

    layout: AnyLayout
    tile: tuple[int, int]
    transposed: bool = False

    def caption(self, name: str) -> str:
        rows, columns = self.tile
        return f"{name}  {rows} × {columns}{', transposed' if self.transposed else ''}"


def fragments_of(what: MmaOp | TiledMmaSpec | TiledCopySpec) -> dict[str, Fragment]:
    """Returns A, B and C of an MMA, or the source and the destination of a copy."""
    if isinstance(what, TiledCopySpec):
        extents = [leaf.value for leaf in algebra.integers(tiled.tile_extents(what.tile))]
        tile = extents[0], prod(extents[1:])
        source, destination = (tiled.copy_layout_tv(what, side) for side in ("src", "dst"))
        return {"source": Fragment(source, tile), "destination": Fragment(destination, tile)}
    if isinstance(what, TiledMmaSpec):
        m, n, k = tiled.tile_size(what)
        a, b, c = (tiled.mma_layout_tv(what, operand) for operand in ("a", "b", "c"))
    else:
        m, n, k = what.shape_mnk
        a, b, c = what.thr_val_layout_a, what.thr_val_layout_b, what.thr_val_layout_c
    return {
        "A": Fragment(a, (m, k)),
        "B": Fragment(b, (n, k), transposed=True),
        "C": Fragment(c, (m, n)),
    }
