"""Functions of LLVM IR text: blocks, and instructions as text with the name that they define.

The text is that of the module within MIR: as code generation left it, one instruction a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_DEFINE = re.compile(
    r"^define\b[^\n]*?@(?P<name>[\w.$]+|\"[^\"]*\")\((?P<parameters>.*)\)[^\n]*\{$"
)
_LABEL = re.compile(r'^(?P<name>[\w.$-]+|"[^"]*"):')
_ASSIGNED = re.compile(r'^(?P<name>%[\w.$-]+|%"[^"]*") = (?P<rest>.*)$')
_METADATA = re.compile(r", ![\w.]+ .*$")


@dataclass
class Line:
    """An instruction: what it defines ("" for nothing), and the rest without metadata."""

    name: str
    text: str

    @property
    def op(self) -> str:
        return self.text.removeprefix("tail ").removeprefix("musttail ").partition(" ")[0]


@dataclass
class Block:
    name: str
    lines: list[Line] = field(default_factory=list)

    @property
    def successors(self) -> list[str]:
        return re.findall(r"label %([\w.$-]+|\"[^\"]*\")", self.lines[-1].text)


@dataclass
class Function:
    """`parameters` are types and names in order; `blocks` are by name, the entry first."""

    name: str
    parameters: list[tuple[str, str]]
    blocks: dict[str, Block]

    @property
    def definitions(self) -> dict[str, tuple[str, Line]]:
        """Each defined name with its block and its line."""
        return {
            line.name: (block.name, line)
            for block in self.blocks.values()
            for line in block.lines
            if line.name
        }

    @property
    def predecessors(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {name: [] for name in self.blocks}
        for block in self.blocks.values():
            for successor in dict.fromkeys(block.successors):
                found[successor].append(block.name)
        return found


def split(text: str) -> list[str]:
    """Splits at the commas outside brackets and quotes."""
    parts, depth, quoted, start = [], 0, False, 0
    for at, char in enumerate(text):
        if char == '"':
            quoted = not quoted
        elif not quoted:
            depth += char in "([{<"
            depth -= char in ")]}>"
            if char == "," and not depth:
                parts.append(text[start:at].strip())
                start = at + 1
    return [*parts, text[start:].strip()] if text.strip() else []


def functions(text: str) -> Iterator[Function]:
    """Yields the functions that a module's text defines."""
    lines = iter(line.removeprefix("  ") for line in text.splitlines())
    for line in lines:
        found = _DEFINE.match(line)
        if found is None:
            continue
        body = []
        for inner in lines:
            if inner == "}":
                break
            body.append(inner)
        yield _function(found["name"].strip('"'), found["parameters"], body)


def _function(name: str, parameters: str, body: list[str]) -> Function:
    named, unnamed = [], 0
    for one in split(parameters):
        type_, given = _parameter(one)
        named.append((type_, given or f"%{unnamed}"))
        unnamed += not given or given[1:].isdigit()
    blocks: dict[str, Block] = {}
    block = None
    for raw in body:
        text = raw.strip()
        if not text or text.startswith(";"):
            continue
        label = _LABEL.match(raw)
        if label is not None:
            block = blocks[label["name"]] = Block(label["name"])
            continue
        if block is None:  # an entry without a name has the next number
            block = blocks[str(unnamed)] = Block(str(unnamed))
        assigned = _ASSIGNED.match(text)
        rest = assigned["rest"] if assigned else text
        block.lines.append(Line(assigned["name"] if assigned else "", _METADATA.sub("", rest)))
    return Function(name, named, blocks)


def _parameter(text: str) -> tuple[str, str]:
    """The type of a parameter, and its name or "". Attributes are between them."""
    type_ = leading_type(text)
    rest = text[len(type_) :].split()
    return type_, rest[-1] if rest and rest[-1].startswith("%") else ""


def leading_type(text: str) -> str:
    """The type at the beginning of a text."""
    if text[:1] in "<{[":
        depth = 0
        for at, char in enumerate(text):
            depth += char in "<{["
            depth -= char in ">}]"
            if not depth:
                return text[: at + 1]
    found = re.match(r"ptr(?: addrspace\(\d+\))?|[\w%.]+", text)
    return found[0] if found else ""


def size_and_alignment(type_: str) -> tuple[int, int]:
    """The size and the alignment of a type in memory. ValueError for one that is not known."""
    if found := re.fullmatch(r"i(\d+)", type_):
        size = max(1, (int(found[1]) + 7) // 8)
        return size, size
    if type_.startswith("ptr"):
        space = re.search(r"\((\d+)\)", type_)
        size = 4 if space and space[1] in ("2", "3", "5", "6") else 8
        return size, size
    if type_ in (plain := {"half": 2, "bfloat": 2, "float": 4, "double": 8}):
        return plain[type_], plain[type_]
    if type_.startswith(("<{", "{")):
        size, most = 0, 1
        for inner in fields(type_):
            wide, alignment = size_and_alignment(inner)
            alignment = 1 if type_.startswith("<{") else alignment
            size = -(-size // alignment) * alignment + wide
            most = max(most, alignment)
        return -(-size // most) * most, most
    if found := re.fullmatch(r"[\[<](\d+) x (.*)[\]>]", type_):
        wide, alignment = size_and_alignment(found[2])
        total = int(found[1]) * wide
        return total, alignment if type_[0] == "[" else total
    raise ValueError(type_)


def fields(type_: str) -> list[str]:
    """The types of a struct's fields."""
    inner = type_[2:-2] if type_.startswith("<{") else type_[1:-1]
    return split(inner)


def field_at(type_: str, indices: list[int]) -> tuple[str, int]:
    """The type of a field of nested structs, and its offset in bytes."""
    offset = 0
    for index in indices:
        packed = type_.startswith("<{")
        for number, inner in enumerate(fields(type_)):
            size, alignment = size_and_alignment(inner)
            offset = offset if packed else -(-offset // alignment) * alignment
            if number == index:
                type_ = inner
                break
            offset += size
    return type_, offset
