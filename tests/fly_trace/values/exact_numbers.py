"""Numbers of the language's types as Python's: ranges, and rounding of rational numbers to floats.

It shares nothing with the compiler, and nothing with NumPy either: a float is what IEEE 754 says of
its precision and exponents.
"""

from __future__ import annotations

import math
from fractions import Fraction

INTEGERS = {
    f"{sign}{bits}": (-(1 << bits - 1), (1 << bits - 1) - 1)
    if sign == "i"
    else (0, (1 << bits) - 1)
    for sign in "iu"
    for bits in (8, 16, 32, 64, 128)
}
# Precision, and the exponents of the least and the greatest normal number.
FLOATS = {
    "f16": (11, -14, 15),
    "bf16": (8, -126, 127),
    "f32": (24, -126, 127),
    "f64": (53, -1022, 1023),
}
NAMES = ("bool", *INTEGERS, *FLOATS)
BITS = {name: int(name.strip("iubf")) for name in (*INTEGERS, *FLOATS)} | {"bool": 1}


def greatest(name: str) -> Fraction:
    """The greatest finite number of a float type."""
    precision, _, most = FLOATS[name]
    return (2 - Fraction(2) ** (1 - precision)) * Fraction(2) ** most


def rounded(number: Fraction | float | int, name: str, mode: str = "to_nearest_even") -> float:
    """The number of a float type that `number` rounds to."""
    if isinstance(number, float) and not math.isfinite(number):
        return number
    if number == 0:
        return float(number)
    exact, sign = Fraction(number), -1.0 if number < 0 else 1.0
    precision, least, _ = FLOATS[name]
    magnitude = abs(exact)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1
    unit = Fraction(2) ** (max(exponent, least) - precision + 1)
    below = exact // unit
    up = {
        "to_nearest_even": None,
        "toward_zero": exact < 0,
        "downward": False,
        "upward": True,
    }[mode]
    rest = exact - below * unit
    if rest and up is None:
        up = rest * 2 > unit or (rest * 2 == unit and below % 2 == 1)
    found = (below + 1 if rest and up else below) * unit
    if abs(found) > greatest(name):
        finite = math.copysign(float(greatest(name)), sign)
        inward = mode == "toward_zero" or mode == ("downward" if exact > 0 else "upward")
        return finite if inward else math.copysign(math.inf, sign)
    return math.copysign(float(found), sign)


def wrapped(number: int, name: str) -> int:
    """An integer modulo the numbers of its type."""
    low, high = INTEGERS[name]
    return (number - low) % (high - low + 1) + low


def holds(name: str, low: int, high: int) -> bool:
    least, most = INTEGERS[name]
    return least <= low and high <= most


def common(a: str, b: str) -> str | None:
    """The common type of two types, by the rules of docs/types.md."""
    if "bool" in (a, b):
        return b if a == "bool" else a
    if a in INTEGERS and b in INTEGERS:
        both = [*INTEGERS[a], *INTEGERS[b]]
        for bits in (8, 16, 32, 64, 128):
            if bits == 128 and "128" not in a + b:
                return None
            for sign in "ui" if min(both) >= 0 else "i":
                name = f"{sign}{bits}"
                if holds(name, min(both), max(both)) and (sign == "i" or {a[0], b[0]} == {"u"}):
                    return name
        return None
    if a in FLOATS and b in FLOATS:
        if a == b or {a, b} == {"f16", "bf16"}:
            return a if a == b else "f32"
        return a if BITS[a] > BITS[b] else b
    integer, floating = (a, b) if a in INTEGERS else (b, a)
    for name in (floating, "f32", "f64"):
        wide = BITS[name] >= min(BITS[integer], 32) and BITS[name] >= BITS[floating]
        if wide and not math.isinf(rounded(INTEGERS[integer][1], name)):
            return name
    raise AssertionError
