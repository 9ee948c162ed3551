"""`flydsl.utils.file`: files that are replaced as a whole."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def atomic_write(path: Path, *, mode: str, encoding: str | None = None) -> Iterator[IO[Any]]:
    """A file to write to, which replaces `path` at the end of the block, unless that fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with open(handle, mode, encoding=encoding) as file:
            yield file
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
