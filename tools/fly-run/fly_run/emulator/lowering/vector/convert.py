"""Lowers multi-step conversions from and to 8-, 6- and 4-bit floating point (CDNA4 ISA manual,
V_CVT_SCALEF32_*): the fields of a register are extracted, converted one by one, and combined.

    v_cvt_scalef32_pk_fp8_f32      two f32 → two fp8 in a half of the result
    v_cvt_scalef32_sr_fp8_f16      f16 → fp8 in a byte, rounded stochastically
    v_cvt_scalef32_pk32_f32_fp6    32 fp6 in six registers → 32 f32
    v_cvt_scalef32_2xpk16_fp6_f32  2 · 16 f32, interleaved → 32 fp6

op_sel selects the byte or half: OPSEL 1:0 for the source, 3:2 (3) for the result; gfx12 selects
the byte by byte_sel.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from fly_run.emulator.isa.instruction import Immediate, Operand, Register
from fly_run.emulator.lowering.registers import Unsupported
from fly_run.emulator.lowering.steps import Lowering, Source, modifiers, plain
from fly_run.emulator.lowering.vector import dpp
from fly_run.emulator.lowering.vector.single import lower_valu
from fly_run.emulator.state import ROW

WIDTHS = {"fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6, "fp4": 4}
_SMALL, _LARGE = "(fp8|bf8|fp6|bf6|fp4)", "(f32|f16|bf16)"
NARROWING = re.compile(rf"v_cvt_(scalef32_)?(sr_)?(pk32_|2xpk16_|pk_)?{_SMALL}_{_LARGE}")
WIDENING = re.compile(rf"v_cvt_(scalef32_)?(pk32_|pk_)?{_LARGE}_{_SMALL}")
# Bits of the mantissa. Random numbers are as wide as the bits that the conversion drops.
MANTISSAS = {"f32": 23, "f16": 10, "bf16": 7, "fp8": 3, "bf8": 2, "fp6": 3, "bf6": 2, "fp4": 1}
UNSCALED = 0x3F80_0000  # 1.0
BLOCK = 32  # numbers in a block of six registers


def expansion(name: str) -> Callable[[Lowering, str, str], None] | None:
    """Returns the lowering of an instruction that no single handler implements."""
    if match := NARROWING.fullmatch(name):
        if match[3] in ("pk32_", "2xpk16_"):
            return _narrow_block
        return _narrow if match[1] or match[2] else None
    if match := WIDENING.fullmatch(name):
        if match[2] == "pk32_":
            return _widen_block
        return _widen if match[1] or match[2] else _widen_byte
    return None


def _bits(lowering: Lowering, *known: str) -> list[int]:
    """Returns the four bits of OPSEL; if three are given, the last is the result's."""
    chosen = modifiers(lowering, "op_sel", *known).get("op_sel", ())
    assert isinstance(chosen, tuple)
    values = [int(value) for value in chosen] or [0] * 4
    return values if len(values) == 4 else [*values[:-1], *[0] * (4 - len(values)), values[-1]]


def full_name(lowering: Lowering, stem: str) -> str:
    """Returns the full name of an operation that may have target-specific semantics."""
    operation = lowering.table.get(stem)
    if operation is None:
        raise Unsupported("this format on this target")
    return operation.name


# -- to small formats --------------------------------------------------------------------------


def _narrow(lowering: Lowering, name: str, encoding: str) -> None:
    match = NARROWING.fullmatch(name)
    assert match
    scaled, stochastic, packed, small, large = match.groups()
    target, *operands = lowering.instruction.operands
    byte = lowering.instruction.modifiers.get("byte_sel")
    chosen = _bits(lowering, "byte_sel")
    if chosen[0] or chosen[1]:
        raise Unsupported("op_sel of a source")
    scale = lowering.source(plain(operands.pop()), "i32") if scaled else lowering.word(UNSCALED)
    noise = lowering.source(plain(operands.pop()), "i32") if stochastic else None
    width = WIDTHS[small]
    count = 2 if packed else 1
    row = lowering.vector_target(target, "i32")
    start = 16 * chosen[3] if count * width == 16 else 8 * (chosen[2] + 2 * chosen[3])
    start = 8 * byte if isinstance(byte, int) else start
    result = lowering.temporary()
    code = result
    for number, value in enumerate(_values(lowering, operands, large, count)):
        code = lowering.temporary() if number else result
        if noise is None:
            lowering.valu(full_name(lowering, f"fly_encode_{small}"), (code,), value, scale)
        else:
            stem = f"fly_encode_sr_{small}"
            some = random_bits(lowering, noise, small, large, code)
            lowering.valu(full_name(lowering, stem), (code,), value, some, scale)
            noise = next_noise(lowering, noise) if number + 1 < count else noise
        if number:
            insert(lowering, result, code, width, width)
    insert(lowering, row, result, start, count * width)


def _values(
    lowering: Lowering, operands: list[Operand], large: str, count: int
) -> Iterator[Source]:
    """Yields the f32 values of the sources, one at a time."""
    if large != "f32":
        (operand,) = operands
        source = lowering.source(plain(operand), "i32")
        if isinstance(operand, Register | Immediate) and (operand.negate or operand.absolute):
            if count > 1:
                raise Unsupported("a sign modifier of a packed source")
            source = lowering.with_signs(source, "half", operand.negate, operand.absolute)
        aside = lowering.temporary()
        for half in range(count):
            yield from_half(lowering, source, large, half, aside)
    elif len(operands) < count:
        # A pair of registers.
        (operand,) = operands
        first = lowering.row_source(operand, 2)
        yield from (Source("v", first), Source("v", first + ROW))
    else:
        for operand in operands:
            source = lowering.source(plain(operand), "float")
            if isinstance(operand, Register | Immediate):
                negate, absolute = operand.negate, operand.absolute
                source = lowering.with_signs(source, "float", negate, absolute)
            yield source


def from_half(lowering: Lowering, source: Source, large: str, half: int, aside: int) -> Source:
    """Converts an f16 or bf16 half of a register to f32, in the row `aside`."""
    here = Source("v", aside)
    if large == "bf16":
        if half:
            lowering.valu("v_and_b32", (aside,), source, lowering.word(0xFFFF_0000))
        else:
            lowering.valu("v_lshlrev_b32", (aside,), lowering.word(16), source)
        return here
    if half:
        lowering.valu("v_lshrrev_b32", (aside,), lowering.word(16), source)
        source = here
    lowering.valu("v_cvt_f32_f16", (aside,), source)
    return here


def random_bits(lowering: Lowering, noise: Source, small: str, large: str, row: int) -> Source:
    """Puts the upper bits of a random number into `row`: as many as the conversion drops. In the
    conversion of an f32 the lower ones never matter."""
    if large == "f32":
        return noise
    count = MANTISSAS[large] - MANTISSAS[small]
    lowering.valu("v_and_b32", (row,), noise, lowering.word((1 << 32) - (1 << 32 - count)))
    return Source("v", row)


def next_noise(lowering: Lowering, noise: Source, row: int | None = None) -> Source:
    target = lowering.temporary() if row is None else row
    lowering.valu("v_prng_b32", (target,), noise)
    return Source("v", target)


def insert(lowering: Lowering, row: int, code: int, start: int, width: int) -> None:
    mask = lowering.word(((1 << width) - 1) << start)
    lowering.valu("fly_insert", (row,), Source("v", code), lowering.word(start), mask)


def _narrow_block(lowering: Lowering, name: str, encoding: str) -> None:
    match = NARROWING.fullmatch(name)
    assert match
    _, stochastic, packed, small, large = match.groups()
    modifiers(lowering)
    target, *operands = lowering.instruction.operands
    # Values that every number needs are copied into a row once.
    scale = lowering.in_row(lowering.source(plain(operands.pop()), "i32"), "i32")
    noise = None
    if stochastic:
        noise = lowering.in_row(lowering.source(plain(operands.pop()), "i32"), "i32")
    row = lowering.row_source(target, 6)
    each = BLOCK // len(operands) if large == "f32" else BLOCK // 2
    rows = [lowering.row_source(operand, each) for operand in operands]
    # The result may overlap the sources.
    result, code, value = lowering.temporary(6), lowering.temporary(), lowering.temporary()
    stem = f"fly_encode_{'sr_' if stochastic else ''}{small}"
    operation = full_name(lowering, stem)
    for number in range(BLOCK):
        if packed == "2xpk16_":
            source = Source("v", rows[number % 2] + number // 2 * ROW)
        elif large == "f32":
            source = Source("v", rows[0] + number * ROW)
        else:
            pair = Source("v", rows[0] + number // 2 * ROW)
            source = from_half(lowering, pair, large, number % 2, value)
        if noise is None:
            lowering.valu(operation, (code,), source, scale)
        else:
            some = random_bits(lowering, noise, small, large, code)
            lowering.valu(operation, (code,), source, some, scale)
            noise = next_noise(lowering, noise, noise.offset)
        put(lowering, result, code, 6 * number, 6)
    for number in range(6):
        lowering.valu("v_mov_b32", (row + number * ROW,), Source("v", result + number * ROW))


def put(lowering: Lowering, first: int, code: int, place: int, width: int) -> None:
    """Inserts a field at bit `place` of consecutive registers; it may extend into the next one."""
    start, row = place % 32, first + place // 32 * ROW
    inside = min(width, 32 - start)
    insert(lowering, row, code, start, inside)
    if inside < width:
        mask = lowering.word((1 << width - inside) - 1)
        lowering.valu("v_lshrrev_b32", (code,), lowering.word(inside), Source("v", code))
        lowering.valu("fly_insert", (row + ROW,), Source("v", code), lowering.word(0), mask)


# -- from small formats ------------------------------------------------------------------------


def _decoder(lowering: Lowering, small: str) -> str:
    return full_name(
        lowering, f"v_cvt_f32_{small}" if WIDTHS[small] == 8 else f"fly_decode_{small}"
    )


def decoded(
    lowering: Lowering, small: str, code: Source, scale: Source | None, aside: int, row: int
) -> None:
    """Decodes a number and scales it; without a scale, decodes into the temporary row `aside`."""
    lowering.valu(_decoder(lowering, small), (aside,), code)
    if scale is not None:
        lowering.valu("fly_scale_e8m0", (row,), Source("v", aside), scale)


def _widen_byte(lowering: Lowering, name: str, encoding: str) -> None:
    """V_CVT_F32_FP8 and _BF8: a single handler, applied to the selected byte."""
    byte = lowering.instruction.modifiers.get("byte_sel")
    if not isinstance(byte, int):
        lower_valu(lowering, lowering.table[full_name(lowering, name)], encoding)
        return
    modifiers(lowering, "byte_sel", *(dpp.MODIFIERS if encoding == "dpp" else ()))
    target, operand = lowering.operands(2)
    source = lowering.source(plain(operand), "i32")
    if encoding == "dpp":
        source = dpp.move(lowering, source, "i32")
    field = lowering.field(source, 8 * byte, 8, False)
    lowering.valu(full_name(lowering, name), (lowering.vector_target(target, "float"),), field)
    if encoding == "dpp":
        lowering.add("fly_restore_exec")


def _widen(lowering: Lowering, name: str, encoding: str) -> None:
    match = WIDENING.fullmatch(name)
    assert match
    scaled, packed, large, small = match.groups()
    known = {"sdwa": ("src0_sel",), "dpp": dpp.MODIFIERS}.get(encoding, ())
    found = modifiers(lowering, "op_sel", *known)
    chosen = _bits(lowering, *known)
    target, operand, *rest = lowering.instruction.operands
    source = lowering.source(plain(operand), "i32")
    if encoding == "dpp":
        source = dpp.move(lowering, source, "i32")
    scale = lowering.source(plain(rest[0]), "i32") if scaled else None
    width = WIDTHS[small]
    count = 2 if packed else 1
    start = 16 * chosen[0] if count * width == 16 else 8 * (chosen[0] + 2 * chosen[1])
    if found.get("src0_sel") == "WORD_1":
        start = 16
    values = [lowering.temporary() for _ in range(count)]
    for number, value in enumerate(values):
        field = lowering.field(source, start + number * width, width, False)
        decoded(lowering, small, field, scale, value, value)
    if large == "f32":
        row = lowering.row_source(target, count)
        for number, value in enumerate(values):
            lowering.valu("v_mov_b32", (row + number * ROW,), Source("v", value))
        if encoding == "dpp":
            lowering.add("fly_restore_exec")
        return
    row = lowering.vector_target(target, "i32")
    for number, value in enumerate(values):
        half = number if packed else chosen[3]
        insert_half(lowering, row, value, large, half)


def insert_half(lowering: Lowering, row: int, value: int, large: str, half: int) -> None:
    """Converts an f32 in the row `value` to f16 or bf16 in a half of `row`."""
    name = "v_cvt_f16_f32" if large == "f16" else "fly_bf16_of_f32"
    lowering.valu(name, (value,), Source("v", value))
    insert(lowering, row, value, 16 * half, 16)


def _widen_block(lowering: Lowering, name: str, encoding: str) -> None:
    match = WIDENING.fullmatch(name)
    assert match
    _, _, large, small = match.groups()
    modifiers(lowering)
    target, operand, by = lowering.operands(3)
    sources = lowering.row_source(operand, 6)
    scale = lowering.source(plain(by), "i32")
    row = lowering.row_source(target, BLOCK if large == "f32" else BLOCK // 2)
    # The result may overlap the source.
    copy, value = lowering.temporary(6), lowering.temporary()
    for number in range(6):
        lowering.valu("v_mov_b32", (copy + number * ROW,), Source("v", sources + number * ROW))
    scale = lowering.in_row(scale, "i32")
    for number in range(BLOCK):
        at, start = copy + 6 * number // 32 * ROW, 6 * number % 32
        if start <= 26:
            amounts = Source("v", at), lowering.word(start), lowering.word(6)
            lowering.valu("v_bfe_u32", (value,), *amounts)
        else:
            both = Source("v", at + ROW), Source("v", at), lowering.word(start)
            lowering.valu("v_alignbit_b32", (value,), *both)
        if large == "f32":
            decoded(lowering, small, Source("v", value), scale, value, row + number * ROW)
        else:
            decoded(lowering, small, Source("v", value), scale, value, value)
            insert_half(lowering, row + number // 2 * ROW, value, large, number % 2)
