"""A machine function: a YAML document whose last key is its body."""

from __future__ import annotations

import re

from fly_common.errors import InputError

from fly_llc.mir.block import Block
from fly_llc.mir.instruction import Instruction

_SCALAR = re.compile(r"^(?P<key>\w+): +(?P<value>\S.*)$", re.MULTILINE)
_VIRTUAL = re.compile(r"^  - \{ id: (?P<id>\w+), class: (?P<class>[\w-]+)", re.MULTILINE)
_HEAD = re.compile(r"^    (?:successors|liveins):|^\s*(?:;.*)?$")


class Function:
    """`header` is the YAML text before the body. `blocks` are in layout order; the first one is the
    entry."""

    def __init__(self, header: str, body: str, line: int = 0):
        self.header = header
        self.line = line
        self.leading: list[str] = []  # lines of the body before its first block
        self.blocks: list[Block] = []
        self._read(body)

    @property
    def name(self) -> str:
        return self.value("name") or ""

    def value(self, key: str) -> str | None:
        """A top-level value of the header: `value("isSSA")` is "true" or "false"."""
        for match in _SCALAR.finditer(self.header):
            if match["key"] == key:
                return match["value"].strip("'\"")
        return None

    @property
    def is_ssa(self) -> bool:
        return self.value("isSSA") == "true"

    @property
    def has_virtual_registers(self) -> bool:
        return self.value("noVRegs") != "true"

    @property
    def classes(self) -> dict[str, str]:
        """The register classes of the virtual registers: `%3` → `vgpr_32`."""
        return {f"%{match['id']}": match["class"] for match in _VIRTUAL.finditer(self.header)}

    def block(self, number: int) -> Block:
        for block in self.blocks:
            if block.number == number:
                return block
        raise KeyError(number)

    @property
    def predecessors(self) -> dict[int, list[int]]:
        """The predecessors of each block, by number."""
        found: dict[int, list[int]] = {block.number: [] for block in self.blocks}
        for block in self.blocks:
            for successor in block.successors:
                found[successor].append(block.number)
        return found

    def __str__(self) -> str:
        lines = list(self.leading)
        for block in self.blocks:
            lines += block.lines
        return self.header + "\n".join(lines)

    def _read(self, body: str) -> None:
        lines = body.split("\n")
        at = 0
        while at < len(lines) and not Block.is_label(lines[at]):
            self.leading.append(lines[at])
            at += 1
        while at < len(lines):
            block = Block(lines[at])
            self.blocks.append(block)
            at += 1
            while at < len(lines) and _HEAD.match(lines[at]):
                block.head.append(lines[at])
                at += 1
            at = self._read_instructions(block, lines, at)

    def _read_instructions(self, block: Block, lines: list[str], at: int) -> int:
        waiting: list[str] = []
        while at < len(lines) and not Block.is_label(lines[at]):
            line = lines[at]
            text = line.strip()
            at += 1
            if not text or text.startswith(";"):
                waiting.append(line)
                continue
            one = Instruction(text, line[: len(line) - len(line.lstrip())])
            if waiting:
                block.between[id(one)], waiting = waiting, []
            block.instructions.append(one)
            if text.endswith("{"):
                while at < len(lines) and lines[at].strip() != "}":
                    inner = lines[at]
                    indent = inner[: len(inner) - len(inner.lstrip())]
                    one.bundled.append(Instruction(inner.strip(), indent))
                    at += 1
                if at == len(lines):
                    raise InputError(f"line {self.line}: the bundle in {block.name} has no end")
                at += 1
        block.tail = waiting
        return at
