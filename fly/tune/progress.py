"""The progress of a sweep: a bar on standard error, if that is a terminal."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

Step = Callable[[str], None]  # called with the configuration that is worked on


@contextlib.contextmanager
def progress(title: str, total: int) -> Iterator[Step]:
    """Yields what is called before each of `total` steps. rich is only imported for a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress
    from rich.text import Text

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"tuning {title}", total=total)
        done = 0

        def step(config: str) -> None:
            nonlocal done
            bar.update(task, completed=done, description=str(Text(f"tuning {title}: {config}")))
            done += 1

        yield step
