"""The version bridge: rewrites LLVM IR printed by the bindings' LLVM 24 for LLVM 22.

    LLVM 24                                   LLVM 22 and newer
    float f0x3727C5AC                         float 0x3EE4F8B580000000
    float -inf, +qnan, +nan(0x3F)             float 0xFFF0000000000000, …
    half 9.997550e-02, not exact              half 0xH2E66
    module asm                                module asm "line"
        "line"                                module asm "other"
        "other"

Intrinsics that differ are rewritten by the backends (`fly_opt.lowering.interface`).

A decimal in LLVM 24 means the nearest value of its type; LLVM 22 requires it to be exact in that
type. Every LLVM reads the hexadecimal forms: `0x` and 16 digits are the bits of the double that
equals the float (LangRef, "Simple Constants"), `0xH` those of a half, `0xR` those of a bfloat.

The lexer recognises strings, comments and names and leaves them unchanged. A literal's type is the
last floating-point type before it on its line: in LLVM's grammar a constant always follows its
type, no other such type can come between them, and LLVM never breaks the line there. So only lines
that may contain such a literal are lexed; most of a module has none.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fly_common.errors import InputError, Place

if TYPE_CHECKING:
    from fractions import Fraction  # most kernels have no such literal

_TOKEN = re.compile(
    r"""
      ;[^\n]*                                                   # a comment
    | "[^"]*"                                                   # a string, a quoted name
    | [%@$!#^][-a-zA-Z$._0-9\\]+                                # a name
    | ^module\ asm\n(?P<assembly>(?:[ \t]+"[^"]*"\n?)+)
    | (?P<special>[-+](?:inf|qnan|s?nan\((?P<payload>0x[0-9A-Fa-f]+)\)))(?![-\w$.:])
    | (?P<word>[-+]?[a-zA-Z$._0-9][-a-zA-Z$._0-9]*\+?[0-9]*:?)  # 1.5e+10 is one word
    """,
    re.VERBOSE | re.MULTILINE,
)
# What a line to lex contains: `f0x`, a special value, or a digit and a point. Each alternative
# begins with a rare character: re then looks for these, which takes a tenth of the time.
_SIGN = re.compile(r"x(?<=f0x)|-(?:inf|q?s?nan)|\+(?:inf|q?s?nan)|\.(?<=[0-9]\.)")
_START_OF_ASSEMBLY = re.compile(r"module asm\n(?<=^module asm\n)", re.MULTILINE)
_BITS = re.compile(r"f0x([0-9A-Fa-f]+)")
_DECIMAL = re.compile(r"[-+]?[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?")
_ASSEMBLY = re.compile(r'module asm\n(?:[ \t]+"[^"]*"\n?)+')
_LINE = re.compile(r'"[^"]*"')
# Type → width in bits, and bits of its mantissa without the implicit one.
FORMATS = {"half": (16, 10), "bfloat": (16, 7), "float": (32, 23), "double": (64, 52)}
MOST_DIGITS = 2000  # of a decimal; LLVM prints at most 17
# Types whose special values and hexadecimal literals this chain does not support.
UNSUPPORTED = ("fp128", "x86_fp80", "ppc_fp128")


def bridge(text: str) -> str:
    """Rewrites what LLVM 22 rejects. InputError names a literal that has no form there."""
    return _literals(text)


def _literals(text: str) -> str:
    pieces: list[str] = []
    done = 0
    for start, end in _lines(text):
        kind = ""
        for match in _TOKEN.finditer(text, start, end):
            new: str | None = None
            if word := match["word"]:
                if word in FORMATS or word in UNSUPPORTED:
                    kind = word
                elif hexadecimal := _BITS.fullmatch(word):
                    new = _from_bits(int(hexadecimal[1], 16), _known(kind, text, match))
                elif _DECIMAL.fullmatch(word) and kind not in UNSUPPORTED:
                    new = _from_decimal(word, _known(kind, text, match))
            elif special := match["special"]:
                new = _from_special(special, match["payload"], _known(kind, text, match))
            elif assembly := match["assembly"]:
                new = "".join(f"module asm {line}\n" for line in _LINE.findall(assembly))
            if new is not None:
                pieces += (text[done : match.start()], new)
                done = match.end()
    return "".join([*pieces, text[done:]])


def _lines(text: str) -> Iterator[tuple[int, int]]:
    """Yields the extent of each line that must be lexed; for module assembly, of all its lines."""
    end = 0
    found = [*_START_OF_ASSEMBLY.finditer(text), *_SIGN.finditer(text)]
    for sign in sorted(one.start() for one in found):
        if sign < end:
            continue
        start = text.rfind("\n", 0, sign) + 1
        if assembly := _ASSEMBLY.match(text, start):
            end = assembly.end()
        else:
            end = text.find("\n", sign)
            end = len(text) if end < 0 else end
        yield start, end


def _known(kind: str, text: str, match: re.Match[str]) -> str:
    """Returns the type of a literal. InputError if the literal has no form in LLVM 22."""
    if kind in FORMATS:
        return kind
    line = text.count("\n", 0, match.start()) + 1
    column = match.start() - (text.rfind("\n", 0, match.start()) + 1) + 1
    place = Place("<llvm ir>", line, column, text.splitlines()[line - 1], len(match[0]))
    described = f"of type {kind}" if kind else "without a type before it"
    raise InputError(
        f"the constant {match[0]} {described} can't be written for LLVM 22", place=place
    )


def _from_bits(bits: int, kind: str) -> str:
    """Returns the literal for the value of type `kind` with these bits."""
    if kind == "half":
        return f"0xH{bits:04X}"
    if kind == "bfloat":
        return f"0xR{bits:04X}"
    if kind == "double":
        return f"0x{bits:016X}"
    return f"0x{_widened(bits):016X}"


def _widened(bits: int) -> int:
    """Returns the bits of the double that equals a float. Computed on bits, because a conversion by
    the processor would make a signaling NaN quiet."""
    sign, exponent, mantissa = bits >> 31, bits >> 23 & 0xFF, bits & 0x7FFFFF
    if exponent == 0xFF:
        return sign << 63 | 0x7FF << 52 | mantissa << 29
    (value,) = struct.unpack("<f", struct.pack("<I", bits))
    (double,) = struct.unpack("<Q", struct.pack("<d", value))
    return double


def _from_special(literal: str, payload: str | None, kind: str) -> str:
    width, mantissa = FORMATS[kind]
    quiet = 1 << (mantissa - 1)
    bits = ((1 << (width - 1 - mantissa)) - 1) << mantissa
    if payload is not None:
        bits |= int(payload, 16)
    if literal[1:].startswith(("qnan", "nan")):
        bits |= quiet
    if literal[0] == "-":
        bits |= 1 << (width - 1)
    return _from_bits(bits, kind)


def _from_decimal(literal: str, kind: str) -> str | None:
    """Returns the literal for the value of `kind` nearest to a decimal; None if the decimal is
    valid as it is: LLVM 22 reads it as a double, which has to be exact in `kind`."""
    if kind == "double":
        return None
    exponent = literal.lower().partition("e")[2]
    if len(literal) > MOST_DIGITS or len(exponent) > len("+99999"):
        raise InputError(f"the constant {literal[:40]}… is too long to be read")
    # Most are exact. The module of fractions takes milliseconds to import.
    if _is_exact(float(literal), kind):
        return None
    from fractions import Fraction

    bits = nearest(Fraction(literal), kind)
    if literal.startswith("-"):
        bits |= 1 << (FORMATS[kind][0] - 1)
    if _value(bits, kind) == float(literal):
        return None
    return _from_bits(bits, kind)


def _is_exact(value: float, kind: str) -> bool:
    """Whether a finite double is a value of type half, bfloat or float."""
    try:
        packed = struct.pack("<e" if kind == "half" else "<f", value)
    except OverflowError:
        return False
    if kind == "half":
        return struct.unpack("<e", packed)[0] == value
    return struct.unpack("<f", packed)[0] == value and (kind == "float" or packed[:2] == b"\0\0")


def nearest(value: Fraction, kind: str) -> int:
    """Returns the bits of |value| rounded to `kind`, ties to even (IEEE 754, 4.3.1)."""
    from fractions import Fraction

    width, mantissa = FORMATS[kind]
    bias = (1 << (width - 2 - mantissa)) - 1
    magnitude = abs(value)
    if not magnitude:
        return 0
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** exponent:
        exponent -= 1
    exponent = max(exponent, 1 - bias)  # below that, subnormal
    steps = round(magnitude / Fraction(2) ** (exponent - mantissa))  # round() ties to even
    # A subnormal has no implicit one; a carry out of the mantissa increments the exponent.
    bits = steps + ((exponent + bias - 1) << mantissa)
    infinity = ((1 << (width - 1 - mantissa)) - 1) << mantissa
    return min(bits, infinity)


def _value(bits: int, kind: str) -> float:
    """Returns the value of a finite number or infinity of type half, bfloat or float."""
    if kind == "half":
        return struct.unpack("<e", struct.pack("<H", bits))[0]
    wide = bits << 16 if kind == "bfloat" else bits
    return struct.unpack("<f", struct.pack("<I", wide))[0]
