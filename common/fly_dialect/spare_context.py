"""A context that is made before it is needed, in a time in which this process would wait.

A new context loads MLIR's dialects, and the first run of a pass in it loads more and initialises
the pass: as long as a tenth of the lowering of a small kernel. So the library makes the next call's
while LLVM works on this one's result. It is a new one like any other: no module was in it but an
empty one. One is kept, for the target that was compiled for last.

This module imports nothing of MLIR.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

_lock = threading.Lock()
_kept: tuple[str, ir.Context] | None = None


def take(target: str | None) -> ir.Context | None:
    """Returns the context that was made for a target, once."""
    global _kept
    with _lock:
        if _kept is None or _kept[0] != target:
            return None
        context, _kept = _kept[1], None
        return context


def keep(target: str, make: Callable[[], ir.Context]) -> None:
    """Makes a context for a target, unless there is one, or it fails: then so will the next call,
    which tells why."""
    global _kept
    with _lock:
        if _kept is not None and _kept[0] == target:
            return
    try:
        made = make()
    except Exception:
        return
    with _lock:
        _kept = target, made


def drop() -> None:
    """Forgets the context."""
    global _kept
    with _lock:
        _kept = None


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()  # another thread may have held it


os.register_at_fork(after_in_child=_after_fork)
