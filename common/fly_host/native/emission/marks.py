"""Placeholders in texts of `fly_host.refusals` for values that only the running code knows.

A mark is a kind and names of LLVM values between two NUL characters; `parts` takes a text apart:

    number     %v3          an i64
    tuple      %v3,4        several: "(3, 4)"
    array      %v7,%v8      as many i64 as %v8, at the address %v7
    triple     %v1,%v2,1    a grid or a block: "8×8"
    dtype      %v5          a DLDataType, as an i32
    place      %v6          a DLDevice, as an i64: "on cuda:0"
    float      %v9          a double
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MARK = "\0"
_MARKED = re.compile(f"{MARK}([a-z]+) ([^{MARK}]*){MARK}")


def mark(kind: str, *values: str) -> str:
    return f"{MARK}{kind} {','.join(values)}{MARK}"


def integer(value: str) -> str:
    """An i64: as it is, if it is a constant."""
    return mark("number", value) if value.startswith("%") else value


def parts(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The pieces of a text: ("text", (words,)), or the kind of a mark and its values."""
    at = 0
    for found in _MARKED.finditer(text):
        if found.start() > at:
            yield "text", (text[at : found.start()],)
        yield found[1], tuple(found[2].split(",")) if found[2] else ()
        at = found.end()
    if at < len(text):
        yield "text", (text[at:],)
