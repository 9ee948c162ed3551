"""Lowering of vector instructions: encodings, source and result modifiers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fly_run.emulator import state
from fly_run.emulator.isa.instruction import Immediate, Operand, Register
from fly_run.emulator.lowering import convert as lower_convert
from fly_run.emulator.lowering import dpp
from fly_run.emulator.lowering.registers import Unsupported, constant_bits, short_constant_bits
from fly_run.emulator.lowering.steps import (
    FLOATS,
    VCC,
    WIDE,
    Lowering,
    Source,
    Step,
    modifiers,
    part,
    plain,
)
from fly_run.emulator.semantics.base.operation import Operation

# The modifiers that each encoding may have. `bitop3` is an operand in disguise.
COMMON = ("clamp", "mul", "div", "op_sel", "bitop3")
SHORT_ELEMENTS = ("half", "i16")
ENCODED = {
    "sdwa": ("clamp", "mul", "div", "dst_sel", "dst_unused", "src0_sel", "src1_sel"),
    "dpp": (*dpp.MODIFIERS, "op_sel"),
}
FIELDS = {
    "DWORD": (0, 32),
    "WORD_0": (0, 16),
    "WORD_1": (16, 16),
    **{f"BYTE_{n}": (8 * n, 8) for n in range(4)},
}
SHORT = {"half": "f16", "float": "f32", "double": "f64"}
# Results of 16 bits that leave the other half as it was, and so may be put into the high half.
PACKED_RESULT = ("v_pk_", "v_dot")


def lower_valu(lowering: Lowering, operation: Operation, encoding: str) -> None:
    name = operation.name
    known = ENCODED.get(encoding, COMMON)
    packed = name.startswith(PACKED_RESULT) and not encoding
    if packed:
        known = ("clamp", "op_sel", "op_sel_hi", "neg_lo", "neg_hi")
    found = modifiers(lowering, *known)
    operands = lowering.instruction.operands
    if name.startswith("v_div_fmas"):
        operands = (*operands, Register("s", VCC, lowering.registers.mask_count))
    outputs, inputs = operation.outputs, operation.inputs
    if len(operands) != len(outputs) + len(inputs):
        raise Unsupported(f"{len(operands)} operands")
    selects = _op_sel(found, len(inputs), packed)
    sources = []
    for number, (operand, element) in enumerate(zip(operands[len(outputs) :], inputs, strict=True)):
        source = _source(lowering, operation, operand, element)
        if encoding == "dpp" and number == 0:
            source = dpp.move(lowering, source, element)
        if encoding == "sdwa" and number < 2 and element != "mask":
            signed = isinstance(operand, Register) and operand.sign_extend
            start, width = FIELDS[str(found.get(f"src{number}_sel", "DWORD"))]
            source = lowering.field(source, start, width, signed)
        if packed:
            source = _packed_source(lowering, source, element, found, number)
        elif _is_high(operand, selects[number]):
            if element not in SHORT_ELEMENTS:
                raise Unsupported("op_sel on a 32-bit operand")
            source = lowering.field(source, 16, 16, False)
        if isinstance(operand, Register | Immediate) and not packed:
            if (operand.negate or operand.absolute) and element not in FLOATS:
                # v_cndmask and v_mov take float modifiers on plain registers.
                element = "float" if element == "i32" else element
                if name not in ("v_cndmask_b32", "v_mov_b32", "v_cvt_f32_bf16"):
                    raise Unsupported("negation of an integer operand")
            source = lowering.with_signs(source, element, operand.negate, operand.absolute)
        sources.append(source)
    _finish(lowering, operation, operands[: len(outputs)], sources, found, selects[-1])
    if encoding == "dpp":
        lowering.add("fly_restore_exec")


def _is_high(operand: Operand, select: int) -> bool:
    """Whether an operand is the high half of its register: where the register's name does not say
    so (gfx11 and later), op_sel does."""
    if isinstance(operand, Register) and operand.half:
        return operand.half == "h"
    return bool(select)


def _source(lowering: Lowering, operation: Operation, operand: Operand, element: str) -> Source:
    name = operation.mnemonic
    halves = name.startswith(PACKED_RESULT) and element == "i32"
    if halves and isinstance(operand, Immediate) and not operand.literal:
        both = not lowering.registers.facts.is_gfx9
        if name.endswith("bf16") and (both or operand.real is not None):
            # gfx1100 and gfx1201 were measured to have it in both halves (`matrix_measured`).
            short = short_constant_bits(operand, "bf16")
            return lowering.word(short * 0x10001 if both else short)
        if operand.real is not None:
            # A float constant: of 16 bits in the low half where the halves are floats, else of 32
            # (LLVM: AMDGPUBaseInfo, getInlineEncodingV216 and getInlineEncodingV2BF16).
            return lowering.word(
                constant_bits(operand, "half" if name.endswith("f16") else "float")
            )
    return lowering.source(plain(operand), element)


def _op_sel(found: Mapping[str, object], count: int, packed: bool) -> tuple[int, ...]:
    """Which half each source is, and last the result."""
    chosen = found.get("op_sel")
    if packed or not isinstance(chosen, tuple):
        return (0,) * (count + 1)
    values = [int(value) for value in chosen]
    return (*(values[:-1] + [0] * count)[:count], values[-1])


def _packed_source(
    lowering: Lowering, source: Source, element: str, found: Mapping[str, object], number: int
) -> Source:
    """The halves that op_sel and op_sel_hi choose, with neg_lo and neg_hi. The addend of a dot
    product in f32 is whole, and neg_lo its sign."""

    def bit(name: str, default: int) -> int:
        values = found.get(name)
        if not isinstance(values, tuple) or number >= len(values):
            return default
        return int(values[number])

    if element == "float":
        return lowering.with_signs(source, element, bool(bit("neg_lo", 0)), False)
    low, high = bit("op_sel", 0), bit("op_sel_hi", 1)
    if (low, high) != (0, 1):
        selector = (0x0302 if low else 0x0100) | (0x0302 if high else 0x0100) << 16
        target = lowering.temporary()
        lowering.valu("v_perm_b32", (target,), source, source, lowering.word(selector))
        source = Source("v", target)
    signs = bit("neg_lo", 0) << 15 | bit("neg_hi", 0) << 31
    return lowering.with_signs(source, "i32", False, False, packed=signs)


def _finish(
    lowering: Lowering,
    operation: Operation,
    targets: tuple[Operand, ...],
    sources: list[Source],
    found: Mapping[str, object],
    high: int,
) -> None:
    """The operation itself, and what is done to its result."""
    name, outputs = operation.name, operation.outputs
    places: list[int] = []
    after: list[Step] = []
    for target, element in zip(targets, outputs, strict=True):
        if element == "mask":
            place, move = lowering.mask_target(target)
            places.append(place)
            after += [move] if move else []
        else:
            places.append(lowering.vector_target(target, element))
    select = str(found.get("dst_sel", "DWORD"))
    unused = str(found.get("dst_unused", "UNUSED_PAD"))
    high = _is_high(targets[0], high) if targets else False
    aside = outputs[0] != "mask" and (select != "DWORD" or high)
    # gfx11 and later leave the other half of a 16-bit result's register as it was.
    keeps = not lowering.registers.facts.is_gfx9 and outputs[0] in SHORT_ELEMENTS
    aside = aside or (keeps and not operation.keeps_high)
    if aside and ((operation.accumulate and not keeps) or outputs[0] in WIDE):
        raise Unsupported("a part of a register as the result of an accumulation")
    clamp, result = bool(found.get("clamp")), outputs[0]
    packed_half = name.startswith("v_pk_") and name.endswith("f16")
    if clamp and result not in FLOATS and not packed_half:
        name += ".clamp"
        if name not in lowering.table:
            raise Unsupported("integer clamp")
    target = lowering.temporary() if aside else places[0]
    if aside and operation.accumulate:
        old = Source("v", places[0])
        shift = lowering.word(16 if high else 0)
        lowering.valu("v_lshrrev_b32", (target,), shift, old)
    immediate = int(found.get("bitop3", 0) or 0)  # type: ignore[call-overload]
    lowering.valu(name, (target, *places[1:]), *sources, immediate=immediate)
    factor = {"mul": float, "div": lambda value: 1.0 / float(value)}
    for modifier, convert in factor.items():
        if modifier in found:
            if result not in SHORT:
                raise Unsupported("an output multiplier of what is no float")
            number = convert(found[modifier])  # type: ignore[arg-type]
            bits = constant_bits(Immediate(0, real=number), result)
            by = f"fly_scale_{SHORT[result]}"
            lowering.valu(by, (target,), Source("v", target), lowering.word(bits))
    if clamp and (result in FLOATS or packed_half):
        clamped = "fly_clamp_pk_f16" if packed_half else f"fly_clamp_{SHORT[result]}"
        _clamp(lowering, clamped, target)
    lowering.steps += after
    if not aside:
        return
    start, width = (16, 16) if high else FIELDS["WORD_0" if keeps else select]
    shift, mask = lowering.word(start), ((1 << width) - 1) << start
    value = Source("v", target)
    if unused != "UNUSED_PRESERVE" and not high and not keeps:
        # All other bits are zero, or copies of the sign above the field.
        value = lowering.field(value, 0, width, unused == "UNUSED_SEXT")
        mask = 0xFFFF_FFFF
    lowering.valu("fly_insert", (places[0],), value, shift, lowering.word(mask))


def _clamp(lowering: Lowering, name: str, row: int) -> None:
    # gfx12 has no DX10_CLAMP, and does what it asks for.
    always = int(not lowering.registers.facts.mode_has_ieee)
    lowering.valu(name, (row,), Source("v", row), immediate=always)


# -- instructions made of others --------------------------------------------------------------


def _compare_and_set(lowering: Lowering, name: str, encoding: str) -> None:
    """gfx9's v_cmpx: the comparison, whose result goes to EXEC too."""
    operation = lowering.table.get(name.replace("v_cmpx", "v_cmp"))
    if operation is None:
        raise Unsupported("this comparison")
    if encoding == "dpp":
        raise Unsupported("DPP")
    lower_valu(lowering, operation, encoding)
    target = lowering.scalar_target(lowering.instruction.operands[0], 2)
    lowering.add("s_mov_b64", state.EXEC, target)


def _packed_pair(single: str) -> Callable[[Lowering, str, str], None]:
    """v_pk_*_f32 and v_pk_mov_b32: two operations on parts of register pairs."""

    def run(lowering: Lowering, name: str, encoding: str) -> None:
        found = modifiers(lowering, "op_sel", "op_sel_hi", "neg_lo", "neg_hi", "clamp")
        target, *operands = lowering.instruction.operands
        row = lowering.vector_target(target, "i64")
        operation = lowering.table[single]
        element = operation.inputs[0]
        results = [lowering.temporary(), row + state.ROW]
        for half in (0, 1):
            sources = []
            for number, operand in enumerate(operands):
                default = half
                if single == "v_mov_b32":
                    # Source 0 makes the low result, source 1 the high one.
                    if number != half:
                        continue
                    chosen, default = found.get("op_sel"), 0
                else:
                    chosen = found.get("op_sel_hi" if half else "op_sel")
                choice = chosen[number] if isinstance(chosen, tuple) else default
                negated = found.get("neg_hi" if half else "neg_lo")
                negate = bool(negated[number]) if isinstance(negated, tuple) else False
                source = lowering.source(part(plain(operand), int(choice)), element)
                # The same operand may be negated in both halves: temporaries are few.
                sources.append(lowering.with_signs(source, "float", negate, False))
            lowering.valu(single, (results[half],), *sources)
            if found.get("clamp"):
                _clamp(lowering, "fly_clamp_f32", results[half])
        lowering.valu("v_mov_b32", (row,), Source("v", results[0]))

    return run


def _mixed(result: str) -> Callable[[Lowering, str, str], None]:
    """v_fma_mix: an f32 fma whose sources may be f16 halves."""

    def run(lowering: Lowering, name: str, encoding: str) -> None:
        found = modifiers(lowering, "op_sel", "op_sel_hi", "neg_lo", "neg_hi", "neg", "clamp")
        target, *operands = lowering.operands(4)
        row = lowering.vector_target(target, "i32")
        sources = []
        for number, operand in enumerate(operands):
            is_half, is_high = (
                bool(values[number]) if isinstance(values := found.get(name), tuple) else False
                for name in ("op_sel_hi", "op_sel")
            )
            source = lowering.source(plain(operand), "half" if is_half else "float")
            if is_half:
                source = lowering.field(source, 16, 16, False) if is_high else source
                converted = lowering.temporary()
                lowering.valu("v_cvt_f32_f16", (converted,), source)
                source = Source("v", converted)
            if isinstance(operand, Register | Immediate):
                negate, absolute = operand.negate, operand.absolute
                source = lowering.with_signs(source, "float", negate, absolute)
            sources.append(source)
        sum_at = row if result == "f32" else lowering.temporary()
        lowering.valu("v_fma_f32", (sum_at,), *sources)
        if found.get("clamp"):
            _clamp(lowering, "fly_clamp_f32", sum_at)
        if result == "f32":
            return
        lowering.valu("v_cvt_f16_f32", (sum_at,), Source("v", sum_at))
        start = 16 if result == "high" else 0
        mask = lowering.word(0xFFFF << start)
        lowering.valu("fly_insert", (row,), Source("v", sum_at), lowering.word(start), mask)

    return run


def _pack_halves(lowering: Lowering, name: str, encoding: str) -> None:
    """v_pack_b32_f16: two halves side by side."""
    found = modifiers(lowering, "op_sel")
    target, first, second = lowering.operands(3)
    row = lowering.vector_target(target, "i32")
    selects = _op_sel(found, 2, False)
    sources = []
    for number, operand in enumerate((first, second)):
        source = lowering.source(plain(operand), "half")
        source = lowering.field(source, 16 if selects[number] else 0, 16, False)
        if isinstance(operand, Register | Immediate):
            source = lowering.with_signs(source, "half", operand.negate, operand.absolute)
        sources.append(source)
    lowering.valu("v_lshl_or_b32", (row,), sources[1], lowering.word(16), sources[0])


def _swap(lowering: Lowering, name: str, encoding: str) -> None:
    """v_swap_b32: two registers change places."""
    modifiers(lowering)
    first, second = (lowering.vector_target(operand, "i32") for operand in lowering.operands(2))
    aside = lowering.temporary()
    for target, source in ((aside, first), (first, second), (second, aside)):
        lowering.valu("v_mov_b32", (target,), Source("v", source))


def _dot_of_signs(count: int) -> Callable[[Lowering, str, str], None]:
    """v_dot4_i32_iu8, v_dot8_i32_iu4 (RDNA3 ISA manual, VOP3P): neg_lo tells which factors are
    signed; the sum always is."""

    def run(lowering: Lowering, name: str, encoding: str) -> None:
        found = modifiers(lowering, "neg_lo", "clamp")
        target, *operands = lowering.operands(4)
        row = lowering.vector_target(target, "i32")
        sources = [lowering.source(operand, "i32") for operand in operands]
        flags = found.get("neg_lo")
        signed = [bool(flag) for flag in flags[:2]] if isinstance(flags, tuple) else [False, False]
        if signed == [False, True]:  # one row serves both: a product's factors may change places
            sources[:2], signed = sources[1::-1], [True, False]
        kinds = "".join("su"[not one] for one in signed)
        clamp = ".clamp" if found.get("clamp") else ""
        lowering.valu(f"fly_dot{count}_{kinds}{clamp}", (row,), *sources)

    return run


def _four_differences(lowering: Lowering, name: str, encoding: str) -> None:
    """v_mqsad_u32_u8: four windows, a byte apart, of a register pair against four bytes."""
    modifiers(lowering)
    target, pair, reference, addends = lowering.operands(4)
    row = lowering.row_source(target, 4)
    low = lowering.row_source(pair, 2)
    against = lowering.source(reference, "i32")
    sums = lowering.row_source(addends, 4)
    # The result may lie over the sources.
    results = lowering.temporary(4)
    for number in range(4):
        place = results + number * state.ROW
        window = Source("v", low + state.ROW), Source("v", low), lowering.word(number)
        lowering.valu("v_alignbyte_b32", (place,), *window)
        addend = Source("v", sums + number * state.ROW)
        lowering.valu("v_msad_u8", (place,), Source("v", place), against, addend)
    for number in range(4):
        at = number * state.ROW
        lowering.valu("v_mov_b32", (row + at,), Source("v", results + at))


EXPANSIONS: dict[str, Callable[[Lowering, str, str], None]] = {
    "v_pk_fma_f32": _packed_pair("v_fma_f32"),
    "v_pk_mul_f32": _packed_pair("v_mul_f32"),
    "v_pk_add_f32": _packed_pair("v_add_f32"),
    "v_pk_mov_b32": _packed_pair("v_mov_b32"),
    "v_fma_mix_f32": _mixed("f32"),
    "v_fma_mixlo_f16": _mixed("low"),
    "v_fma_mixhi_f16": _mixed("high"),
    "v_pack_b32_f16": _pack_halves,
    "v_swap_b32": _swap,
    "v_dot4_i32_iu8": _dot_of_signs(4),
    "v_dot8_i32_iu4": _dot_of_signs(8),
    "v_mqsad_u32_u8": _four_differences,
}


def expansion(name: str) -> Callable[[Lowering, str, str], None] | None:
    if name.startswith("v_cmpx_"):
        return _compare_and_set
    return EXPANSIONS.get(name) or lower_convert.expansion(name)
