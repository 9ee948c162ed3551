"""Lowers vector instructions that only gfx1250 has and that are several operations: conversions of
eight or sixteen numbers at once, table lookups, moves between lanes.

Sources: LLVM's definitions (VOP3Instructions.td) for operands; MLIR's documentation of
`amdgpu.scaled_ext_packed816` for where scales are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from fly_run.emulator.isa.instruction import Operand, Register
from fly_run.emulator.lowering.registers import Unsupported
from fly_run.emulator.lowering.steps import Lowering, Source, modifiers, plain
from fly_run.emulator.lowering.vector import convert, dpp
from fly_run.emulator.lowering.vector.single import is_high
from fly_run.emulator.semantics.cdna5 import brain
from fly_run.emulator.state import LANES, ROW

Lower = Callable[[Lowering, str, str], None]

_WIDEN = re.compile(r"v_cvt_scale_pk(8|16)_(f32|f16|bf16)_(fp8|bf8|fp6|bf6|fp4)")
_NARROW = re.compile(r"v_cvt_scalef32_(sr_)?pk(8|16)_(fp8|bf8|fp6|bf6|fp4)_(f32|f16|bf16)")
_LANES = re.compile(r"v_permlane_(?:bcast|up|down|xor)_b32")
_PAIR = re.compile(r"v_cvt_pk_(fp8|bf8)_f16")
_WIDE_PAIR = re.compile(r"v_cvt_pk_f16_(fp8|bf8)")
_WIDE_BYTE = re.compile(r"v_cvt_f16_(fp8|bf8)")
_NOISY_BYTE = re.compile(r"v_cvt_sr_(fp8|bf8)_f16")
_NOISY_PAIR = re.compile(r"v_cvt_sr_pk_(f16|bf16)_f32")
_LOOKUP = re.compile(r"v_perm_pk16_b(4|6|8)_u4")
HALF_WAVE = 16
BRAIN = frozenset(operation.name for operation in brain.operations())  # bf16, which ignores MODE


def expansion(name: str) -> Lower | None:
    return next((lower for pattern, lower in LOWERINGS if pattern.fullmatch(name)), None)


# -- eight or sixteen numbers ----------------------------------------------------------------------


def _widen(lowering: Lowering, name: str, encoding: str) -> None:
    """Codes of consecutive bits become numbers in consecutive registers, times a scale."""
    match = _WIDEN.fullmatch(name)
    assert match
    count, large, small = int(match[1]), match[2], match[3]
    width = convert.WIDTHS[small]
    found = modifiers(lowering, "scale_sel")
    target, operand, by = lowering.operands(3)
    words = count * width // 32
    registers = count if large == "f32" else count // 2
    row = lowering.row_source(target, registers)
    scale = _block_scale(lowering, by, int(found.get("scale_sel", 0)), width)  # type: ignore[call-overload]
    codes = _copied(lowering, operand, words)
    value = lowering.temporary()
    for number in range(count):
        _code(lowering, value, codes, number * width, width)
        at = row + number * ROW if large == "f32" else value
        convert.decoded(lowering, small, Source("v", value), scale, value, at)
        if large != "f32":
            convert.insert_half(lowering, row + number // 2 * ROW, value, large, number % 2)


def _block_scale(lowering: Lowering, operand: Operand, select: int, width: int) -> Source:
    """Returns a row with each lane's E8M0 scale in the exponent field of an f32. Lanes 0 to 15 and
    16 to 31 both read the scales of 16 lanes, those of the half that `select` names. Bit 0 of
    `select` is set for blocks of 16; then come the byte (of narrower codes: whether it is byte 2),
    and the half. Narrower codes have another byte in the upper lanes."""
    is_vector = isinstance(operand, Register) and operand.bank != "s"
    if is_vector:  # of lanes that may be inactive
        source = Source("v", lowering.row_source(operand, 1))
    else:
        source = lowering.in_row(lowering.source(plain(operand), "i32"), "i32")
    blocks_of_16, byte, half = select & 1, select >> 1 & 3, select >> 3
    upper = byte
    if width == 8:
        if blocks_of_16:
            if (half, byte) not in ((0, 0), (1, 2)):
                raise Unsupported(f"scale_sel:{select}")
            upper = byte + 1
        elif half and not byte:
            raise Unsupported(f"scale_sel:{select}")
    else:
        if blocks_of_16 or select >> 3:
            raise Unsupported(f"scale_sel:{select}")
        byte, half = 2 * (select >> 1 & 1), select >> 2 & 1
        upper = byte + 1
    places = [
        4 * (HALF_WAVE * half + lane % HALF_WAVE if is_vector else lane)
        + (upper if lane % 32 >= HALF_WAVE else byte)
        for lane in range(LANES)
    ]
    moved = lowering.temporary()
    lowering.add("fly_matrix_lanes", moved, source.offset, lowering.registers.constants.row(places))
    # The byte becomes the exponent field of an f32.
    lowering.valu("v_and_b32", (moved,), Source("v", moved), lowering.word(255))
    lowering.valu("v_lshlrev_b32", (moved,), lowering.word(23), Source("v", moved))
    return Source("v", moved)


def _copied(lowering: Lowering, operand: Operand, count: int) -> int:
    """Copies registers aside, because the result may overlap them."""
    aside = lowering.temporary(count)
    if isinstance(operand, Register) and operand.bank != "s":
        row = lowering.row_source(operand, count)
        for number in range(count):
            at = number * ROW
            lowering.valu("v_mov_b32", (aside + at,), Source("v", row + at))
    elif count == 1:
        lowering.valu("v_mov_b32", (aside,), lowering.source(plain(operand), "i32"))
    else:
        raise Unsupported("a source that is not a vector register")
    return aside


def _code(lowering: Lowering, target: int, codes: int, place: int, width: int) -> None:
    """Extracts a field at bit `place` of consecutive registers."""
    at, start = codes + place // 32 * ROW, place % 32
    if start + width <= 32:
        amounts = Source("v", at), lowering.word(start), lowering.word(width)
        lowering.valu("v_bfe_u32", (target,), *amounts)
    else:
        both = Source("v", at + ROW), Source("v", at), lowering.word(start)
        lowering.valu("v_alignbit_b32", (target,), *both)
        mask = lowering.word((1 << width) - 1)
        lowering.valu("v_and_b32", (target,), Source("v", target), mask)


def _narrow(lowering: Lowering, name: str, encoding: str) -> None:
    """Numbers become codes of consecutive bits, divided by the exponent of an f32. With a random
    number, each rounding takes the next one of its sequence."""
    match = _NARROW.fullmatch(name)
    assert match
    stochastic, count, small, large = match[1], int(match[2]), match[3], match[4]
    modifiers(lowering)
    target, operand, *more = lowering.instruction.operands
    scale = lowering.in_row(lowering.source(plain(more.pop()), "i32"), "i32")
    noise = lowering.in_row(lowering.source(plain(more.pop()), "i32"), "i32") if more else None
    if bool(stochastic) != (noise is not None):
        raise Unsupported(f"{len(lowering.instruction.operands)} operands")
    width = convert.WIDTHS[small]
    words = count * width // 32
    rows = lowering.row_source(operand, count if large == "f32" else count // 2)
    result, code, value = lowering.temporary(words), lowering.temporary(), lowering.temporary()
    stem = f"fly_encode_{'sr_' if stochastic else ''}{small}"
    operation = convert.full_name(lowering, stem)
    for number in range(count):
        if large == "f32":
            source = Source("v", rows + number * ROW)
        else:
            pair = Source("v", rows + number // 2 * ROW)
            source = convert.from_half(lowering, pair, large, number % 2, value)
        if noise is None:
            lowering.valu(operation, (code,), source, scale)
        else:
            some = convert.random_bits(lowering, noise, small, large, code)
            lowering.valu(operation, (code,), source, some, scale)
            noise = convert.next_noise(lowering, noise, noise.offset)
        convert.put(lowering, result, code, width * number, width)
    row = lowering.row_source(target, words)
    for number in range(words):
        at = number * ROW
        lowering.valu("v_mov_b32", (row + at,), Source("v", result + at))


# -- one or two numbers ----------------------------------------------------------------------------


def _half_of(lowering: Lowering, operand: Operand, select: int) -> Source:
    """Returns a 16-bit source: a half by its name or by op_sel."""
    source = lowering.source(plain(operand), "i32")
    return lowering.field(source, 16, 16, False) if is_high(operand, select) else source


def _selects(lowering: Lowering, count: int, *known: str) -> tuple[int, ...]:
    """Returns op_sel of the sources, and of the result last."""
    chosen = modifiers(lowering, "op_sel", *known).get("op_sel", ())
    assert isinstance(chosen, tuple)
    values = [int(value) for value in chosen] or [0] * (count + 1)
    return (*(values[:-1] + [0] * count)[:count], values[-1])


def _signed(lowering: Lowering, source: Source, operand: Operand, element: str) -> Source:
    if isinstance(operand, Register) or hasattr(operand, "negate"):
        return lowering.with_signs(source, element, operand.negate, operand.absolute)
    return source


def _pair(lowering: Lowering, name: str, encoding: str) -> None:
    """v_cvt_pk_fp8_f16: both halves of a register become two codes in a half of the result."""
    match = _PAIR.fullmatch(name)
    assert match
    small = match[1]
    target, operand = lowering.operands(2)
    *_, high = _selects(lowering, 1)
    source = lowering.source(plain(operand), "i32")
    negate, absolute = operand.negate, operand.absolute
    if negate or absolute:
        raise Unsupported("a sign modifier of a packed source")
    both, code = lowering.temporary(), lowering.temporary()
    value = lowering.temporary()
    for half in (0, 1):
        number = convert.from_half(lowering, source, "f16", half, value)
        place = both if half == 0 else code
        operation = convert.full_name(lowering, f"fly_encode_{small}")
        lowering.valu(operation, (place,), number, lowering.word(convert.UNSCALED))
    convert.insert(lowering, both, code, 8, 8)
    row = lowering.vector_target(target, "i32")
    convert.insert(lowering, row, both, 16 if is_high(target, high) else 0, 16)


def _wide_pair(lowering: Lowering, name: str, encoding: str) -> None:
    """v_cvt_pk_f16_fp8: two codes in a half of a register become two f16."""
    match = _WIDE_PAIR.fullmatch(name)
    assert match
    known = dpp.MODIFIERS if encoding == "dpp" else ()
    target, operand = lowering.operands(2)
    low, _ = _selects(lowering, 1, *known)
    source = lowering.source(plain(operand), "i32")
    if encoding == "dpp":
        source = dpp.move(lowering, source, "i32")
    start = 16 if is_high(operand, low) else 0
    row, values = lowering.vector_target(target, "i32"), []
    for number in (0, 1):
        value = lowering.temporary()
        field = lowering.field(source, start + 8 * number, 8, False)
        convert.decoded(lowering, match[1], field, None, value, value)
        values.append(value)
    for number, value in enumerate(values):
        convert.insert_half(lowering, row, value, "f16", number)
    if encoding == "dpp":
        lowering.add("fly_restore_exec")


def _wide_byte(lowering: Lowering, name: str, encoding: str) -> None:
    """v_cvt_f16_fp8: the selected byte of a register becomes an f16."""
    match = _WIDE_BYTE.fullmatch(name)
    assert match
    known = dpp.MODIFIERS if encoding == "dpp" else ()
    target, operand = lowering.operands(2)
    byte = lowering.instruction.modifiers.get("byte_sel", 0)
    assert isinstance(byte, int)
    *_, high = _selects(lowering, 1, "byte_sel", *known)
    source = lowering.source(plain(operand), "i32")
    if encoding == "dpp":
        source = dpp.move(lowering, source, "i32")
    value = lowering.temporary()
    field = lowering.field(source, 8 * byte, 8, False)
    convert.decoded(lowering, match[1], field, None, value, value)
    half = int(is_high(target, high))
    convert.insert_half(lowering, lowering.vector_target(target, "i32"), value, "f16", half)
    if encoding == "dpp":
        lowering.add("fly_restore_exec")


def _noisy_byte(lowering: Lowering, name: str, encoding: str) -> None:
    """v_cvt_sr_fp8_f16: an f16 becomes a code in a byte, rounded stochastically."""
    match = _NOISY_BYTE.fullmatch(name)
    assert match
    small = match[1]
    target, operand, noise = lowering.operands(3)
    byte = lowering.instruction.modifiers.get("byte_sel", 0)
    assert isinstance(byte, int)
    low, *_ = _selects(lowering, 2, "byte_sel")
    half = _half_of(lowering, operand, low)
    half = _signed(lowering, half, operand, "half")
    value, code = lowering.temporary(), lowering.temporary()
    number = convert.from_half(lowering, half, "f16", 0, value)
    random = lowering.source(plain(noise), "i32")
    some = convert.random_bits(lowering, random, small, "f16", code)
    operation = convert.full_name(lowering, f"fly_encode_sr_{small}")
    lowering.valu(operation, (code,), number, some, lowering.word(convert.UNSCALED))
    convert.insert(lowering, lowering.vector_target(target, "i32"), code, 8 * byte, 8)


def _noisy_pair(lowering: Lowering, name: str, encoding: str) -> None:
    """v_cvt_sr_pk_bf16_f32: two f32 become two numbers of 16 bits. The lower half of the random
    number rounds the first, the upper half the second."""
    match = _NOISY_PAIR.fullmatch(name)
    assert match
    large = match[1]
    modifiers(lowering)
    target, *operands, noise = lowering.operands(4)
    random = lowering.source(plain(noise), "i32")
    both, value, some = lowering.temporary(), lowering.temporary(), lowering.temporary()
    for number, operand in enumerate(operands):
        source = lowering.source(plain(operand), "float")
        source = _signed(lowering, source, operand, "float")
        if number:
            lowering.valu("v_and_b32", (some,), random, lowering.word(0xFFFF_0000))
        else:
            lowering.valu("v_lshlrev_b32", (some,), lowering.word(16), random)
        lowering.valu(f"v_cvt_sr_{large}_f32", (value,), source, Source("v", some))
        convert.insert(lowering, both, value, 16 * number, 16)
    row = lowering.vector_target(target, "i32")
    lowering.valu("v_mov_b32", (row,), Source("v", both))


# -- tables and lanes ------------------------------------------------------------------------------


def _look_up(lowering: Lowering, name: str, encoding: str) -> None:
    """v_perm_pk16: sixteen indices of four bits select fields of a table. The first source is the
    upper part of the table: 32 bits, or 64 of codes of 8 bits; the second the lower 64, or 32 of
    codes of 4 bits."""
    match = _LOOKUP.fullmatch(name)
    assert match
    modifiers(lowering)
    width = int(match[1])
    target, upper, lower, indices = lowering.operands(4)
    parts = lowering.temporary(4)  # the table as two pairs: the upper 64 bits, the lower 64
    high, low = parts, parts + 2 * ROW
    counts = {4: (1, 1), 6: (1, 2), 8: (2, 2)}[width]
    sources = [
        _words(lowering, operand, count)
        for operand, count in zip((upper, lower), counts, strict=True)
    ]
    zero = lowering.word(0)
    if width == 4:  # 64 bits in all
        words = (sources[1][0], sources[0][0], zero, zero)
    else:
        words = (*sources[1], *sources[0], *[zero] * (2 - len(sources[0])))
    for place, word in zip((low, low + ROW, high, high + ROW), words, strict=True):
        lowering.valu("v_mov_b32", (place,), word)
    index_words = _words(lowering, indices, 2)
    chosen = lowering.temporary()
    results = 16 * width // 32
    result = lowering.temporary(results)
    for number in range(16):
        amounts = lowering.word(4 * (number % 8)), lowering.word(4)
        lowering.valu("v_bfe_u32", (chosen,), index_words[number // 8], *amounts)
        places = (Source("v", place) for place in (high, low, chosen))
        lowering.valu("fly_look_up", (chosen,), *places, immediate=width)
        convert.put(lowering, result, chosen, width * number, width)
    row = lowering.row_source(target, results)
    for number in range(results):
        at = number * ROW
        lowering.valu("v_mov_b32", (row + at,), Source("v", result + at))


def _words(lowering: Lowering, operand: Operand, count: int) -> list[Source]:
    """Returns the registers of an operand one by one."""
    if isinstance(operand, Register) and operand.bank != "s":
        row = lowering.row_source(operand, count)
        return [Source("v", row + number * ROW) for number in range(count)]
    if isinstance(operand, Register):
        first = lowering.registers.scalar(operand, count, lowering.instruction)
        return [Source("s", first + 4 * number) for number in range(count)]
    if count == 1:
        return [lowering.source(plain(operand), "i32")]
    place = lowering.source(plain(operand), "i64").offset
    return [Source("s", place), Source("s", place + 4)]


def _permute(lowering: Lowering, name: str, encoding: str) -> None:
    modifiers(lowering)
    target, source, *scalars = lowering.operands(4)
    places = [lowering.scalar_source(operand, "i32") for operand in scalars]
    rows = lowering.vector_target(target, "i32"), lowering.row_source(source, 1)
    lowering.add(name, *rows, *places)


def _index(lowering: Lowering, name: str, encoding: str) -> None:
    modifiers(lowering)
    target, source, size = lowering.operands(3)
    rows = lowering.vector_target(target, "i32"), lowering.row_source(source, 1)
    lowering.add(name, *rows, lowering.scalar_source(size, "i32"))


LOWERINGS: tuple[tuple[re.Pattern[str], Lower], ...] = (
    (_WIDEN, _widen),
    (_NARROW, _narrow),
    (_PAIR, _pair),
    (_WIDE_PAIR, _wide_pair),
    (_WIDE_BYTE, _wide_byte),
    (_NOISY_BYTE, _noisy_byte),
    (_NOISY_PAIR, _noisy_pair),
    (_LOOKUP, _look_up),
    (_LANES, _permute),
    (re.compile("v_permlane_idx_gen_b32"), _index),
)
