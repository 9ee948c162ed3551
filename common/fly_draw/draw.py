"""`draw`: the entry point of the package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

from fly_dialect import algebra
from fly_dialect.layouts.integers import Int
from fly_dialect.layouts.layout import AnyLayout, ComposedLayout, Layout
from fly_dialect.types import bits

from fly_draw import pictures, tables
from fly_draw.fragments import Fragment, fragments_of
from fly_draw.grid import Grid
from fly_draw.pictures import Options
from fly_draw.reads import Reads
from fly_draw.subject import subject
from fly_draw.svg import MARGIN, Canvas, Picture

GAP = 28  # pixels between two grids
PAGE = 1600  # page width in pixels


def draw(
    what: Any,
    *,
    tile: tuple[int, int] | None = None,
    element: str | None = None,
    vector: int = 1,
    target: str = "gfx942",
    picture: str | None = None,
) -> Picture:
    """Draws a layout, a thread-value layout, a tiled copy or an MMA.

    `what` is one of these as a data object, as a value of the language, or as text: `(4,8):(1,4)`,
    `S<3,3,3> o 0 o (8,64):(64,1)`, `!fly.tiled_mma<…>`. Everything must be static.

    tile        treat the layout as (thread, value) → position in a tile of this shape, numbered
                column by column; each cell shows the thread and value that hold it
    element     an element type such as f16: also show each element's LDS bank, and the degree of
                conflict when each lane reads `vector` elements along a row or a column
    target      the chip whose LDS is shown: its number of banks and the lanes served together
    picture     the name of another picture (`fly_draw.pictures`), which a plugin may have

    Raises ValueError if the layout cannot be drawn: dynamic extents, or too many cells.
    """
    found = subject(what)
    name = picture or ("layout" if isinstance(found, (Layout, ComposedLayout)) else "operation")
    return pictures.find(name)(found, Options(tile, element, vector, target))


def draw_operation(found: Any, options: Options) -> Picture:
    """Draws the fragments of a tiled copy or an MMA."""
    if isinstance(found, (Layout, ComposedLayout)):
        raise ValueError(f"{found} is neither a tiled copy nor an MMA")
    return _arranged(str(found), fragments_of(found))


def draw_layout(found: Any, options: Options) -> Picture:
    """Draws the offsets of a layout, or what holds each element of a tile."""
    title, tile, element = str(found), options.tile, options.element
    if not isinstance(found, (Layout, ComposedLayout)):
        raise ValueError(f"{found} is not a layout")
    if not found.is_static:
        raise ValueError(f"{found} is not static: its values are only known at launch")
    if tile is not None:
        caption = f"{title} in a tile of {tile[0]} × {tile[1]}"
        return _side_by_side(title, [_holders(Fragment(found, tile), caption)])
    offsets = _offsets(found)
    breaks = _breaks(found)
    grids = [tables.offset_grid(offsets, title, breaks)]
    if element is not None:
        width = bits(element) // 8
        if not width:
            raise ValueError(f"{element} is smaller than a byte, but LDS addresses are in bytes")
        reads = Reads(options.target, width, options.vector)
        caption = (
            f"LDS banks of {element} on {options.target}, {options.vector} a lane; ×n: an n-way"
            " conflict along it"
        )
        grids.append(tables.bank_grid(offsets, reads, caption, breaks))
    return _side_by_side(title, grids)


# -- layouts --------------------------------------------------------------------------------------
def _offsets(layout: AnyLayout) -> list[list[int]]:
    """Returns the offset of each coordinate. Mode 0 gives the rows; the other modes give the
    columns, the first fastest. A layout of rank 1 is one row."""
    rows, columns = _extents(layout)
    _bounded(rows * columns)
    return [
        [_offset(layout, row + rows * column) for column in range(columns)] for row in range(rows)
    ]


def _extents(layout: AnyLayout) -> tuple[int, int]:
    shape = layout.shape
    if not isinstance(shape, tuple):
        return 1, shape.value
    if len(shape) == 1:
        return 1, _size(shape)
    return _size(shape[0]), _size(shape[1:])


def _size(shape: Any) -> int:
    return prod(leaf.value for leaf in algebra.integers(shape))


def _offset(layout: AnyLayout, number: int) -> int:
    """Returns the offset of the coordinate `number`."""
    offset = algebra.crd2idx(Int(number), layout)
    if not isinstance(offset, Int) or offset.value is None:
        raise ValueError(f"{layout} maps to coordinates, not offsets: there are no numbers to draw")
    return offset.value


def _breaks(layout: AnyLayout) -> tuple[int, int]:
    """Returns the rows and columns of a tile of the layout: its innermost modes."""
    shape = layout.shape
    if not isinstance(shape, tuple) or len(shape) == 1:
        return 0, _innermost(shape)
    return _innermost(shape[0]), _innermost(shape[1] if len(shape) == 2 else shape[1:])


def _innermost(mode: Any) -> int:
    return algebra.integers(mode)[0].value if isinstance(mode, tuple) else 0


def _bounded(cells: int) -> None:
    if cells > tables.MOST_CELLS:
        raise ValueError(
            f"{cells} cells are too many to draw ({tables.MOST_CELLS} at most): draw a part of it"
        )


# -- threads and values ---------------------------------------------------------------------------
def _holders(fragment: Fragment, caption: str) -> Grid:
    """Draws the thread and value that hold each element of a tile."""
    layout, (rows, columns) = fragment.layout, fragment.tile
    _bounded(rows * columns)
    shape = layout.shape
    if not isinstance(shape, tuple) or len(shape) != 2:
        raise ValueError(f"{layout} has no modes (thread, value)")
    threads, values = map(_size, shape)
    positions = [
        [_offset(layout, thread + threads * value) for value in range(values)]
        for thread in range(threads)
    ]
    last = max(map(max, positions))
    if last >= rows * columns:
        raise ValueError(f"{layout} reaches position {last}, beyond a tile of {rows} × {columns}")
    found = tables.holders_of(positions, rows)
    if fragment.transposed:
        found = {(column, row): who for (row, column), who in found.items()}
        rows, columns = columns, rows
    return tables.holder_grid(found, (rows, columns), caption)


def _side_by_side(title: str, grids: Sequence[Grid]) -> Picture:
    """Places the grids side by side if the page is wide enough, otherwise below each other."""
    wide = sum(grid.width for grid in grids) + GAP * len(grids) > PAGE
    canvas, x, y = Canvas(), float(MARGIN), float(MARGIN)
    for grid in grids:
        grid.draw(canvas, x, y)
        x, y = (x, y + grid.height + GAP) if wide else (x + grid.width + GAP, y)
    return canvas.picture(title)


def _arranged(title: str, found: dict[str, Fragment]) -> Picture:
    """Places the parts of a copy side by side. Places A left of C and B above it for an MMA, so
    that rows and columns line up as in a written matrix product."""
    grids = {name: _holders(fragment, fragment.caption(name)) for name, fragment in found.items()}
    if "C" not in grids:
        return _side_by_side(title, list(grids.values()))
    a, b, c = (grids[name] for name in "ABC")
    widest = max(b.cell_width, c.cell_width)
    b, c = (replace(grid, least_width=widest) for grid in (b, c))
    canvas = Canvas()
    left, top = MARGIN + a.width + GAP, MARGIN + b.height + GAP
    b.draw(canvas, left, MARGIN)
    a.draw(canvas, MARGIN, top)
    c.draw(canvas, left, top)
    return canvas.picture(title)
