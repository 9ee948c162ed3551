"""The source lines of inline assembly, for errors of the assembler, which names none.

A piece of assembly is found in the LLVM IR by the line that the assembler shows, or by the
constraint that code generation refuses; debug info has its line. Of several that fit, the first one
is meant, because code is generated in this order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from fly_common.errors import Place
from fly_common.programs import llvm_diagnostics

_CALL = re.compile(
    r'^[^";]*\basm (?:[a-z]+ )*"(?P<template>[^"]*)", "(?P<constraints>[^"]*)"'
    r".*?(?:, !dbg !(?P<location>\d+))?$",
    re.MULTILINE,
)
_NODE = r"^!%s = (?:distinct )?!\w+\((?P<fields>.*)\)$"
_ESCAPE = re.compile(r"\\([0-9A-Fa-f]{2})")
_OPERAND = re.compile(r"\$(?:\$|\d+|\{\d+[^}]*\})")


@dataclass(frozen=True)
class Call:
    """A use of inline assembly. location: the number of its node of debug info."""

    template: str
    constraints: str
    location: str | None


def calls(text: str) -> Iterator[Call]:
    """The uses of inline assembly in LLVM IR, in order."""
    for match in _CALL.finditer(text):
        template, constraints = (_unescaped(match[name]) for name in ("template", "constraints"))
        yield Call(template, constraints, match["location"])


def place_of_line(text: str, line: str) -> Place | None:
    """Where the assembly stands that has this line, with registers in place of operands."""
    for call in calls(text):
        if any(_pattern(one).fullmatch(line.strip()) for one in call.template.splitlines()):
            return _place(text, call)
    return None


def place_of_constraint(text: str, constraint: str) -> Place | None:
    """Where the assembly stands that has this constraint of a result or an operand."""
    for call in calls(text):
        if any(one.lstrip("=&") == constraint for one in call.constraints.split(",")):
            return _place(text, call)
    return None


def _pattern(template: str) -> re.Pattern[str]:
    parts = _OPERAND.split(template.strip())
    between = [r"\$" if one == "$$" else ".+?" for one in _OPERAND.findall(template.strip())]
    pieces = [re.escape(parts[0])]
    for operand, part in zip(between, parts[1:], strict=True):
        pieces += [operand, re.escape(part)]
    return re.compile("".join(pieces))


def _unescaped(text: str) -> str:
    r"""The text of a string of LLVM IR, in which `\0A` is a newline."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


def _place(text: str, call: Call) -> Place | None:
    if call.location is None:
        return None
    location = _fields(text, call.location)
    file = _file(text, location.get("scope", ""))
    if file is None:
        return None
    return llvm_diagnostics.place(
        file, int(location.get("line", 0)), int(location.get("column", 0))
    )


def _file(text: str, scope: str) -> str | None:
    """The path of the file of a scope, or of one around it."""
    while scope:
        fields = _fields(text, scope)
        if found := _fields(text, fields.get("file", "")):
            name, folder = (found.get(key, "").strip('"') for key in ("filename", "directory"))
            return name if name.startswith("/") or not folder else f"{folder}/{name}"
        scope = fields.get("scope", "")
    return None


def _fields(text: str, number: str) -> dict[str, str]:
    """The fields of a node of debug info; those that refer to nodes have their numbers."""
    if not number or not (match := re.search(_NODE % number, text, re.MULTILINE)):
        return {}
    pairs = re.findall(r'(\w+): ("[^"]*"|[^,]+)', match["fields"])
    return {name: value.removeprefix("!") for name, value in pairs}
