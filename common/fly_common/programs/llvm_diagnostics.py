"""The diagnostics that LLVM's programs print, which name a place if the module has debug info:

warning: k.py:8:14: loop not unrolled: …        error: k.py:5:0: local memory (…) exceeds …
warning: <unknown>:0:0: loop not unrolled: …
"""

from __future__ import annotations

import linecache
import re

from fly_common.diagnostics import Warning
from fly_common.errors import Place

_WARNING = re.compile(
    r"^warning: (?:(?P<file>[^:\n]+):(?P<line>\d+):(?P<column>\d+): )?(?P<what>.+)"
)


def warnings(stderr: str) -> tuple[list[Warning], str]:
    """Returns the warnings, each once, and the other lines."""
    found: dict[str, Warning] = {}
    rest: list[str] = []
    for line in stderr.splitlines():
        if match := _WARNING.match(line):
            at = (
                (match["file"], int(match["line"]), int(match["column"])) if match["file"] else None
            )
            found[line] = Warning(match["what"], place=at and place(*at))
        elif line.strip():
            rest.append(line)
    return list(found.values()), "\n".join(rest)


def place(file: str, line: int, column: int) -> Place | None:
    """A place that LLVM names; column 0 stands for the line. None if it is unknown."""
    if file == "<unknown>" or line == 0:
        return None
    text = linecache.getline(file, line).rstrip("\n") or None
    if column == 0:
        column = len(text) - len(text.lstrip()) + 1 if text else 0
    return Place(file, line, column or None, text)
