"""Diagnostic output of a run on standard error: the module between passes, and timings."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from fly_common.record import field, record

if TYPE_CHECKING:
    from fly_dialect.bindings import ir


@record(frozen=False)
class Observer:
    """Observes passes. `show(module) -> str` prints a module; it is called for dumps only."""

    before_all: bool = False
    after_all: bool = False
    timing: bool = False
    show: Callable[[Any], str] = str
    stream: TextIO = field(default_factory=lambda: sys.stderr)
    times: dict[str, list[float]] = field(default_factory=dict)  # seconds, by name, in order

    @property
    def is_watching(self) -> bool:
        """Whether anybody wants to know about single passes."""
        return self.before_all or self.after_all or self.timing

    @contextmanager
    def watching(self, name: str, module: ir.Module) -> Iterator[None]:
        """Wraps one pass: dumps and times it. A failing pass is dumped in the state it left."""
        if self.before_all:
            self._dump(f"IR Dump Before {name}", module)
        try:
            with self.timed(name):
                yield
        except BaseException:
            if self.after_all:
                self._dump(f"IR Dump After {name} Failed", module)
            raise
        if self.after_all:
            self._dump(f"IR Dump After {name}", module)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.times.setdefault(name, []).append(time.perf_counter() - start)

    def _dump(self, title: str, module: ir.Module) -> None:
        self.stream.write(f"// -----// {title} //----- //\n{self.show(module)}\n")
        self.stream.flush()

    def report(self) -> None:
        """Prints the table of timings: with rich on a terminal, otherwise as plain text."""
        if not self.timing or not self.times:
            return
        total = sum(map(sum, self.times.values()))
        rows = [
            (name, len(times), sum(times) * 1e3, 100 * sum(times) / total if total else 0.0)
            for name, times in self.times.items()
        ]
        if self.stream.isatty():
            self._table(rows, total * 1e3)
            return
        width = max(len(name) for name, *_ in rows)
        self.stream.write(f"{'step':<{width}}  runs        ms      %\n")
        for name, runs, milliseconds, percent in rows:
            self.stream.write(
                f"{name:<{width}}  {runs:>4}  {milliseconds:>8.2f}  {percent:>5.1f}\n"
            )
        self.stream.write(f"{'total':<{width}}  {'':>4}  {total * 1e3:>8.2f}  100.0\n")

    def _table(self, rows: list[tuple[str, int, float, float]], total: float) -> None:
        from rich.console import Console
        from rich.table import Table

        table = Table("step", title="fly-opt-py", show_footer=True)
        table.columns[0].footer = "total"
        for head, footer in (("runs", ""), ("ms", f"{total:.2f}"), ("%", "100.0")):
            table.add_column(head, footer, justify="right")
        for name, runs, milliseconds, percent in rows:
            table.add_row(name, str(runs), f"{milliseconds:.2f}", f"{percent:.1f}")
        Console(file=self.stream).print(table)
