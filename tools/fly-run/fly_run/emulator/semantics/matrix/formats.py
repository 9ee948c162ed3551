"""Element formats of matrix operands: converts the raw bits of 16 lanes of a register to numbers.

A number is represented in one of four ways:

    value     one f32 (integers: i32, f64: double)
    flushed   the same, with subnormals as +0
    parts     significand and exponent: significand · 2^exponent is the value. The significand is an
              f32 in (-2, 2), not normalised where the number is subnormal; zero has a very low
              exponent, infinity and NaN a very high one, so that the greatest exponent of several
              products tells whether one of them is special.
    flushed_parts  the same, with subnormals as zeros of their sign

Sources: OCP "8-bit Floating Point Specification" and "Microscaling Formats (MX)" for fp8, bf8, fp6,
bf6 and fp4; CDNA3 ISA manual, "Data formats", for the FNUZ ones and xf32.
"""

from __future__ import annotations

from dataclasses import dataclass

from fly_run.emulator.irgen import Value

CHUNK = 16  # lanes
ZERO_EXPONENT = -10_000
SPECIAL_EXPONENT = 20_000
NAN, INFINITY = 0x7FC0_0000, 0x7F80_0000


@dataclass(frozen=True)
class Format:
    """The number of `bits` of an element; for a float, of its exponent and fraction. `specials`:
    "ieee" has infinities and NaN at the top exponent, "fn" has NaN with all bits but the sign set,
    "fnuz" has NaN in place of negative zero, "none" has neither."""

    bits: int
    exponent: int = 0
    fraction: int = 0
    bias: int = 0
    specials: str = "none"

    @property
    def words(self) -> int:
        """The number of registers that are read together, so that elements end at their end."""
        return {6: 3, 64: 2}.get(self.bits, 1)

    @property
    def elements(self) -> int:
        """The number of elements in those registers."""
        return 32 * self.words // self.bits


FORMATS = {
    "f64": Format(64),
    "f32": Format(32),
    "xf32": Format(32, 8, 23, 127, "ieee"),  # f32 with the last 13 bits zero
    "bf16": Format(16, 8, 7, 127, "ieee"),
    "f16": Format(16, 5, 10, 15, "ieee"),
    "i8": Format(8),
    "u8": Format(8),
    "i4": Format(4),
    "u4": Format(4),
    "fp8": Format(8, 4, 3, 7, "fn"),
    "bf8": Format(8, 5, 2, 15, "ieee"),
    "fp8_fnuz": Format(8, 4, 3, 8, "fnuz"),
    "bf8_fnuz": Format(8, 5, 2, 16, "fnuz"),
    "fp6": Format(6, 2, 3, 1),
    "bf6": Format(6, 3, 2, 3),
    "fp4": Format(4, 2, 1, 1),
}


def extract(words: list[Value], number: int, form: Format) -> Value:
    """Extracts element `number` of registers, in the low bits of an i32 (f64: an i64)."""
    if form.bits == 64:
        return words[0].zext("i64") | (words[1].zext("i64") << 32)
    first, shift = divmod(number * form.bits, 32)
    raw = words[first].lshr(shift) if shift else words[first]
    if shift + form.bits > 32:
        raw = raw | (words[first + 1] << (32 - shift))
    return raw & ((1 << form.bits) - 1) if form.bits < 32 else raw


def value(raw: Value, name: str) -> Value:
    """Returns the number as a single value."""
    if name == "f64":
        return raw.bits("double")
    if name == "f32":
        return raw.bits("float")
    if name == "xf32":
        return (raw & 0xFFFF_E000).bits("float")
    if name == "bf16":
        return (raw << 16).bits("float")
    if name == "f16":
        return raw.trunc("i16").bits("half").convert("fpext", "float")
    if name in ("u8", "u4"):
        return raw
    if name in ("i8", "i4"):
        shift = 32 - FORMATS[name].bits
        return (raw << shift).ashr(shift)
    significand, exponent, _, special = _decode(raw, FORMATS[name])
    number = significand * ((exponent + 127) << 23).bits("float")
    return number if special is None else special[0].select(special[1], number)


def flushed(raw: Value, name: str) -> Value:
    form = FORMATS[name]
    field = raw.lshr(form.fraction) & ((1 << form.exponent) - 1)
    return field.compare("eq", 0).select(0.0, value(raw, name))


def parts(raw: Value, name: str, flushes: bool = False) -> tuple[Value, Value]:
    """Returns the significand (f32) and exponent (i32); flushes subnormals if `flushes`."""
    if name == "xf32":
        raw = raw & 0xFFFF_E000
    significand, exponent, zero, special = _decode(raw, FORMATS[name], flushes)
    exponent = zero.select(ZERO_EXPONENT, exponent)
    if special is not None:
        significand = special[0].select(special[1], significand)
        exponent = special[0].select(SPECIAL_EXPONENT, exponent)
    return significand, exponent


def flushed_parts(raw: Value, name: str) -> tuple[Value, Value]:
    return parts(raw, name, flushes=True)


def _decode(
    raw: Value, form: Format, flushes: bool = False
) -> tuple[Value, Value, Value, tuple[Value, Value] | None]:
    """Returns the significand, the exponent, whether the number is zero, and for formats with
    special values whether it is one, and which."""
    top = (1 << form.exponent) - 1
    field = raw.lshr(form.fraction) & top
    fraction = raw & ((1 << form.fraction) - 1)
    normal = field.compare("ne", 0)
    digits = fraction + normal.select(raw.like(1 << form.fraction), 0)
    if flushes:
        digits = normal.select(digits, 0)
    sign = (raw << (31 - form.exponent - form.fraction)) & 0x8000_0000
    magnitude = digits.convert("uitofp", "float") * 2.0**-form.fraction
    significand = (magnitude.bits("i32") | sign).bits("float")
    exponent = normal.select(field, 1) - form.bias
    special = None
    if form.specials == "ieee":
        is_infinite = fraction.compare("eq", 0)
        number = is_infinite.select(sign | INFINITY, sign | NAN).bits("float")
        special = field.compare("eq", top), number
    elif form.specials != "none":
        pattern = 0x80 if form.specials == "fnuz" else 0x7F
        mask = 0xFF if form.specials == "fnuz" else 0x7F
        nan = raw.like(NAN).bits("float")
        special = (raw & mask).compare("eq", pattern), nan
    return significand, exponent, digits.compare("eq", 0), special
