"""LLVM IR as text: a function's blocks and instructions, which can be put in another order.

This is no parser of LLVM's language: an instruction is its line, and its operands are the names in
it. That suffices for passes that replace a few instructions and keep the rest as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from fly_common.record import record

NAME = r'%(?:"(?:[^"\\]|\\.)*"|[-$.\w]+)'
FUNCTION = re.compile(r"^define .*?\{$(.*?)^\}$", re.MULTILINE | re.DOTALL)
LABEL = re.compile(r'^("(?:[^"\\]|\\.)*"|[-$.\w]+):.*$', re.MULTILINE)

_ANY_NAME = re.compile(NAME)
_DEFINITION = re.compile(rf"  ({NAME}) = (?:(?:tail|musttail|notail) )?(\w+)")
_END = re.compile(
    rf"  (?:br|switch|indirectbr|ret|unreachable|resume|cleanupret|catchret|{NAME} = catchswitch"
    rf"|(?:{NAME} = )?(?:invoke|callbr))\b"
)
_CALLEE = re.compile(r" @([-$.\w]+)\(")
_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*"|%(\d+)\b')
_NUMBERED_TYPE = re.compile(r"^%\d+ = type ", re.MULTILINE)
_DECLARATION = re.compile(r"^declare .*?@([-$.\w]+)\(.*\).*? #(\d+)", re.MULTILINE)
_ATTRIBUTES = re.compile(r"^attributes #(\d+) = \{(.*)\}$", re.MULTILINE)

# What must keep its place among accesses to memory. A division may be undefined where a call before
# it doesn't return.
_ORDERED = re.compile(
    "load|store|fence|atomicrmw|cmpxchg|alloca|va_arg|udiv|sdiv|urem|srem|landingpad"
)


@record
class Instruction:
    """A line of the block number `block`. `name` is the value that it defines, or empty.
    `operands` are the names in it, of values, types and blocks alike. `callee` is a called
    function without its `@`."""

    text: str
    block: int
    name: str
    operation: str
    operands: tuple[str, ...]
    callee: str


class Function:
    """A function, as its text in a module from `define` to the closing brace."""

    def __init__(self, text: str):
        self.head, _, body = text.partition("\n")
        self.labels: list[str] = []  # the lines that start the blocks
        self.blocks: list[list[Instruction]] = []
        self.ends: list[str] = []  # each block's terminator and what follows
        starts = [(label.start(), label.end(), label[0]) for label in LABEL.finditer(body)]
        if not starts or body[: starts[0][0]].strip():
            starts.insert(0, (0, 0, ""))
        ends = [start for start, _, _ in starts[1:]] + [len(body)]
        for number, ((_, start, label), end) in enumerate(zip(starts, ends, strict=True)):
            self._read(label, body[start:end], number)
        rows = [one for block in self.blocks for one in block]
        self.definitions = {one.name: one for one in rows if one.name}
        self.users: dict[str, list[Instruction]] = {}
        for one in rows:
            for name in one.operands:
                self.users.setdefault(name, []).append(one)

    def _read(self, label: str, text: str, number: int) -> None:
        rows: list[Instruction] = []
        lines = text.split("\n")
        end = next(
            (at for at, line in enumerate(lines) if _END.match(line) or line.startswith("}")),
            len(lines),
        )
        for line in lines[:end]:
            if not line.strip():
                continue
            found = _DEFINITION.match(line)
            names = _ANY_NAME.findall(line, found.end() if found else 0)
            callee = _CALLEE.search(line)
            name, operation = found.groups() if found else ("", "")
            rows.append(
                Instruction(
                    line, number, name, operation, tuple(names), callee[1] if callee else ""
                )
            )
        self.labels.append(label)
        self.blocks.append(rows)
        self.ends.append("\n".join(lines[end:]))

    def text(self, blocks: dict[int, list[str]]) -> str:
        """Returns the function with other lines of some blocks. Values and blocks that were
        numbered have names then, because numbers must be in the order of the lines."""
        parts: list[str] = []
        for number, (label, rows) in enumerate(zip(self.labels, self.blocks, strict=True)):
            lines = blocks[number] if number in blocks else [one.text for one in rows]
            parts += [label] if label or number else []
            parts += [*lines, self.ends[number]]
        body = "\n".join(parts)
        defined = {*self.definitions, *_ANY_NAME.findall(self.head)}
        defined.update(f"%{label.partition(':')[0]}" for label in self.labels if label)
        body = _named(re.sub(r"^(\d+):", r"fly.\1:", body, flags=re.MULTILINE))
        if not self.labels[0]:  # a phi may name the first block, which has a number but no label
            numbers = {f"%{n[1]}" for n in _NUMBER.finditer("\n".join(self.ends)) if n[1]}
            numbers.update(n for rows in self.blocks for one in rows for n in one.operands)
            for name in sorted(numbers - defined):
                if name[1:].isdecimal():
                    body = f"fly.{name[1:]}:\n{body}"
        return f"{_named(self.head)}\n{body}"


def _named(text: str) -> str:
    return _NUMBER.sub(lambda found: f"%fly.{found[1]}" if found[1] else found[0], text)


def can_rename(module: str) -> bool:
    """Returns whether numbers after `%` are those of values and blocks only."""
    return not _NUMBERED_TYPE.search(module)


def pure_functions(module: str) -> set[str]:
    """Returns the names of declared functions that access no memory."""
    groups = {number for number, words in _ATTRIBUTES.findall(module) if "memory(none)" in words}
    return {name for name, group in _DECLARATION.findall(module) if group in groups}


def is_ordered(instruction: Instruction, pure: set[str]) -> bool:
    """Returns whether an instruction must stay where it is among others of this kind."""
    if instruction.operation == "call":
        return instruction.callee not in pure
    return not instruction.name or _ORDERED.fullmatch(instruction.operation) is not None


def dependences(block: list[Instruction], pure: set[str]) -> list[list[int]]:
    """Returns for each instruction of a block the numbers of those that must precede it."""
    at = {one.name: number for number, one in enumerate(block) if one.name}
    found: list[list[int]] = []
    last = None
    for number, one in enumerate(block):
        if one.operation == "phi":
            found.append([])
            continue
        before = [at[name] for name in one.operands if name in at]
        if is_ordered(one, pure):
            before += [] if last is None else [last]
            last = number
        found.append(before)
    return found


def ordered(
    before: list[list[int]], groups: Iterable[tuple[int, ...]]
) -> tuple[list[int], tuple[int, ...] | None]:
    """Returns an order of a block's instructions, in which those of a group are consecutive and
    each follows what must precede it, as close to the first order as possible. If there is none,
    the second result is a group that can't be."""
    group = {member: one for one in groups for member in one}
    order: list[int] = []
    state: dict[int, bool] = {}  # False: what must precede it is being put in order

    for first in range(len(before)):
        stack = [first]
        while stack:
            members = group.get(stack[-1], (stack[-1],))
            if state.get(members[0]):
                stack.pop()
                continue
            needed = [n for member in members for n in before[member] if not state.get(n)]
            if not needed:
                order += members
                state.update(dict.fromkeys(members, True))
                stack.pop()
                continue
            state.update(dict.fromkeys(members, False))
            for one in needed:
                if one in state:  # a circle, in which at least one group is
                    path = [n for n in (one, *reversed(stack)) if state.get(n) is False]
                    return [], next(group[n] for n in path if n in group)
            stack += reversed(needed)
    return order, None


def rewritten(module: str, change: Callable[[str], str | None]) -> str | None:
    """Returns a module with those functions replaced for whose text `change` returns another one,
    or None if there are none."""
    parts: list[str] = []
    end = 0
    for found in FUNCTION.finditer(module):
        text = change(found[0])
        if text is not None:
            parts += [module[end : found.start()], text]
            end = found.end()
    return "".join([*parts, module[end:]]) if parts else None
