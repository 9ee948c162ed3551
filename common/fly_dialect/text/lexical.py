"""Token-based text rewriting: matching brackets, lists between them, and a record of changes that
maps positions in the new text to the old one."""

from __future__ import annotations

import re
from bisect import bisect_right

# A string. A choice for each of its characters would take three times as long.
STRING = r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
_ANGLE = re.compile(rf"->|[<>]|{STRING}")
_BRACE = re.compile(rf"[{{}}]|{STRING}")
_LIST = re.compile(rf"->|[<>(){{}}\[\],]|{STRING}")
_SPACE = re.compile(r"\s*")

MOST_NESTED = 256  # maximum nesting of brackets: clang's limit; MLIR's is 1000
_BRACKETS = b"<>()[]{}"
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in _BRACKETS)
_OPENING = {")": "(", "]": "[", "}": "{", ">": "<"}
_TOKEN = re.compile(rf"//[^\n]*|->|[<>(){{}}\[\]]|{STRING}")


class Rewriter:
    """A text and changes to it. After `finish` has applied them, it maps positions back."""

    def __init__(self, source: str):
        self.source = source
        self.changes: list[tuple[int, int, str]] = []
        self.moved_from: list[int] = []  # positions in the output, ascending …
        self.moved_to: list[int] = []  # … and the corresponding positions in the source

    def put(self, start: int, end: int, replacement: str) -> None:
        """Replaces source[start:end]. Changes may be added in any order, because an op's colon is
        found before the types in its attributes; they must not overlap."""
        self.changes.append((start, end, replacement))

    def drop(self, start: int, end: int) -> None:
        """Deletes source[start:end] except for its line breaks."""
        self.put(start, end, "\n" * self.source.count("\n", start, end))

    def finish(self) -> str:
        self.changes.sort(key=lambda change: change[:2])
        pieces: list[str] = []
        self.moved_from, self.moved_to = [0], [0]
        done = written = 0
        for start, end, replacement in self.changes:
            kept = self.source[done:start]
            pieces += kept, replacement
            written += len(kept) + len(replacement)
            done = end
            self.moved_from.append(written)
            self.moved_to.append(end)
        pieces.append(self.source[done:])
        return "".join(pieces)

    def origin(self, position: int) -> int:
        """The source position of an output position (for inserted text: where it was inserted)."""
        index = bisect_right(self.moved_from, position) - 1
        origin = self.moved_to[index] + position - self.moved_from[index]
        limit = self.moved_to[index + 1] if index + 1 < len(self.moved_to) else len(self.source)
        return min(origin, limit)


def too_deep(source: str, most: int = MOST_NESTED) -> int | None:
    """The position of the first bracket nested more than `most` levels deep, or None. A recursive
    parser would overflow its stack there."""
    # Repeatedly removes empty pairs of brackets: each round removes one to four levels. This is
    # fast, and suffices for nearly every text.
    left = source.encode(errors="replace").replace(b"->", b"").translate(None, _NO_BRACKETS)
    rounds = 0
    while 4 * rounds + len(left) > most and 4 * rounds <= most:
        before, rounds = len(left), rounds + 1
        left = left.replace(b"()", b"").replace(b"[]", b"").replace(b"{}", b"").replace(b"<>", b"")
        if len(left) == before:
            break
    if 4 * rounds + len(left) <= most:
        return None
    # Otherwise look at each bracket. A `<` without a closing `>` is a comparison.
    open_: list[str] = []
    for token in _TOKEN.finditer(source):
        char = token[0]
        if char in ("(", "[", "{", "<"):
            open_.append(char)
            if len(open_) > most:
                return token.start()
        elif opening := _OPENING.get(char):
            while opening != "<" and open_[-1:] == ["<"]:
                open_.pop()
            if open_[-1:] == [opening]:
                open_.pop()
    return None


def after_space(source: str, position: int) -> int:
    """The position after white space."""
    match = _SPACE.match(source, position)
    return match.end() if match else position


def closing_angle(source: str, position: int) -> int | None:
    """The position after the `>` that closes the `<` at `position`; `position` if there is no `<`;
    None if it is not closed. `->` is an arrow."""
    start = after_space(source, position)
    if not source.startswith("<", start):
        return position
    depth = 0
    for token in _ANGLE.finditer(source, start):
        if token[0] == "<":
            depth += 1
        elif token[0] == ">":
            depth -= 1
            if depth == 0:
                return token.end()
    return None


def closing_brace(source: str, start: int) -> int | None:
    """The position after the `}` that closes the `{` at `start`, or None."""
    depth = 0
    for token in _BRACE.finditer(source, start):
        if token[0] == "{":
            depth += 1
        elif token[0] == "}":
            depth -= 1
            if depth == 0:
                return token.end()
    return None


def items(source: str, start: int) -> tuple[list[tuple[int, int]], int] | None:
    """Splits the text between the bracket at `start` and its partner at the commas outside nested
    brackets. Returns the parts' start and end positions without white space, and the position after
    the partner; None if it is not closed. `()` has no parts."""
    depth, begin = 0, start + 1
    found: list[tuple[int, int]] = []
    for token in _LIST.finditer(source, start):
        char = token[0]
        if char in "<([{":
            depth += 1
        elif char in ">)]}":
            depth -= 1
        if (char == "," and depth == 1) or depth == 0:
            first = after_space(source, begin)
            last = first + len(source[first : token.start()].rstrip())
            if depth or found or last > first:
                found.append((first, last))
            begin = token.end()
            if depth == 0:
                return found, token.end()
    return None
