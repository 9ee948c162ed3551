"""What kernels print: `vprintf`'s format and arguments, as CUDA's printf formats them."""

from __future__ import annotations

import ctypes
import re
import struct

_CONVERSION = re.compile(
    r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+))?(hh|h|ll|l|z|j|t)?([diuoxXcsfFeEgGaAp%])"
)
LONGEST = 1 << 16  # bytes of a string


def formatted(form: int, values: int) -> str:
    """The text, from the addresses of a format and of the packed arguments."""
    at = values

    def take(kind: str) -> int | float:
        nonlocal at
        size = struct.calcsize(kind)
        at += -at % size
        (value,) = struct.unpack(f"<{kind}", ctypes.string_at(at, size))
        at += size
        return value

    def convert(match: re.Match[str]) -> str:
        flags, width, precision, length, letter = match.groups()
        if letter == "%":
            return "%"
        width = str(take("i")) if width == "*" else width or ""
        precision = str(take("i")) if precision == "*" else precision
        form = f"%{flags}{width}" + (f".{precision}" if precision is not None else "")
        wide = length in ("l", "ll", "z", "j", "t")
        if letter in "di":
            return f"{form}d" % take("q" if wide else "i")
        if letter in "uoxX":
            return f"{form}{'d' if letter == 'u' else letter}" % take("Q" if wide else "I")
        if letter == "c":
            return f"{form}c" % (int(take("i")) & 0xFF)
        if letter == "s":
            return f"{form}s" % _text(int(take("Q")))
        if letter == "p":
            return f"{form}s" % f"0x{take('Q'):x}"
        value = float(take("d"))
        return value.hex() if letter in "aA" else f"{form}{letter}" % value

    return _CONVERSION.sub(convert, _text(form))


def _text(address: int) -> str:
    if not address:
        return "(null)"
    return ctypes.string_at(address).decode(errors="replace")
