"""Conversions between number formats (CDNA3 ISA manual, V_CVT_*).

Float to integer truncates (or rounds as named), saturates, and converts NaN to 0, as LLVM's
saturating conversions do. Conversions between two 64-bit types round once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fly_run.emulator.irgen import INTEGERS, Value
from fly_run.emulator.semantics.base.emit import Lanes
from fly_run.emulator.semantics.base.operation import Operation, valu

Body = Callable[..., object]


def operations() -> Iterator[Operation]:
    for name, (types, body) in TABLE.items():
        yield valu(name, types, body, chunk=16)
    # Emitted by the encoder, between temporaries.
    options = {"kinds": ("v",), "everywhere": True}
    yield valu("fly_bf16_of_f32", "i32 = float", _widened_bfloat, chunk=16, **options)


def _plain(opcode: str, element: str) -> Body:
    return lambda k, a: a.convert(opcode, element)


def to_integer(value: Value, element: str, signed: bool) -> Value:
    """Converts f32 or f64 as LLVM's fptosi.sat and fptoui.sat do, which are several times as long:
    they convert the lanes of a vector one by one where the processor has no such instruction."""
    width = INTEGERS[element]
    low = -(1 << width - 1) if signed else 0
    high = low + (1 << width) - 1
    # The nearest numbers whose integer part does not fit; `low - 1` may round to `low`, which gives
    # the same.
    below = value.compare("ole", low - 1)
    above = value.compare("oge", high + 1)
    fits = value.compare("ogt", low - 1) & value.compare("olt", high + 1)
    opcode = "fptosi" if signed or width < 32 else "fptoui"
    whole = fits.select(value, 0.0).convert(opcode, "i32")
    whole = above.select(high, whole)
    if signed:
        whole = below.select(low, whole)
    return whole.trunc(element)


def _to_integer(element: str, signed: bool, rounding: str | None = None) -> Body:
    def run(k: Lanes, a: Value) -> Value:
        if a.element == "half":
            a = a.convert("fpext", "float")
        if rounding == "half up":
            a = k.handler.intrinsic("llvm.floor", a + 0.5)
        elif rounding:
            a = k.handler.intrinsic(f"llvm.{rounding}", a)
        return to_integer(a, element, signed)

    return run


def _byte(number: int) -> Body:
    return lambda k, a: (a.lshr(8 * number) & 0xFF).convert("uitofp", "float")


def pack(low: Value, high: Value) -> Value:
    """Packs two 16-bit values into one register."""
    return low.bits("i16").zext("i32") | (high.bits("i16").zext("i32") << 16)


def _to_half_toward_zero(value: Value) -> Value:
    """Converts f32 to f16 towards zero: rounds to nearest, then steps back if that went too far."""
    nearest = value.convert("fptrunc", "half")
    f = value.function
    back = f.intrinsic("llvm.fabs", nearest.convert("fpext", "float"))
    size = f.intrinsic("llvm.fabs", value)
    bits = nearest.bits("i16")
    # An infinite f32 stays infinite; a finite one stops at the largest f16.
    too_far = back.compare("ogt", size)
    return too_far.select(bits - 1, bits).bits("half")


def normalised(signed: bool) -> Body:
    """v_cvt_pknorm: converts [-1, 1] or [0, 1] to 16-bit integers: the exact product, rounded once,
    as measured on gfx1201 (github.com/bjacob/goc, tests/normalized_hardware.h)."""

    def run(k: Lanes, a: Value, b: Value) -> Value:
        factor = 32767.0 if signed else 65535.0
        parts = []
        for value in (a, b):
            exact = value.convert("fpext", "double") * factor
            scaled = k.handler.intrinsic("llvm.roundeven", exact)
            low = -32767.0 if signed else 0.0
            bounded = k.handler.intrinsic(
                "llvm.minnum",
                k.handler.intrinsic("llvm.maxnum", scaled, scaled.like(low)),
                scaled.like(factor),
            )
            bounded = value.is_nan().select(0.0, bounded)
            parts.append(bounded.convert("fptosi", "i32").trunc("i16"))
        return pack(*parts)

    return run


def _insert_byte(k: Lanes, a: Value, byte: Value, old: Value) -> Value:
    """v_cvt_pk_u8_f32: inserts the value as a byte at position `byte` of the third source."""
    whole = k.handler.intrinsic("llvm.umin", to_integer(a, "i32", False), byte.like(255))
    shift = (byte & 3) << 3
    return (old & ~(byte.like(0xFF) << shift)) | (whole << shift)


def to_bfloat(value: Value) -> Value:
    """Converts f32 to bf16 (i16), to nearest even; a NaN becomes quiet."""
    bits = value.bits("i32")
    rounded = (bits + (bits.lshr(16) & 1) + 0x7FFF).lshr(16)
    quiet = bits.lshr(16) | 0x40
    return value.is_nan().select(quiet, rounded).trunc("i16")


def _widened_bfloat(k: Lanes, a: Value) -> Value:
    return to_bfloat(a).zext("i32")


def _through_float(opcode: str) -> Body:
    """Converts 16-bit integers to f16: exact in f32, rounded once."""
    return lambda k, a: a.convert(opcode, "float").convert("fptrunc", "half")


TABLE: dict[str, tuple[str, Body]] = {
    "v_cvt_f32_i32": ("float = i32", _plain("sitofp", "float")),
    "v_cvt_f32_u32": ("float = i32", _plain("uitofp", "float")),
    "v_cvt_f64_i32": ("double = i32", _plain("sitofp", "double")),
    "v_cvt_f64_u32": ("double = i32", _plain("uitofp", "double")),
    "v_cvt_f64_f32": ("double = float", _plain("fpext", "double")),
    "v_cvt_f32_f64": ("float = double", _plain("fptrunc", "float")),
    "v_cvt_f32_f16": ("float = half", _plain("fpext", "float")),
    "v_cvt_f16_f32": ("half = float", _plain("fptrunc", "half")),
    "v_cvt_f16_i16": ("half = i16", _through_float("sitofp")),
    "v_cvt_f16_u16": ("half = i16", _through_float("uitofp")),
    "v_cvt_i16_f16": ("i16 = half", _to_integer("i16", True)),
    "v_cvt_u16_f16": ("i16 = half", _to_integer("i16", False)),
    "v_cvt_i32_f32": ("i32 = float", _to_integer("i32", True)),
    "v_cvt_u32_f32": ("i32 = float", _to_integer("i32", False)),
    "v_cvt_i32_f64": ("i32 = double", _to_integer("i32", True)),
    "v_cvt_u32_f64": ("i32 = double", _to_integer("i32", False)),
    "v_cvt_rpi_i32_f32": ("i32 = float", _to_integer("i32", True, "half up")),
    "v_cvt_flr_i32_f32": ("i32 = float", _to_integer("i32", True, "floor")),
    "v_cvt_norm_i16_f16": (
        "i16 = half",
        lambda k, a: normalised(True)(k, *[a.convert("fpext", "float")] * 2).trunc("i16"),  # type: ignore[attr-defined]
    ),
    "v_cvt_norm_u16_f16": (
        "i16 = half",
        lambda k, a: normalised(False)(k, *[a.convert("fpext", "float")] * 2).trunc("i16"),  # type: ignore[attr-defined]
    ),
    **{f"v_cvt_f32_ubyte{n}": ("float = i32", _byte(n)) for n in range(4)},
    "v_cvt_pkrtz_f16_f32": (
        "i32 = float, float",
        lambda k, a, b: pack(_to_half_toward_zero(a), _to_half_toward_zero(b)),
    ),
    "v_cvt_pknorm_i16_f32": ("i32 = float, float", normalised(True)),
    "v_cvt_pknorm_u16_f32": ("i32 = float, float", normalised(False)),
    "v_cvt_pk_u8_f32": ("i32 = float, i32, i32", _insert_byte),
    "v_cvt_f32_bf16": ("float = i16", lambda k, a: (a.zext("i32") << 16).bits("float")),
    "v_cvt_pk_f16_f32": (
        "i32 = float, float",
        lambda k, a, b: pack(a.convert("fptrunc", "half"), b.convert("fptrunc", "half")),
    ),
    "v_cvt_pk_bf16_f32": (
        "i32 = float, float",
        lambda k, a, b: pack(to_bfloat(a), to_bfloat(b)),
    ),
}
