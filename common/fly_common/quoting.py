"""A user's value as an error message shows it: escaped as Python writes it, and of bounded length.

A refused value may be as long as the input that held it: a number of 400 digits, an attribute of a
megabyte. The message names it and stays readable.
"""

from __future__ import annotations

MOST = 200  # characters of a value that a message shows
ELLIPSIS = "…"


def quoted(value: object, most: int = MOST) -> str:
    """`repr(value)`, at most `most` characters of it: the middle of a longer one becomes "…".

    A value whose `repr` raises, and an integer too long to be printed, is named by its type.
    """
    if isinstance(value, str | bytes) and len(value) > most:
        # Only the ends are shown: the rest of a long text need not be escaped for that.
        half = most // 2 + 1
        return shortened(repr(value[:half])[:-1] + repr(value[-half:]).lstrip("b")[1:], most)
    try:
        return shortened(repr(value), most)
    except Exception:  # a value of any class: its repr may do anything
        return f"<{type(value).__name__}>"


def shortened(text: object, most: int = MOST) -> str:
    """`str(text)`, at most `most` characters of it: the middle of a longer one becomes "…".

    For what is quoted without quotation marks: a name, a type, another program's words.
    """
    whole = str(text)
    if len(whole) <= most:
        return whole
    head = most * 2 // 3
    return whole[:head] + ELLIPSIS + whole[len(whole) - (most - head - 1) :]
