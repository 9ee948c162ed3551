"""Quotes a user's value in an error message: escaped as in Python, and of bounded length.

A refused value may be as long as the input that contains it: a number of 400 digits, an attribute
of a megabyte. The message stays readable.
"""

from __future__ import annotations

MOST = 200  # characters shown of a value
ELLIPSIS = "…"


def quoted(value: object, most: int = MOST) -> str:
    """Returns `repr(value)`, shortened to `most` characters by replacing the middle by "…".

    A value whose `repr` raises, or an integer too long to print, is replaced by its type.
    """
    if isinstance(value, str | bytes) and len(value) > most:
        # Only the ends are shown, so the rest of a long text is not escaped.
        half = most // 2 + 1
        return shortened(repr(value[:half])[:-1] + repr(value[-half:]).lstrip("b")[1:], most)
    try:
        return shortened(repr(value), most)
    except Exception:  # the repr of a user's class may raise anything
        return f"<{type(value).__name__}>"


def shortened(text: object, most: int = MOST) -> str:
    """Returns `str(text)`, shortened to `most` characters by replacing the middle by "…".

    For text without quotation marks: a name, a type, another program's message.
    """
    whole = str(text)
    if len(whole) <= most:
        return whole
    head = most * 2 // 3
    return whole[:head] + ELLIPSIS + whole[len(whole) - (most - head - 1) :]
