"""Vector instructions that compilers rarely emit: cube maps, sums of differences, conversions for
graphics, and forms kept from earlier processors (CDNA3 ISA manual, section 16.8)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.emit import Lanes
from fly_run.emulator.semantics.base.operation import Operation, rows, valu
from fly_run.emulator.semantics.vector.floating.convert import normalised, to_integer
from fly_run.emulator.semantics.vector.floating.float import scale

Body = Callable[..., object]
CHUNK = 16
SIGNIFICAND, BIAS = 53, 1023  # of a double
FRACTION_BITS = 1201  # bits of 2/π in the hardware's table


def operations() -> Iterator[Operation]:
    for name, (types, body) in TABLE.items():
        count = len(types.partition("=")[2].split(","))
        yield valu(name, types, body, chunk=CHUNK, kinds=rows(count))


def _largest_of(k: Lanes, x: Value, y: Value, z: Value) -> tuple[Value, Value]:
    """Tests whether z is the major axis, and if not, whether y is."""
    size_x, size_y, size_z = (k.handler.intrinsic("llvm.fabs", value) for value in (x, y, z))
    by_z = size_z.compare("oge", size_x) & size_z.compare("oge", size_y)
    return by_z, size_y.compare("oge", size_x)


def _negative(value: Value) -> Value:
    return value.compare("olt", 0.0)


def _face(k: Lanes, x: Value, y: Value, z: Value) -> Value:
    by_z, by_y = _largest_of(k, x, y, z)
    faces = [
        _negative(value).select(value.like(2.0 * n + 1), 2.0 * n)
        for n, value in enumerate((x, y, z))
    ]
    return by_z.select(faces[2], by_y.select(faces[1], faces[0]))


def _coordinate_s(k: Lanes, x: Value, y: Value, z: Value) -> Value:
    by_z, by_y = _largest_of(k, x, y, z)
    of_x = _negative(x).select(z, -z)
    return by_z.select(_negative(z).select(-x, x), by_y.select(x, of_x))


def _coordinate_t(k: Lanes, x: Value, y: Value, z: Value) -> Value:
    by_z, by_y = _largest_of(k, x, y, z)
    of_y = _negative(y).select(-z, z)
    return by_z.select(-y, by_y.select(of_y, -y))


def _major_axis(k: Lanes, x: Value, y: Value, z: Value) -> Value:
    by_z, by_y = _largest_of(k, x, y, z)
    return by_z.select(z, by_y.select(y, x)) * 2.0


def _offset_of_nibble(k: Lanes, a: Value) -> Value:
    """Converts a signed nibble in sixteenths: -0.5 to 0.4375."""
    return (a << 28).ashr(28).convert("sitofp", "float") * 0.0625


def _half_normalised(signed: bool) -> Body:
    def run(k: Lanes, a: Value, b: Value) -> object:
        wide = (value.convert("fpext", "float") for value in (a, b))
        return normalised(signed)(k, *wide)

    return run


def _accumulate_byte(k: Lanes, a: Value, place: Value, old: Value) -> Value:
    """Inserts the value as a byte at one position of the result."""
    whole = k.handler.intrinsic("llvm.umin", to_integer(a, "i32", False), place.like(255))
    shift = (place & 3) << 3
    return (old & ~(place.like(0xFF) << shift)) | (whole << shift)


def _differences(window: Value, reference: Value, masked: bool) -> Value:
    """Sums the absolute differences of four bytes; masked: ignores bytes whose reference is 0."""
    total = None
    for start in range(0, 32, 8):
        x, y = window.lshr(start) & 0xFF, reference.lshr(start) & 0xFF
        part = x.compare("ugt", y).select(x - y, y - x)
        if masked:
            part = y.compare("eq", 0).select(0, part)
        total = part if total is None else total + part
    assert total is not None
    return total


def quad_differences(masked: bool, held: bool = False) -> Body:
    """Compares four windows of the first source, one byte apart, with the second; the sums have 16
    bits and saturate if `held`."""

    def run(k: Lanes, a: Value, b: Value, c: Value) -> Value:
        total = None
        for number in range(4):
            window = a.lshr(8 * number).trunc("i32")
            part = _differences(window, b, masked) + (c.lshr(16 * number).trunc("i32") & 0xFFFF)
            part = k.handler.intrinsic("llvm.umin", part, part.like(0xFFFF)) if held else part
            part = (part & 0xFFFF).zext("i64") << (16 * number)
            total = part if total is None else total | part
        assert total is not None
        return total

    return run


def two_over_pi(bits: int) -> int:
    """Returns the first `bits` fraction bits of 2/π, by Machin's formula for π."""
    scale = 1 << bits + 64

    def arctangent(inverse: int) -> int:
        total, term, n = 0, scale // inverse, 1
        while term:
            total += term // n if n % 4 == 1 else -(term // n)
            term //= inverse * inverse
            n += 2
        return total

    pi = Fraction(4 * (4 * arctangent(5) - arctangent(239)), scale)
    return int(2 / pi * (1 << bits))


def _reduction_part(k: Lanes, a: Value, segment: Value) -> Value:
    """v_trig_preop_f64: 53 bits of 2/π as a double, starting at a position given by the exponent of
    the first source and the segment (ISA manual, V_TRIG_PREOP_F64)."""
    h = k.handler
    exponent = a.bits("i64").lshr(52) & 0x7FF
    shift = (segment & 31).zext("i64") * SIGNIFICAND
    beyond = exponent - (BIAS + SIGNIFICAND + 1)
    shift = shift + beyond.compare("sgt", 0).select(beyond, 0)
    # The fraction is followed by zeros.
    start = h.intrinsic("llvm.umin", shift, shift.like(FRACTION_BITS))
    words = [_table_word(k, start.lshr(5) + n) for n in range(3)]
    inside = start & 31
    upper = (words[0] << 32) | words[1]
    # The next word's bits are shifted in from the right; a 64-bit shift by 32 is well defined.
    bits = (upper << inside) | words[2].lshr(inside.like(32) - inside)
    whole = bits.lshr(64 - SIGNIFICAND).convert("uitofp", "double")
    huge = exponent.compare("uge", 1968).select(shift.like(128), 0)
    return scale(whole, huge - shift - SIGNIFICAND)


def _table_word(k: Lanes, index: Value) -> Value:
    """Returns 32-bit words of the fraction of 2/π, as i64; the first has its highest bits."""
    h, lanes = k.handler, k.chunk
    count = FRACTION_BITS // 32 + 4
    digits = two_over_pi(FRACTION_BITS) << (32 * count - FRACTION_BITS)
    words = (digits >> (32 * (count - 1 - n)) & 0xFFFF_FFFF for n in range(count))
    listed = ", ".join(f"i32 {word - (word >> 31 << 32)}" for word in words)
    name = "@fly_two_over_pi"
    h.declarations.add(f"{name} = private constant [{count} x i32] [{listed}]")
    places = h.value("ptr", lanes, f"getelementptr i32, ptr {name}, {index.type} {index.name}")
    gather = f"llvm.masked.gather.v{lanes}i32.v{lanes}p0"
    mask, zero = f"<{lanes} x i1>", f"<{lanes} x i32>"
    h.declarations.add(f"declare {zero} @{gather}({places.type}, {mask}, {zero})")
    ones = ", ".join(["i1 true"] * lanes)
    text = (
        f"call {zero} @{gather}({places.type} align 4 {places.name}, {mask} <{ones}>,"
        f" {zero} zeroinitializer)"
    )
    return h.value("i32", lanes, text).zext("i64")


TABLE: dict[str, tuple[str, Body]] = {
    "v_cubeid_f32": ("float = float, float, float", _face),
    "v_cubesc_f32": ("float = float, float, float", _coordinate_s),
    "v_cubetc_f32": ("float = float, float, float", _coordinate_t),
    "v_cubema_f32": ("float = float, float, float", _major_axis),
    "v_cvt_off_f32_i4": ("float = i32", _offset_of_nibble),
    "v_cvt_pknorm_i16_f16": ("i32 = half, half", _half_normalised(True)),
    "v_cvt_pknorm_u16_f16": ("i32 = half, half", _half_normalised(False)),
    "v_cvt_pkaccum_u8_f32": ("i32 += float, i32", _accumulate_byte),
    "v_qsad_pk_u16_u8": ("i64 = i64, i32, i64", quad_differences(False)),
    "v_mqsad_pk_u16_u8": ("i64 = i64, i32, i64", quad_differences(True)),
    "v_trig_preop_f64": ("double = double, i32", _reduction_part),
}
