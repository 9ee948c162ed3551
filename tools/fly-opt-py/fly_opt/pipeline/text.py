"""Parser and printer of MLIR's textual pipelines.

    pipeline := element (',' element)*
    element  := name ('{' options '}')? ('(' pipeline? ')')?
    name     := [A-Za-z0-9_.-]+ | module:Class
    options  := any text with balanced braces; quotes protect braces

White space and comments, `// …` to the end of a line, may be between any two of these.
`module:Class` is a pass in a Python module, which is imported.

An element with parentheses is an anchor: its passes run on each operation of that name. The
outermost anchor is written or implied: `canonicalize,cse` is `builtin.module(canonicalize,cse)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from fly_common.errors import Place, UsageError
from fly_common.record import record

ROOT = "builtin.module"
_NAME = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*|[A-Za-z0-9_.-]+")
_SPACE = re.compile(r"(?:\s|//[^\n]*)*")


@record
class Step:
    """A pass: its name and its options as written, with white space collapsed. `owner` names the
    plugin that put it into the pipeline, and `slot` where; both don't count for equality."""

    name: str
    options: str = ""
    owner: str = ""
    slot: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Step) and (self.name, self.options) == (other.name, other.options)

    def __hash__(self) -> int:
        return hash((self.name, self.options))

    def __str__(self) -> str:
        return f"{self.name}{{{self.options}}}" if self.options else self.name


@record
class Nest:
    """An anchor: its elements run on each operation named `anchor` directly inside the parent."""

    anchor: str
    elements: tuple[Step | Nest, ...]

    def __str__(self) -> str:
        return f"{self.anchor}({','.join(map(str, self.elements))})"

    def steps(self) -> Iterator[Step]:
        """Yields every pass in the order in which it first runs."""
        for element in self.elements:
            if isinstance(element, Nest):
                yield from element.steps()
            else:
                yield element


@lru_cache(maxsize=64)
def parse(text: str) -> Nest:
    """Parses a pipeline. UsageError has a caret below the offending character."""
    reader = _Reader(text)
    elements = reader.pipeline()
    if reader.at < len(text):
        reader.fail("expected ',' or the end of the pipeline")
    match elements:
        case (Nest(anchor=anchor) as only,) if anchor == ROOT:
            return only
    return Nest(ROOT, elements)


class _Reader:
    def __init__(self, text: str):
        self.text = text
        self.at = 0
        self.skip()

    def skip(self) -> None:
        self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]

    def take(self, character: str) -> bool:
        """Consumes `character`, and white space after it, if it is next."""
        if not self.text.startswith(character, self.at):
            return False
        self.at += 1
        self.skip()
        return True

    def pipeline(self) -> tuple[Step | Nest, ...]:
        if self.at == len(self.text) or self.text[self.at] == ")":
            return ()
        elements = [self.element()]
        while self.take(","):
            elements.append(self.element())
        return tuple(elements)

    def element(self) -> Step | Nest:
        match = _NAME.match(self.text, self.at)
        if match is None:
            self.fail("expected the name of a pass or of an operation")
        self.at = match.end()
        self.skip()
        options = self.options() if self.text.startswith("{", self.at) else ""
        opened = self.at
        if not self.take("("):
            return Step(match[0], options)
        if options:
            self.fail("an anchor takes no options", at=match.start())
        elements = self.pipeline()
        if not self.take(")"):
            self.fail("this '(' is never closed", at=opened)
        return Nest(match[0], elements)

    def options(self) -> str:
        opened = self.at
        depth, quote = 0, ""
        while self.at < len(self.text):
            character = self.text[self.at]
            self.at += 1
            if quote:
                quote = "" if character == quote else quote
            elif character in "\"'":
                quote = character
            elif character == "{":
                depth += 1
            elif character == "}":
                depth -= 1
                if depth == 0:
                    inside = self.text[opened + 1 : self.at - 1]
                    self.skip()
                    return " ".join(inside.split())
        self.fail("this '{' is never closed", at=opened)

    def fail(self, message: str, at: int | None = None):
        at = self.at if at is None else at
        line = self.text.count("\n", 0, at)
        column = at - (self.text.rfind("\n", 0, at) + 1)
        shown = self.text.splitlines()[line] if self.text.strip() else self.text
        raise UsageError(message, place=Place("<pipeline>", line + 1, column + 1, shown))
