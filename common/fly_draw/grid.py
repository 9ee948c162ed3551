"""A grid of cells with labelled rows and columns, the element of every picture in this package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fly_draw.colours import EMPTY
from fly_draw.svg import Canvas

CELL_HEIGHT = 30
CHARACTER = 7.4  # width of a character in a cell, in pixels
LABEL = 11  # font size of labels
FINE, COARSE = 0.6, 2.2  # stroke widths between cells and between tiles


@dataclass(frozen=True)
class Cell:
    """`lines` of text on a background colour."""

    lines: tuple[str, ...] = ()
    fill: str = EMPTY


@dataclass(frozen=True)
class Grid:
    """Rows of cells. `row_breaks` and `column_breaks` are the tile sizes in cells; tiles are
    separated by heavy lines."""

    cells: Sequence[Sequence[Cell]]
    rows: Sequence[str]
    columns: Sequence[str]
    caption: str = ""
    row_break: int = 0
    column_break: int = 0
    least_width: float = 0  # of a cell, in pixels

    @property
    def cell_width(self) -> float:
        longest = max(
            (len(line) for row in self.cells for cell in row for line in cell.lines), default=1
        )
        header = max(map(len, self.columns), default=1)
        return max(self.least_width, CELL_HEIGHT, longest * CHARACTER + 8, header * CHARACTER + 4)

    @property
    def cell_height(self) -> float:
        lines = max((len(cell.lines) for row in self.cells for cell in row), default=1)
        return max(CELL_HEIGHT, 14 * lines + 4)

    @property
    def left(self) -> float:
        """The width of the row labels."""
        return max(map(len, self.rows), default=0) * CHARACTER + 10

    @property
    def top(self) -> float:
        """The height of the caption and the column labels."""
        return (22 if self.caption else 0) + 18

    @property
    def width(self) -> float:
        return self.left + self.cell_width * len(self.columns)

    @property
    def height(self) -> float:
        return self.top + self.cell_height * len(self.rows)

    def draw(self, canvas: Canvas, x: float, y: float) -> None:
        """Draws the grid. (x, y) is its upper left corner, including labels."""
        if self.caption:
            canvas.words(x + self.left, y + 9, self.caption, 13, "start", bold=True)
        left, top = x + self.left, y + self.top
        wide, high = self.cell_width, self.cell_height
        for column, label in enumerate(self.columns):
            canvas.words(left + (column + 0.5) * wide, top - 9, label, LABEL, fill="#555")
        for row, label in enumerate(self.rows):
            canvas.words(left - 5, top + (row + 0.5) * high, label, LABEL, "end", fill="#555")
            for column, cell in enumerate(self.cells[row]):
                _draw_cell(canvas, cell, left + column * wide, top + row * high, wide, high)
        right, bottom = left + wide * len(self.columns), top + high * len(self.rows)
        for row in range(len(self.rows) + 1):
            at = top + row * high
            canvas.line(left, at, right, at, _weight(row, self.row_break, len(self.rows)))
        for column in range(len(self.columns) + 1):
            at = left + column * wide
            canvas.line(at, top, at, bottom, _weight(column, self.column_break, len(self.columns)))


def _weight(index: int, step: int, last: int) -> float:
    heavy = index in (0, last) or (step > 1 and index % step == 0)
    return COARSE if heavy else FINE


def _draw_cell(canvas: Canvas, cell: Cell, x: float, y: float, wide: float, high: float) -> None:
    canvas.rect(x, y, wide, high, cell.fill)
    size = 12 if len(cell.lines) < 2 else 11
    first = y + high / 2 - 7 * (len(cell.lines) - 1)
    for index, line in enumerate(cell.lines):
        canvas.words(x + wide / 2, first + 14 * index, line, size)
