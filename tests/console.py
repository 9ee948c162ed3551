"""The `console` blocks of pages.

A block is a session: `$ ` starts a command (`> `, or `>` alone, continues it), what follows is its
output. `…` in an expected line stands for any text, a line of `…` alone for any lines.
"""

from __future__ import annotations

import re

BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def sessions(text: str) -> list[tuple[str, str]]:
    """(command, expected output) of each command of a page, in order."""
    found: list[tuple[str, str]] = []
    for block in BLOCK.findall(text):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], ""))
            elif (line == ">" or line.startswith("> ")) and found and not found[-1][1]:
                found[-1] = (f"{found[-1][0]}\n{line[2:]}", "")
            else:
                command, output = found[-1]
                found[-1] = (command, f"{output}{line}\n")
    return found


def pattern(expected: str) -> re.Pattern[str]:
    lines = []
    for line in expected.splitlines():
        if line.strip() == "…":
            lines.append(r"(?:.*\n)*?")
        else:
            parts = (re.escape(part) for part in line.rstrip().split("…"))
            lines.append(".*".join(parts) + r"[ ]*\n")
    return re.compile("".join(lines))
