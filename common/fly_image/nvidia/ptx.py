"""Sections in PTX text: named data in blocks of comments, which assemblers ignore.

    //.fly.section .fly.manifest text
    //.fly| one line of the section's text
    //.fly.end

With `base64` in place of `text`, the lines are the data's base64 digits, 76 on a line.
"""

from __future__ import annotations

import re

from fly_common.errors import InputError

_BLOCK = re.compile(
    r"^[ \t]*//\.fly\.section (?P<name>\S+) (?P<kind>\w+)[ \t\r]*\n"
    r"(?P<lines>(?:[ \t]*//\.fly\|[^\n]*\n)*)"
    r"(?P<end>[ \t]*//\.fly\.end\b)?",
    re.MULTILINE,
)
_LINE = re.compile(r"^[ \t]*//\.fly\| ?([^\n]*)\n", re.MULTILINE)
DIGITS = 76  # of base64 in a line


def sections(text: str) -> dict[str, bytes]:
    """Returns the sections by name. Raises InputError for a damaged block."""
    found: dict[str, bytes] = {}
    for block in _BLOCK.finditer(text):
        name, lines = block["name"], _LINE.findall(block["lines"])
        if block["end"] is None:
            raise InputError(f"the section {name} of the PTX has no end: the text is truncated")
        if block["kind"] == "text":
            found[name] = "\n".join(lines).encode()
        elif block["kind"] == "base64":
            found[name] = _decoded(name, "".join(lines))
        else:
            raise InputError(f"the section {name} of the PTX has the unknown form {block['kind']}")
    return found


def _decoded(name: str, digits: str) -> bytes:
    import base64

    try:
        return base64.b64decode(digits.replace("\r", ""), validate=True)
    except ValueError as error:
        raise InputError(f"the section {name} of the PTX is damaged: {error}") from None


def block(name: str, data: bytes) -> list[str]:
    """Returns the lines of a section, as text if it is printable text, else in base64."""
    text = _printable(data)
    if text is not None:
        return [f"//.fly.section {name} text", *(f"//.fly| {line}" for line in text), "//.fly.end"]
    import base64

    digits = base64.b64encode(data).decode()
    rows = [digits[at : at + DIGITS] for at in range(0, len(digits), DIGITS)]
    return [f"//.fly.section {name} base64", *(f"//.fly| {row}" for row in rows), "//.fly.end"]


def _printable(data: bytes) -> list[str] | None:
    """Returns the lines of text, or None for data that is not."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    lines = text.split("\n")
    return lines if all(line.isprintable() for line in lines) else None


def with_section(text: str, name: str, data: bytes) -> str:
    """Returns the PTX with a section appended."""
    end = "" if text.endswith("\n") or not text else "\n"
    return text + end + "\n".join(block(name, data)) + "\n"
