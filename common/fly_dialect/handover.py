"""What one stage hands to the next in the same process, beside its text.

The library traces a module and lowers it. The text between the two stages is what is stored and
what decides, as in a pipe; reading it gives MLIR's text, which it was made of, and a context like
that in which it was made. Within `between_stages` both are kept and taken instead. MLIR parses the
same text either way, so that even the order of uses is that of the pipe. It would not be if the
module itself were handed over: it has the order in which the trace made and replaced values.

This module imports nothing of MLIR.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple


class Offer(NamedTuple):
    """A text, MLIR's text of the same module, and its context, whose module is not used again."""

    text: str
    printed: str
    context: Any


class _Local(threading.local):
    inside = False
    offered: Offer | None = None


_local = _Local()


@contextmanager
def between_stages() -> Iterator[None]:
    """The last module that this thread prints in the block is kept until it is read, at most to the
    end of the block. Blocks may be nested: a function is compiled while another is traced."""
    outer = _local.inside, _local.offered
    _local.inside, _local.offered = True, None
    try:
        yield
    finally:
        _local.inside, _local.offered = outer


def offer(text: str, printed: str, context: Any) -> None:
    """`text` was made of `printed`, which MLIR has printed in `context`."""
    if _local.inside:
        _local.offered = Offer(text, printed, context)


def take(text: str) -> Offer | None:
    """Returns what was offered for this text, once."""
    offered = _local.offered
    if offered is None or offered.text != text:
        return None
    _local.offered = None
    return offered
