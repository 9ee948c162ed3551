"""Integer tuples and layouts as data, and their text. Imports no MLIR.

An integer tuple is a leaf or a Python tuple of integer tuples. A leaf is

    Int(4)                       printed 4            known when the kernel is compiled
    Int(None)                    printed ?            known when it runs, 32 bits
    Int(None, 64, 16)            printed ?{i64 div=16}
    Basis(Int(48), (1,))         printed 48E1         48 steps along coordinate 1
    None                         printed *            no value (a slice's free mode)

A layout is `shape:stride`, two congruent tuples: it maps a coordinate to the sum of coordinate
times stride. The text is FlyDSL's.

    tuple  := leaf | '(' tuple (',' tuple)* ')'
    leaf   := '*' | int ('E' number)*
    int    := ['-'] number | '?' [ '{' ['i32' | 'i64'] ['div' '=' number] '}' ]
    layout := tuple ':' tuple

Integers are Python's, so nothing overflows: the size of (65536,65536) is 4294967296.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from typing import TypeAlias

INT32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Int:
    """One integer of a shape, stride or coordinate: its value, or what is known of it.

    `value` None is dynamic. `width` is 32 or 64 bits; a static value has the narrowest of them
    that holds it. A dynamic value is a multiple of `divisibility`.
    """

    value: int | None
    width: int = 32
    divisibility: int = 1

    def __post_init__(self) -> None:
        if self.value is not None:
            fits = -INT32_MAX - 1 <= self.value <= INT32_MAX
            object.__setattr__(self, "width", 32 if fits else 64)
            object.__setattr__(self, "divisibility", 1)
        elif self.width not in (32, 64):
            raise ValueError(f"an integer of a layout has 32 or 64 bits, not {self.width}")
        elif self.divisibility < 1:
            raise ValueError(f"divisibility is at least 1, not {self.divisibility}")

    @property
    def is_static(self) -> bool:
        return self.value is not None

    @property
    def factor(self) -> int:
        """A number that divides every value this can have (0 only for the static 0)."""
        return self.divisibility if self.value is None else abs(self.value)

    def __str__(self) -> str:
        if self.value is not None:
            return str(self.value)
        notes = ["i64"] if self.width == 64 else []
        if self.divisibility != 1:
            notes.append(f"div={self.divisibility}")
        return f"?{{{' '.join(notes)}}}" if notes else "?"

    # The result of arithmetic, as far as it is known. The rules for divisibility are FlyDSL's
    # (IntUtils): sums and remainders keep the greatest common divisor, products multiply.

    def __add__(self, other: Int) -> Int:
        if self.value == 0:
            return other
        if other.value == 0:
            return self
        if self.value is not None and other.value is not None:
            return Int(self.value + other.value)
        return _dynamic(self, other, gcd(self.factor, other.factor))

    def __sub__(self, other: Int) -> Int:
        if other.value == 0:
            return self
        if self.value is not None and other.value is not None:
            return Int(self.value - other.value)
        return _dynamic(self, other, gcd(self.factor, other.factor))

    def __mul__(self, other: Int) -> Int:
        if self.value == 0 or other.value == 0:
            return Int(0)
        if self.value is not None and other.value is not None:
            return Int(self.value * other.value)
        return _dynamic(self, other, self.factor * other.factor)

    def __floordiv__(self, other: Int) -> Int:
        """Division that truncates, as `arith.divsi` does."""
        if other.value == 0:
            raise ValueError(f"{self} is divided by 0")
        if self.value == 0:
            return self
        if self.value is not None and other.value is not None:
            return Int(_truncated(self.value, other.value))
        return _dynamic(self, other, 1)

    def __mod__(self, other: Int) -> Int:
        """The remainder of a division that truncates, as `arith.remsi` gives it."""
        if other.value == 0:
            raise ValueError(f"{self} is divided by 0")
        if self.value == 0 or other.value == 1:
            return Int(0)
        if self.value is not None and other.value is not None:
            return Int(self.value - other.value * _truncated(self.value, other.value))
        return _dynamic(self, other, gcd(self.factor, other.factor))

    def ceildiv(self, other: Int) -> Int:
        if other.value == 0:
            raise ValueError(f"{self} is divided by 0")
        if self.value in (0, 1):
            return self
        if self.value is not None and other.value is not None:
            return Int(_truncated(self.value + other.value - 1, other.value))
        return _dynamic(self, other, 1)

    def widened(self) -> Int:
        """The same integer in 64 bits."""
        if self.value is not None or self.width == 64:
            return self
        return Int(None, 64, self.divisibility)


def _dynamic(lhs: Int, rhs: Int, divisibility: int) -> Int:
    return Int(None, max(lhs.width, rhs.width), max(1, divisibility))


def _truncated(dividend: int, divisor: int) -> int:
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


@dataclass(frozen=True, slots=True)
class Basis:
    """A stride along a coordinate rather than along memory: `scale` steps of mode `modes`."""

    scale: Int
    modes: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.scale}{''.join(f'E{mode}' for mode in self.modes)}"


IntTuple: TypeAlias = "Int | Basis | tuple[IntTuple, ...] | None"


@dataclass(frozen=True, slots=True)
class Layout:
    """`shape:stride`. Python integers and lists are taken too. ValueError if they are not
    congruent (the same tree)."""

    shape: IntTuple
    stride: IntTuple

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", int_tuple(self.shape))
        object.__setattr__(self, "stride", int_tuple(self.stride))
        if not congruent(self.shape, self.stride):
            raise ValueError(
                f"shape {text(self.shape)} and stride {text(self.stride)} are not congruent"
            )

    @property
    def is_static(self) -> bool:
        return is_static(self.shape) and is_static(self.stride)

    def __str__(self) -> str:
        return f"{text(self.shape)}:{text(self.stride)}"

    @staticmethod
    def parse(source: str) -> Layout:
        return parse_layout(source)


def int_tuple(value: object) -> IntTuple:
    """`value` as an integer tuple: Python integers become static leaves, lists tuples."""
    if value is None or isinstance(value, (Int, Basis)):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return Int(value)
    if isinstance(value, (tuple, list)):
        if not value:
            raise ValueError("an integer tuple has at least one element")
        return tuple(int_tuple(element) for element in value)
    raise TypeError(f"{value!r} is not an integer tuple")


def is_leaf(value: IntTuple) -> bool:
    return not isinstance(value, tuple)


def rank(value: IntTuple) -> int:
    return len(value) if isinstance(value, tuple) else 1


def leaves(value: IntTuple) -> Iterator[Int | Basis | None]:
    """The leaves from left to right."""
    if isinstance(value, tuple):
        for element in value:
            yield from leaves(element)
    else:
        yield value


def dynamic_leaves(value: IntTuple) -> list[Int]:
    """The dynamic leaves from left to right: what a value of this type carries when it runs."""
    found = []
    for leaf in leaves(value):
        number = leaf.scale if isinstance(leaf, Basis) else leaf
        if number is not None and number.value is None:
            found.append(number)
    return found


def is_static(value: IntTuple) -> bool:
    return not dynamic_leaves(value)


def congruent(lhs: IntTuple, rhs: IntTuple) -> bool:
    """Whether both are the same tree."""
    if not isinstance(lhs, tuple) or not isinstance(rhs, tuple):
        return not isinstance(lhs, tuple) and not isinstance(rhs, tuple)
    return len(lhs) == len(rhs) and all(map(congruent, lhs, rhs))


# -- text -----------------------------------------------------------------------------------------
def text(value: IntTuple) -> str:
    """The tuple as FlyDSL prints it, without white space: `(4,(2,?{i64}))`."""
    if isinstance(value, tuple):
        return f"({','.join(map(text, value))})"
    return "*" if value is None else str(value)


_LEAF = re.compile(
    r"""\s*(?:
        (?P<star>\*)
      | (?P<static>-?\d+)
      | (?P<dynamic>\?)(?:\s*\{\s*(?P<width>i32|i64)?\s*(?:div\s*=\s*(?P<div>\d+))?\s*\})?
    )(?P<modes>(?:E\d+)*)\s*""",
    re.VERBOSE,
)
_SPACE = re.compile(r"\s*")


class Scanner:
    """A position in the text of a type. `fail` raises a ValueError that shows where."""

    def __init__(self, source: str):
        self.source = source
        self.at = 0

    def fail(self, expected: str) -> ValueError:
        rest = self.source[self.at :].strip()
        found = f"`{rest}`" if rest else "the end"
        return ValueError(f"expected {expected}, found {found} in `{self.source.strip()}`")

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


@lru_cache(maxsize=4096)
def parse_int_tuple(source: str) -> IntTuple:
    """The integer tuple that `source` spells. Raises ValueError."""
    scanner = Scanner(source)
    value = scanner.int_tuple()
    scanner.end()
    return value


@lru_cache(maxsize=4096)
def parse_layout(source: str) -> Layout:
    """The layout that `source` spells. Raises ValueError."""
    scanner = Scanner(source)
    value = scanner.layout()
    scanner.end()
    return value
