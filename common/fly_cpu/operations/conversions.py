"""Conversions between floats, and between floats and integers, as functions in LLVM IR.

Also the functions of LLVM's run-time library for bf16 and f16, which the host may lack.

Source: PTX ISA 8.8, "cvt".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_ROUNDING = {"rn": "roundeven", "rm": "floor", "rp": "ceil", "rz": "trunc"}
_NAMES = {"float": "f32", "double": "f64"}

# Rounding to nearest, ties to even, by integer arithmetic. NaNs become quiet.
_LIBRARY = """
define hidden bfloat @__truncsfbf2(float %x) nounwind {
  %bits = bitcast float %x to i32
  %last.at = lshr i32 %bits, 16
  %last = and i32 %last.at, 1
  %half = add i32 %last, 32767
  %rounded = add i32 %bits, %half
  %nan = fcmp uno float %x, %x
  %quiet = or i32 %bits, 4194304
  %chosen = select i1 %nan, i32 %quiet, i32 %rounded
  %high = lshr i32 %chosen, 16
  %narrow = trunc i32 %high to i16
  %result = bitcast i16 %narrow to bfloat
  ret bfloat %result
}
; Rounding twice is right if the first rounding is to odd.
define internal float @fly.odd(double %x) nounwind {
  %near = fptrunc double %x to float
  %back = fpext float %near to double
  %exact = fcmp ueq double %back, %x
  %bits = bitcast float %near to i32
  %size = call double @llvm.fabs.f64(double %x)
  %back.size = call double @llvm.fabs.f64(double %back)
  %up = fcmp ogt double %back.size, %size
  %down = sub i32 %bits, 1
  %cut = select i1 %up, i32 %down, i32 %bits
  %odd = or i32 %cut, 1
  %chosen = select i1 %exact, i32 %bits, i32 %odd
  %result = bitcast i32 %chosen to float
  ret float %result
}
define hidden bfloat @__truncdfbf2(double %x) nounwind {
  %odd = call float @fly.odd(double %x)
  %result = call bfloat @__truncsfbf2(float %odd)
  ret bfloat %result
}
define hidden half @__truncdfhf2(double %x) nounwind {
  %odd = call float @fly.odd(double %x)
  %result = fptrunc float %odd to half
  ret half %result
}
"""


def widening(form: str, name: str) -> str:
    """A function `name` from a float of 8 bits, the low byte of an i16, to an f16."""
    return _WIDEN[form].replace(f"@fly.{form}(", f"@{name}(")


# A float of 8 bits, in the low byte of %code, as f16: E5M2 is its upper half; E4M3 has the exponent
# bias 7 and NaN in place of infinity.
_WIDEN = {
    "e5m2": """
define internal half @fly.e5m2(i16 %code) nounwind {
  %bits = shl i16 %code, 8
  %result = bitcast i16 %bits to half
  ret half %result
}
""",
    "e4m3": """
define internal half @fly.e4m3(i16 %code) nounwind {
  %size = and i16 %code, 127
  %placed = shl i16 %size, 7
  %number = bitcast i16 %placed to half
  %scaled = fmul half %number, 2.560000e+02
  %nan = icmp eq i16 %size, 127
  %value = select i1 %nan, half 0xH7FFF, half %scaled
  %sign = and i16 %code, 128
  %negative = icmp ne i16 %sign, 0
  %minus = fneg half %value
  %signed = select i1 %negative, half %minus, half %value
  %result = select i1 %nan, half 0xH7FFF, half %signed
  ret half %result
}
""",
}

# f32 → 8 bits: rounded to a multiple of the smallest step that the format has at this magnitude,
# saturated to the greatest number; NaN stays NaN.
_NARROW = """
define internal i16 @fly.to.FORM(float %x) nounwind {
entry:
  %nan = fcmp uno float %x, %x
  %bits = bitcast float %x to i32
  %sign.at = lshr i32 %bits, 24
  %sign = and i32 %sign.at, 128
  %size = call float @llvm.fabs.f32(float %x)
  %over = fcmp ogt float %size, MOST
  %bounded = select i1 %over, float MOST, float %size
  %small = fcmp olt float %bounded, LEAST
  ; Below the smallest normal number the step is constant: adding a number whose last bit is worth
  ; that step rounds.
  %shifted = fadd float %bounded, MAGIC
  %shifted.bits = bitcast float %shifted to i32
  %subnormal = sub i32 %shifted.bits, MAGIC_BITS
  %bounded.bits = bitcast float %bounded to i32
  %last.at = lshr i32 %bounded.bits, DROPPED
  %last = and i32 %last.at, 1
  %half = add i32 %last, HALF
  %rounded = add i32 %bounded.bits, %half
  %cut = lshr i32 %rounded, DROPPED
  %normal = sub i32 %cut, BIAS
  %code = select i1 %small, i32 %subnormal, i32 %normal
  %number = select i1 %nan, i32 127, i32 %code
  %signed = or i32 %number, %sign
  %whole = select i1 %nan, i32 127, i32 %signed
  %result = trunc i32 %whole to i16
  ret i16 %result
}
"""


def _one(name: str, result: str, given: str, body: str) -> tuple[str, str]:
    head = f"define internal {result} @fly.nvvm.{name}({given}) alwaysinline nounwind {{\n"
    return name, f"{head}{body.strip(chr(10))}\n  ret {result} %result\n}}\n"


def _exact(value: float) -> str:
    """A float as LLVM writes it: the bits of the f64 of the same value."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def _to_integers() -> Iterator[tuple[str, str]]:
    for letter, kind in (("f", "float"), ("d", "double")):
        for code, bits, sign in (
            ("i", 32, "s"),
            ("ui", 32, "u"),
            ("ll", 64, "s"),
            ("ull", 64, "u"),
        ):
            whole = f"i{bits}"
            # NaN gives 0 between types of 32 bits, else the integer with only the highest bit set.
            nan = 0 if letter == "f" and bits == 32 else -(1 << bits - 1)
            for short, function in _ROUNDING.items():
                name = _NAMES[kind]
                body = f"""  %round = call {kind} @llvm.{function}.{name}({kind} %x)
  %number = call {whole} @llvm.fpto{sign}i.sat.{whole}.{name}({kind} %round)
  %nan = fcmp uno {kind} %x, %x
  %result = select i1 %nan, {whole} {nan}, {whole} %number"""
                yield _one(f"{letter}2{code}.{short}", whole, f"{kind} %x", body)
                if letter == "f":
                    yield _one(f"{letter}2{code}.{short}.ftz", whole, f"{kind} %x", body)


def _from_integers() -> Iterator[tuple[str, str]]:
    for code, bits, sign in (("i", 32, "s"), ("ui", 32, "u"), ("ll", 64, "s"), ("ull", 64, "u")):
        for letter, kind in (("f", "float"), ("d", "double")):
            body = f"  %result = {sign}itofp i{bits} %x to {kind}"
            yield _one(f"{code}2{letter}.rn", kind, f"i{bits} %x", body)
    yield _one("d2f.rn", "float", "double %x", "  %result = fptrunc double %x to float")
    body = "  %half = fptrunc float %x to half\n  %result = bitcast half %half to i16"
    yield _one("f2h.rn", "i16", "float %x", body)


def _floats() -> Iterator[tuple[str, str]]:
    for kind, form in (("half", "f16"), ("bfloat", "bf16")):
        body = f"  %result = fptrunc float %x to {kind}"
        yield _one(f"f2{form}.rn", kind, "float %x", body)
        # The first operand becomes the upper element.
        pair = f"""  %low = fptrunc float %y to {kind}
  %high = fptrunc float %x to {kind}
  %pair = insertelement <2 x {kind}> poison, {kind} %low, i32 0
  %result = insertelement <2 x {kind}> %pair, {kind} %high, i32 1"""
        yield _one(f"ff2{form}x2.rn", f"<2 x {kind}>", "float %x, float %y", pair)


def _narrow_floats() -> Iterator[tuple[str, str]]:
    for form, mantissa, bias, most in (("e4m3", 3, 7, 448.0), ("e5m2", 2, 15, 57344.0)):
        name, text = _one(
            f"{form}x2.to.f16x2.rn",
            "<2 x half>",
            "i16 %codes",
            f"""  %low.code = and i16 %codes, 255
  %high.code = lshr i16 %codes, 8
  %low = call half @fly.{form}(i16 %low.code)
  %high = call half @fly.{form}(i16 %high.code)
  %pair = insertelement <2 x half> poison, half %low, i32 0
  %result = insertelement <2 x half> %pair, half %high, i32 1""",
        )
        yield name, _WIDEN[form] + text
        dropped = 23 - mantissa
        # 2^(1 - bias - mantissa) is the smallest step; MAGIC's last bit is worth that.
        magic = 23 + 1 - bias - mantissa
        values = {
            "FORM": form,
            "MOST": _exact(most),
            "LEAST": _exact(2.0 ** (1 - bias)),
            "MAGIC_BITS": str(127 + magic << 23),
            "MAGIC": _exact(2.0**magic),
            "DROPPED": str(dropped),
            "HALF": str((1 << dropped - 1) - 1),
            "BIAS": str(127 - bias << mantissa),
        }
        helper = _NARROW
        for word, value in values.items():
            helper = helper.replace(word, value)
        name, text = _one(
            f"ff.to.{form}x2.rn",
            "i16",
            "float %x, float %y",
            f"""  %low = call i16 @fly.to.{form}(float %y)
  %up = call i16 @fly.to.{form}(float %x)
  %high = shl i16 %up, 8
  %result = or i16 %low, %high""",
        )
        yield name, helper + text


def table() -> dict[str, str]:
    """The functions by the intrinsics' names without `llvm.nvvm.`."""
    makers = (_to_integers, _from_integers, _floats, _narrow_floats)
    return {name: text for maker in makers for name, text in maker()}


def library() -> str:
    """The functions that generated code calls by their names in LLVM's run-time library."""
    return _LIBRARY
