"""Lines of LLVM IR: operands, types, sizes."""

from __future__ import annotations

import re

_PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">"}
_SCALARS = {"half": 2, "bfloat": 2, "float": 4, "double": 8, "fp128": 16}
_VECTOR = re.compile(r"<(\d+) x (.+)>")
_POINTER = re.compile(r"ptr(?: addrspace\(\d+\))?")
_SIMPLE = re.compile(r"%[\w.$-]+|%\"[^\"]*\"|\w+")


def closing(text: str, at: int) -> int:
    """Returns the position of the bracket that closes the one at `at`; the end if there is none."""
    depth, quoted = 0, False
    for place in range(at, len(text)):
        char = text[place]
        if char == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif char in "([{<":
            depth += 1
        elif char in ")]}>":
            depth -= 1
            if depth == 0:
                return place
    return len(text)


def split(text: str) -> list[str]:
    """Splits at the commas outside of brackets."""
    parts, start, at = [], 0, 0
    quoted = False
    while at < len(text):
        char = text[at]
        if char == '"':
            quoted = not quoted
        elif not quoted and char in _PAIRS:
            at = closing(text, at)
        elif not quoted and char == ",":
            parts.append(text[start:at].strip())
            start = at + 1
        at += 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def take_type(text: str) -> tuple[str, str]:
    """Splits a type from what follows it."""
    text = text.lstrip()
    if match := _POINTER.match(text):
        return match[0], text[match.end() :].lstrip()
    if text[:1] in _PAIRS:
        end = closing(text, 0) + 1
        return text[:end], text[end:].lstrip()
    match = _SIMPLE.match(text)
    assert match, text
    return match[0], text[match.end() :].lstrip()


def size_of(kind: str) -> str:
    """Returns the bytes that a store of this type writes, as an LLVM constant."""
    if kind in _SCALARS:
        return str(_SCALARS[kind])
    if kind.startswith("ptr"):
        return "8"
    if match := re.fullmatch(r"i(\d+)", kind):
        return str((int(match[1]) + 7) // 8)
    if match := _VECTOR.fullmatch(kind):
        count, element = int(match[1]), match[2]
        if bits := re.fullmatch(r"i(\d+)", element):
            return str((count * int(bits[1]) + 7) // 8)
        return str(count * int(size_of(element)))
    return f"ptrtoint (ptr getelementptr ({kind}, ptr null, i32 1) to i64)"


def operand(text: str) -> tuple[str, str]:
    """Splits "ptr addrspace(1) align 4 %x" into the type and the value."""
    kind, rest = take_type(text)
    return kind, value_of(rest)


def value_of(text: str) -> str:
    """Drops the attributes in front of a value."""
    text = text.strip()
    while True:
        if text.startswith("align ") and (match := re.match(r"align \d+\s+", text)):
            text = text[match.end() :]
            continue
        match = re.match(r"([a-z_]+)(\(|\s+)", text)
        if not match or match[1] in _VALUES:
            return text
        if match[2] == "(":
            text = text[closing(text, match.end() - 1) + 1 :].lstrip()
        else:
            text = text[match.end() :]


# Words with which a value may begin, and which are followed by something.
_VALUES = frozenset(
    (
        *("getelementptr", "inttoptr", "addrspacecast", "bitcast", "ptrtoint", "add", "sub"),
        *("xor", "trunc", "splat", "blockaddress", "dso_local_equivalent", "no_cfi"),
    )
)
