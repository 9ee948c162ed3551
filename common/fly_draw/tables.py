"""The kinds of grids: offsets, banks, and the threads and values of a tile."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from fly_draw import colours
from fly_draw.grid import Cell, Grid
from fly_draw.reads import Reads

MOST_CELLS = 1 << 14


def numbered(count: int) -> list[str]:
    return [str(number) for number in range(count)]


def offset_grid(offsets: Sequence[Sequence[int]], caption: str, breaks: tuple[int, int]) -> Grid:
    """Each cell shows its offset; greater offsets are darker."""
    greatest = max(max(row) for row in offsets)
    least = min(min(row) for row in offsets)
    span = max(1, greatest - least)
    cells = [
        [Cell((str(offset),), colours.shade((offset - least) / span)) for offset in row]
        for row in offsets
    ]
    rows, columns = numbered(len(offsets)), numbered(len(offsets[0]))
    return Grid(cells, rows, columns, caption, *breaks)


def bank_grid(
    offsets: Sequence[Sequence[int]],
    reads: Reads,
    caption: str,
    breaks: tuple[int, int],
) -> Grid:
    """Each cell shows the LDS bank of its element and is coloured by bank. A row or column label
    ends with the degree of conflict of lanes that read along it, starting with lane 0."""
    cells = [[_bank_cell(reads.bank(offset), reads.banks) for offset in row] for row in offsets]
    rows = [
        f"{number}  ×{reads.degree(row[:: reads.vector])}" for number, row in enumerate(offsets)
    ]
    columns = [
        str(number)
        if number % reads.vector
        else f"{number} ×{reads.degree([row[number] for row in offsets])}"
        for number in range(len(offsets[0]))
    ]
    return Grid(cells, rows, columns, caption, *breaks)


def _bank_cell(bank: int, count: int) -> Cell:
    return Cell((str(bank),), colours.wheel(bank, count))


Holders = Mapping[tuple[int, int], Sequence[tuple[int, int]]]


def holder_grid(
    holders: Holders, shape: tuple[int, int], caption: str, breaks: tuple[int, int] = (0, 0)
) -> Grid:
    """Each cell shows the thread and value that hold the element, coloured by thread. If several
    hold it, the cell shows the first one and the number of others."""
    cells = [
        [_holder_cell(holders.get((row, column), ())) for column in range(shape[1])]
        for row in range(shape[0])
    ]
    return Grid(cells, numbered(shape[0]), numbered(shape[1]), caption, *breaks)


def _holder_cell(found: Sequence[tuple[int, int]]) -> Cell:
    if not found:
        return Cell()
    thread, value = found[0]
    more = f" +{len(found) - 1}" if len(found) > 1 else ""
    return Cell((f"T{thread}{more}", f"V{value}"), colours.hue(thread))


def holders_of(positions: Sequence[Sequence[int]], rows: int) -> dict[tuple[int, int], list]:
    """Maps (row, column) to the threads and values that hold it. `positions[thread][value]` is an
    element's position in the tile, numbered column by column."""
    found: dict[tuple[int, int], list] = defaultdict(list)
    for thread, values in enumerate(positions):
        for value, position in enumerate(values):
            found[position % rows, position // rows].append((thread, value))
    return found
