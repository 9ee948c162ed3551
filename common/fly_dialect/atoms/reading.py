"""Parsers for the text of instructions: numbers, words, element types, `key = value`."""

from __future__ import annotations

import re

from fly_dialect.layouts.scanner import Scanner

_NUMBER = re.compile(r"\s*(-?\d+)")
_WORD = re.compile(r"\s*([A-Za-z_]\w*)")
_SHAPE = re.compile(r"\s*(\d+)x(\d+)x(\d+)")
_STRING = re.compile(r'\s*"([^"\\]*)"')


def number(scanner: Scanner) -> int:
    return int(_match(scanner, _NUMBER, "a number")[1])


def word(scanner: Scanner) -> str:
    return _match(scanner, _WORD, "a word")[1]


def string(scanner: Scanner) -> str:
    return _match(scanner, _STRING, "a quoted string")[1]


def flag(scanner: Scanner) -> bool:
    """Parses `true`, `false`, or a number, which MLIR also accepts."""
    if match := _NUMBER.match(scanner.source, scanner.at):
        scanner.at = match.end()
        return bool(int(match[1]))
    found = word(scanner)
    if found not in ("true", "false"):
        scanner.at -= len(found)
        raise scanner.fail("true or false")
    return found == "true"


def shape(scanner: Scanner) -> tuple[int, int, int]:
    """Parses M, N and K as `16x16x32`."""
    match = _match(scanner, _SHAPE, "a shape MxNxK")
    return int(match[1]), int(match[2]), int(match[3])


def key(scanner: Scanner, name: str) -> None:
    """Parses `name =`."""
    scanner.expect(name)
    scanner.expect("=")


def element(scanner: Scanner) -> str:
    """Parses an MLIR type, up to the comma or bracket that ends it."""
    scanner.skip()
    start, depth = scanner.at, 0
    for index in range(start, len(scanner.source)):
        char = scanner.source[index]
        if char in "<([{":
            depth += 1
        elif char == ">" and scanner.source[index - 1] == "-":
            continue  # an arrow
        elif depth and char in ">)]}":
            depth -= 1
        elif depth == 0 and char in ",>)]}":
            scanner.at = index
            break
    else:
        scanner.at = len(scanner.source)
    found = re.sub(r"\s+", " ", scanner.source[start : scanner.at].strip())
    if not found:
        raise scanner.fail("an element type")
    return found


def signature(scanner: Scanner) -> tuple[str, str, str]:
    """Parses the element types of A, B and accumulator after a shape: `, (f16, f16) -> f32`."""
    scanner.expect(",")
    scanner.expect("(")
    a = element(scanner)
    scanner.expect(",")
    b = element(scanner)
    scanner.expect(")")
    scanner.expect("->")
    return a, b, element(scanner)


def _match(scanner: Scanner, pattern: re.Pattern[str], expected: str) -> re.Match[str]:
    match = pattern.match(scanner.source, scanner.at)
    if match is None:
        raise scanner.fail(expected)
    scanner.at = match.end()
    return match
