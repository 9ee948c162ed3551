"""Source lines of LLVM's debug metadata, by the numbers of `!dbg`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_NODE = re.compile(r"!(\d+) = (?:distinct )?!DI(\w+)\((.*)\)$")
_FIELD = re.compile(r"(\w+): (\"(?:[^\"\\]|\\.)*\"|!\d+|[\w|]+)")

Row = tuple[str, int, int]  # file, line, column


def locations(metadata: Iterable[str], wanted: Iterable[int]) -> dict[int, list[Row]]:
    """The places in the source of these numbers, as far as they are known, each with the calls that
    lead there, innermost first."""
    nodes: dict[int, tuple[str, dict[str, str]]] = {}
    for line in metadata:
        if match := _NODE.match(line):
            nodes[int(match[1])] = match[2], dict(_FIELD.findall(match[3]))
    found = {}
    for number in wanted:
        rows = list(_rows(nodes, number))
        if rows:
            found[number] = rows
    return found


def _rows(nodes: dict[int, tuple[str, dict[str, str]]], number: int) -> Iterator[Row]:
    for _ in range(len(nodes)):
        kind, fields = nodes.get(number, ("", {}))
        name = _file(nodes, fields)
        if kind != "Location" or not name or not int(fields.get("line", "0")):
            return
        yield name, int(fields["line"]), int(fields.get("column", "0"))
        number = _number(fields.get("inlinedAt", "!-1"))


def _file(nodes: dict[int, tuple[str, dict[str, str]]], fields: dict[str, str]) -> str | None:
    for _ in range(len(nodes)):
        if "file" in fields:
            _, file = nodes.get(_number(fields["file"]), ("", {}))
            name = file.get("filename", '""')[1:-1]
            folder = file.get("directory", '""')[1:-1]
            return f"{folder}/{name}" if folder and name and not name.startswith("/") else name
        _, fields = nodes.get(_number(fields.get("scope", "!-1")), ("", {}))
    return None


def _number(reference: str) -> int:
    return int(reference[1:]) if reference[1:].isdigit() else -1
