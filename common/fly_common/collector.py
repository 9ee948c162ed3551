"""Pauses Python's garbage collector while a compilation makes many objects that live on.

Modules, syntax trees and types are no garbage, but the collector visits every object of the process
again each time their number has grown by a quarter. In a large application these are many more.
What is reference-counted is freed as ever.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_pauses = 0  # blocks of all threads that are being executed
_was_enabled = False


def collect_young() -> None:
    """Within `paused`, visits what was made since: to be called while nothing waits for this
    process. Otherwise the collector does so as soon as the block has ended."""
    if _pauses and _was_enabled:
        gc.collect(0)


@contextmanager
def paused() -> Iterator[None]:
    """Automatic collection is off within the block, and afterwards as it was before. In several
    threads, it is on again when the last of their blocks ends."""
    global _pauses, _was_enabled
    with _lock:
        if _pauses == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _pauses += 1
    try:
        yield
    finally:
        with _lock:
            _pauses -= 1
            if _pauses == 0 and _was_enabled:
                gc.enable()
