"""A table of the library's handlers that records look-ups."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from fly_run.emulator.engine import library


class Handlers(dict):
    """Addresses by name."""

    def __init__(self, addresses: dict[str, int]):
        super().__init__(addresses)
        self.used: set[str] = set()

    def __getitem__(self, name: str) -> int:
        self.used.add(name)
        return super().__getitem__(name)

    @contextlib.contextmanager
    def recording(self) -> Iterator[set[str]]:
        """Returns the names that are looked up in the block."""
        self.used = used = set()
        yield used
        self.used = set()


def install() -> Handlers:
    """Replaces the table for all devices that this process opens from now on."""
    found = library.load()
    handlers = Handlers(found.handlers)
    recorded = library.Library(found.path, handlers, found.run, found.cpu)
    library.load = lambda: recorded  # type: ignore[assignment]
    return handlers
