"""Where an operation came from: MLIR locations as places that errors can show."""

from __future__ import annotations

import re
from typing import Any

from fly_common.errors import Place

# `"file":line:column`, wherever it stands in a printed location: a call site or a fused location
# prints its innermost place first, which is the line the user wrote the operation on.
_FILE_LINE_COLUMN = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')


def place_of(location: Any) -> Place | None:
    """The place of an `ir.Location`; None where it names no file. The source line is shown where
    the file can be read."""
    match = _FILE_LINE_COLUMN.search(str(location))
    if match is None:
        return None
    return place(match[1], int(match[2]), int(match[3]))


def place(file: str, line: int, column: int, source: str | None = None) -> Place:
    """A place with its source line: out of `source` if given, else out of the file."""
    text = None
    if source is None:
        try:
            with open(file, encoding="utf-8", errors="replace") as opened:
                source = opened.read()
        except OSError:
            source = ""
    lines = source.splitlines()
    if 0 < line <= len(lines):
        text = lines[line - 1]
    return Place(file, line, column, text)
