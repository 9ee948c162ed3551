"""Parses the text of integer tuples, layouts and tiles. White space is insignificant.

tuple    := leaf | '(' tuple (',' tuple)* ')'
leaf     := '*' | int ('E' number)*
int      := ['-'] number | '?' [ '{' ['i32' | 'i64'] ['div' '=' number] '}' ]
layout   := tuple ':' tuple
swizzle  := 'S' '<' number ',' number ',' number '>'
coord    := 'CS' '<' number ',' number ',' modes ',' number ',' modes '>'
modes    := '[' [number (',' number)*] ']'
composed := (layout | swizzle | coord) ('o' tuple 'o' outer)+
outer    := layout | '[' composed ']'
tile     := mode | '[' mode ('|' mode)* ']'
mode     := '*' | int | layout | tile
"""

from __future__ import annotations

import re
from functools import lru_cache

from fly_dialect.layouts.int_tuple import IntTuple
from fly_dialect.layouts.integers import Basis, Int
from fly_dialect.layouts.layout import AnyLayout, ComposedLayout, Inner, Layout
from fly_dialect.layouts.swizzle import CoordSwizzle, Swizzle
from fly_dialect.layouts.tile import Mode, Tile

_LEAF = re.compile(
    r"""\s*(?:
        (?P<star>\*)
      | (?P<static>-?\d+)
      | (?P<dynamic>\?)(?:\s*\{\s*(?P<width>i32|i64)?\s*(?:div\s*=\s*(?P<div>\d+))?\s*\})?
    )(?P<modes>(?:E\d+)*)\s*""",
    re.VERBOSE,
)
_NUMBER = re.compile(r"\s*(\d+)")
_SPACE = re.compile(r"\s*")
LONGEST = 200  # characters of a type that a message quotes


class Scanner:
    """A position in the text of a type. `fail` returns a ValueError that shows the position."""

    def __init__(self, source: str):
        self.source = source
        self.at = 0

    def fail(self, expected: str) -> ValueError:
        rest = self.source[self.at :].strip()
        found = f"`{_shown(rest)}`" if rest else "the end"
        return ValueError(f"expected {expected}, found {found} in `{_shown(self.source.strip())}`")

    def skip(self) -> None:
        match = _SPACE.match(self.source, self.at)
        self.at = match.end() if match else self.at

    def take(self, literal: str) -> bool:
        self.skip()
        if not self.source.startswith(literal, self.at):
            return False
        self.at += len(literal)
        return True

    def expect(self, literal: str) -> None:
        if not self.take(literal):
            raise self.fail(f"`{literal}`")

    def number(self) -> int:
        match = _NUMBER.match(self.source, self.at)
        if match is None:
            raise self.fail("a number")
        self.at = match.end()
        return int(match[1])

    def end(self) -> None:
        self.skip()
        if self.at != len(self.source):
            raise self.fail("nothing more")

    def int_tuple(self) -> IntTuple:
        if self.take("("):
            elements = [self.int_tuple()]
            while self.take(","):
                elements.append(self.int_tuple())
            self.expect(")")
            return tuple(elements)
        return self.leaf()

    def leaf(self) -> Int | Basis | None:
        match = _LEAF.match(self.source, self.at)
        if match is None:
            raise self.fail("an integer, `?` or `*`")
        self.at = match.end()
        if match["star"]:
            return None
        if match["static"]:
            number = Int(int(match["static"]))
        else:
            number = Int(None, 64 if match["width"] == "i64" else 32, int(match["div"] or 1))
        if modes := match["modes"]:
            return Basis(number, tuple(int(mode) for mode in modes[1:].split("E")))
        return number

    def layout(self) -> Layout:
        shape = self.int_tuple()
        self.expect(":")
        return Layout(shape, self.int_tuple())

    def swizzle(self) -> Swizzle:
        self.expect("S")
        self.expect("<")
        mask = self.number()
        self.expect(",")
        base = self.number()
        self.expect(",")
        shift = self.number()
        self.expect(">")
        return Swizzle(mask, base, shift)

    def coord_swizzle(self) -> CoordSwizzle:
        self.expect("CS")
        self.expect("<")
        mask = self.number()
        self.expect(",")
        base_row = self.number()
        self.expect(",")
        mode_row = self._modes()
        self.expect(",")
        base_col = self.number()
        self.expect(",")
        mode_col = self._modes()
        self.expect(">")
        return CoordSwizzle(mask, base_row, mode_row, base_col, mode_col)

    def _modes(self) -> tuple[int, ...]:
        self.expect("[")
        if self.take("]"):
            return ()
        modes = [self.number()]
        while self.take(","):
            modes.append(self.number())
        self.expect("]")
        return tuple(modes)

    def any_layout(self) -> AnyLayout:
        """Parses a layout or a composition of layouts."""
        self.skip()
        if self.source.startswith("CS", self.at):
            found: Inner = self.coord_swizzle()
        elif self.source.startswith("S", self.at):
            found = self.swizzle()
        else:
            found = self.layout()
        while self.take("o"):
            offset = self.int_tuple()
            self.expect("o")
            found = ComposedLayout(found, offset, self._outer())
        if isinstance(found, (Swizzle, CoordSwizzle)):
            raise self.fail("`o` and an offset")
        return found

    def _outer(self) -> AnyLayout:
        if not self.take("["):
            return self.layout()
        outer = self.any_layout()
        self.expect("]")
        return outer

    def tile(self) -> Tile:
        if not self.take("["):
            return Tile(self._mode())
        modes = [self._mode()]
        while self.take("|"):
            modes.append(self._mode())
        self.expect("]")
        return Tile(tuple(modes))

    def _mode(self) -> Mode:
        self.skip()
        if self.source.startswith("[", self.at):
            return self.tile()
        start = self.at
        value = self.int_tuple()
        if self.take(":"):
            return Layout(value, self.int_tuple())
        if isinstance(value, (tuple, Basis)):
            self.at = start
            raise self.fail("an integer, a layout, `*` or `[`")
        return value


def _shown(text: str) -> str:
    """The text, truncated for a message."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


@lru_cache(maxsize=4096)
def parse_int_tuple(source: str) -> IntTuple:
    """Parses an integer tuple. Raises ValueError."""
    scanner = Scanner(source)
    value = scanner.int_tuple()
    scanner.end()
    return value


@lru_cache(maxsize=4096)
def parse_layout(source: str) -> Layout:
    """Parses a layout. Raises ValueError."""
    scanner = Scanner(source)
    value = scanner.layout()
    scanner.end()
    return value


@lru_cache(maxsize=4096)
def parse_any_layout(source: str) -> AnyLayout:
    """Parses a layout or a composed layout. Raises ValueError."""
    scanner = Scanner(source)
    value = scanner.any_layout()
    scanner.end()
    return value


@lru_cache(maxsize=1024)
def parse_tile(source: str) -> Tile:
    """Parses a tile. Raises ValueError."""
    scanner = Scanner(source)
    value = scanner.tile()
    scanner.end()
    return value
