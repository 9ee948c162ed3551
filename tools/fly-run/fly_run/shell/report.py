"""The table of results on standard error, and the progress bar of a long run."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fly_host.refusals import show

from fly_run.launch.arrays import dtypes
from fly_run.launch.completed import Ran
from fly_run.shell.argument_values import Given

if TYPE_CHECKING:
    import numpy as np

SHOWN = 4  # number of elements of a result that are shown
PATIENCE = 1.0  # seconds before a progress bar appears


def report(given: Given, ran: list[Ran], device: str, remarks: tuple[str, ...]) -> None:
    """Prints the arguments with their values after the run, the launches, and the device's
    remarks."""
    rows = [
        ("name", "dtype", "shape", "min", "max", "mean", "first", "result"),
        *(_row(given, name, value) for name, value in given.values.items()),
    ]
    table(rows)
    for one in ran:
        print(_launched(one, device), file=sys.stderr)
    for remark in remarks:
        print(remark, file=sys.stderr)


def table(rows: list[tuple[str, ...]], lines: Sequence[str] = ()) -> None:
    """Prints a table, and lines below it."""
    if sys.stderr.isatty():
        print_rich(rows)
    else:
        print("\n".join(aligned(rows)), file=sys.stderr)
    for line in lines:
        print(line, file=sys.stderr)


def _row(given: Given, name: str, value: Any) -> tuple[str, ...]:
    if name not in given.dtypes:
        held = f"bytes:{value.hex()}" if isinstance(value, bytes) else _number(value)
        return (name, "", "", "", "", "", held, "")
    shape = "×".join(map(str, value.shape)) or "()"
    destination = given.destinations.get(name)
    if name not in given.written:
        return (name, given.dtypes[name], shape, "", "", "", "", "")
    word = f"{name}=out.npy" if name in given.returned else f"{name}=…:out.npy"
    result = f"→ {destination}" if destination else f"not kept; {word} writes it"
    return (name, given.dtypes[name], shape, *summary(value, given.dtypes[name]), result)


def summary(array: np.ndarray, dtype: str) -> tuple[str, str, str, str]:
    """Returns minimum, maximum, mean and the first few values. NaNs are ignored, and counted."""
    import numpy as np

    if array.size == 0:
        return ("", "", "", "")
    values = dtypes.as_numbers(array, dtype)
    head = values.flat[:SHOWN]
    first = " ".join(map(_number, head)) + (" …" if array.size > SHOWN else "")
    if values.dtype.kind not in "fiub":
        return ("", "", "", first)
    if values.dtype.kind == "f":
        nans = int(np.isnan(values).sum())
        first += f" ({nans} NaN)" if nans else ""
        values = values[~np.isnan(values)] if nans else values
        if values.size == 0:
            return ("nan", "nan", "nan", first)
    with np.errstate(all="ignore"):
        mean = values.mean(dtype=np.float64)
    return (_number(values.min()), _number(values.max()), _number(mean), first)


def _number(value: Any) -> str:
    value = value.item() if hasattr(value, "item") else value
    return f"{value:.5g}" if isinstance(value, float) else str(value).lower()


def aligned(rows: list[tuple[str, ...]]) -> list[str]:
    """Aligns columns; those that are empty below their heading are omitted."""
    kept = [column for column in zip(*rows, strict=True) if any(column[1:])]
    widths = [max(map(len, column)) for column in kept]
    return [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in zip(*kept, strict=True)
    ]


def print_rich(rows: list[tuple[str, ...]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    kept = [column for column in zip(*rows, strict=True) if any(column[1:])]
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in kept:
        table.add_column(column[0], style="bold" if column[0] == "name" else None)
    for row in zip(*(column[1:] for column in kept), strict=True):
        table.add_row(*(Text(cell) for cell in row))
    Console(stderr=True).print(table)


def _launched(ran: Ran, device: str) -> str:
    sizes = f"grid {show(ran.grid)}, block {show(ran.block)}"
    if ran.empty:
        return f"{ran.kernel}: {sizes}: nothing to run"
    lds = f", {ran.shared} bytes of dynamic LDS" if ran.shared else ""
    count = "" if ran.instructions is None else f"{ran.instructions:,} wave instructions in "
    return f"{ran.kernel}: {sizes}{lds}: {count}{_seconds(ran.seconds)} on {device}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.2f} ms"


class ProgressBar:
    """A progress bar on standard error for runs longer than a second, if that is a terminal. The
    device calls it with the workgroups done, and the total."""

    def __init__(self) -> None:
        self._shows = sys.stderr.isatty()
        self._start = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __call__(self, done: int, total: int) -> None:
        if not self._shows or time.monotonic() - self._start < PATIENCE:
            return
        if self._bar is None:
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("workgroups", total=total)
            self._bar.start()
        self._bar.update(self._task, completed=done, total=total)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
