"""Parses the LLVM IR text of handlers, line by line, as `irgen` writes it."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ASSIGNED = re.compile(r"  (%[\w.]+) = (\w+) ?(.*)$")
NAME = re.compile(r"%[\w.]+")
CALL = re.compile(r"(.*) @\"?([\w.]+)\"?\((.*)\)$")


@dataclass(frozen=True)
class Line:
    """`%name = opcode rest`, and its operands split at the commas outside brackets."""

    number: int
    text: str
    name: str = ""
    opcode: str = ""
    rest: str = ""

    @property
    def operands(self) -> list[str]:
        """The operands; of a binary operation or a comparison the two values, without the type."""
        parts = split(self.rest)
        return [value_of(parts[0]), parts[1]] if len(parts) == 2 else []


def split(text: str) -> list[str]:
    """Splits at commas outside brackets."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        if char in "<([{":
            depth += 1
        elif char in ">)]}":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()]


def value_of(typed: str) -> str:
    """Returns the value in `type value`, which follows the type's last character."""
    if typed.startswith("<"):
        end = typed.index(">") + 1
        return typed[end:].strip()
    return typed.partition(" ")[2].strip()


def type_of(typed: str) -> str:
    return typed[: len(typed) - len(value_of(typed))].strip()


def parsed(text: str) -> list[Line]:
    lines = []
    for number, line in enumerate(text.split("\n")):
        match = _ASSIGNED.match(line)
        lines.append(Line(number, line, *match.groups()) if match else Line(number, line))
    return lines
