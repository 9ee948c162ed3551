"""Lowers vector instructions that are one operation: encodings and operand modifiers."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fly_run.emulator.isa.instruction import Immediate, Operand, Register
from fly_run.emulator.lowering.registers import Unsupported, constant_bits, short_constant_bits
from fly_run.emulator.lowering.steps import (
    FLOATS,
    VCC,
    WIDE,
    Lowering,
    Source,
    modifiers,
    plain,
)
from fly_run.emulator.lowering.vector import dpp
from fly_run.emulator.semantics.base.operation import Operation

# The modifiers that each encoding may have. `bitop3` is really an operand.
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
# With `clamp`, results that are always within their type's range: comparisons (for which it
# enables signaling), minima and maxima, and conversions, which saturate.
IN_RANGE = re.compile(
    r"v_cmpx?_\w+|v_(pk_)?(min|max|med)\w*_[iu](16|32)|v_frexp_exp_\w+"
    r"|v_cvt_(pk_|pknorm_|pkaccum_|flr_|rpi_|norm_)?[iu](8|16|32)_\w+"
)
# Operations with two f16 results in one register.
PACKED_HALVES = re.compile(r"v_pk_\w+_f16|v_cvt_pk(rtz)?_f16_f32")
# Prefixes of operations on packed sources, whose halves op_sel selects.
PACKED_RESULT = ("v_pk_", "v_dot")


def lower_valu(lowering: Lowering, operation: Operation, encoding: str) -> None:
    name = operation.name
    known = ENCODED.get(encoding, COMMON)
    packed = name.startswith(PACKED_RESULT) and encoding != "sdwa"
    if packed:
        known = ("clamp", "op_sel", "op_sel_hi", "neg_lo", "neg_hi")
        known += dpp.MODIFIERS if encoding else ()
    found = modifiers(lowering, *known)
    operands = lowering.instruction.operands
    if name.startswith("v_div_fmas"):
        operands = (*operands, Register("s", VCC, lowering.registers.mask_count))
    outputs, inputs = operation.outputs, operation.inputs
    if len(operands) != len(outputs) + len(inputs):
        raise Unsupported(f"{len(operands)} operands")
    selects = op_sel(found, len(inputs), packed)
    sources = []
    for number, (operand, element) in enumerate(zip(operands[len(outputs) :], inputs, strict=True)):
        source = source_of(lowering, operation, operand, element)
        if encoding == "dpp" and number == 0:
            source = dpp.move(lowering, source, element)
        if encoding == "sdwa" and number < 2 and element != "mask":
            signed = isinstance(operand, Register) and operand.sign_extend
            start, width = FIELDS[str(found.get(f"src{number}_sel", "DWORD"))]
            source = lowering.field(source, start, width, signed)
        if packed:
            source = _packed_source(lowering, source, element, found, number)
        elif is_high(operand, selects[number]):
            if element not in SHORT_ELEMENTS:
                raise Unsupported("op_sel on a 32-bit operand")
            source = lowering.field(source, 16, 16, False)
        if isinstance(operand, Register | Immediate) and not packed:
            signed = operand.negate or operand.absolute
            if signed and element not in FLOATS and not is_brain(name, element):
                # v_cndmask and v_mov take float modifiers on untyped registers.
                element = "float" if element == "i32" else element
                if name not in ("v_cndmask_b32", "v_mov_b32", "v_cvt_f32_bf16"):
                    raise Unsupported("negation of an integer operand")
            source = lowering.with_signs(source, element, operand.negate, operand.absolute)
        sources.append(source)
    _finish(lowering, operation, operands[: len(outputs)], sources, found, selects[-1])
    if encoding == "dpp":
        lowering.add("fly_restore_exec")


def is_brain(name: str, element: str) -> bool:
    """Whether an operand is a bf16: their operations have integer types here."""
    return element == "i16" and name.endswith("_bf16")


def is_high(operand: Operand, select: int) -> bool:
    """Whether an operand is the high half of its register: given by the register's name (gfx11 and
    later), otherwise by op_sel."""
    if isinstance(operand, Register) and operand.half:
        return operand.half == "h"
    return bool(select)


def source_of(lowering: Lowering, operation: Operation, operand: Operand, element: str) -> Source:
    name = operation.mnemonic
    if is_brain(name, element) and isinstance(operand, Immediate) and not operand.literal:
        return lowering.word(short_constant_bits(operand, "bf16"))
    halves = name.startswith(PACKED_RESULT) and element == "i32"
    if halves and isinstance(operand, Immediate) and not operand.literal:
        rdna = not lowering.registers.facts.is_gfx9
        if name.endswith("bf16") and (rdna or operand.real is not None):
            # gfx1100 and gfx1201 were measured to have it in both halves (`matrix.measured`).
            short = short_constant_bits(operand, "bf16")
            return lowering.word(short * 0x10001 if rdna else short)
        if operand.real is not None:
            # A float constant: 16 bits in the low half if the halves are floats, otherwise 32 bits
            # (LLVM: AMDGPUBaseInfo, getInlineEncodingV216 and getInlineEncodingV2BF16).
            return lowering.word(
                constant_bits(operand, "half" if name.endswith("f16") else "float")
            )
    return lowering.source(plain(operand), element)


def op_sel(found: Mapping[str, object], count: int, packed: bool) -> tuple[int, ...]:
    """Returns the selected half of each source, and of the result last."""
    chosen = found.get("op_sel")
    if packed or not isinstance(chosen, tuple):
        return (0,) * (count + 1)
    values = [int(value) for value in chosen]
    return (*(values[:-1] + [0] * count)[:count], values[-1])


def _packed_source(
    lowering: Lowering, source: Source, element: str, found: Mapping[str, object], number: int
) -> Source:
    """Applies op_sel, op_sel_hi, neg_lo and neg_hi. The addend of a dot product in f32 is a whole
    register, and neg_lo negates it."""

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
    """Emits the operation itself, and the steps that modify its result."""
    name, outputs = operation.name, operation.outputs
    places = [
        lowering.mask_target(target)
        if element == "mask"
        else lowering.vector_target(target, element)
        for target, element in zip(targets, outputs, strict=True)
    ]
    select = str(found.get("dst_sel", "DWORD"))
    unused = str(found.get("dst_unused", "UNUSED_PAD"))
    high = is_high(targets[0], high) if targets else False
    aside = outputs[0] != "mask" and (select != "DWORD" or high)
    # gfx11 and later preserve the other half of a 16-bit result's register.
    keeps = not lowering.registers.facts.is_gfx9 and outputs[0] in SHORT_ELEMENTS
    aside = aside or (keeps and not operation.keeps_high)
    if aside and ((operation.accumulate and not keeps) or outputs[0] in WIDE):
        raise Unsupported("a part of a register as the result of an accumulation")
    clamp, result = bool(found.get("clamp")), outputs[0]
    clamp = clamp and IN_RANGE.fullmatch(operation.mnemonic) is None
    packed_half = PACKED_HALVES.fullmatch(operation.mnemonic) is not None
    brain = operation.mnemonic.endswith("_bf16") and operation.mnemonic.startswith("v_pk_")
    brain = brain or is_brain(operation.mnemonic, result)
    if clamp and result not in FLOATS and not packed_half and not brain:
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
                raise Unsupported("an output multiplier of a value that is not a float")
            number = convert(found[modifier])  # type: ignore[arg-type]
            bits = constant_bits(Immediate(0, real=number), result)
            by = f"fly_scale_{SHORT[result]}"
            lowering.valu(by, (target,), Source("v", target), lowering.word(bits))
    if clamp and brain:
        width = "pk_" if result == "i32" else ""
        clamp_float(lowering, f"fly_clamp_{width}bf16", target)
    elif clamp and (result in FLOATS or packed_half):
        clamped = "fly_clamp_pk_f16" if packed_half else f"fly_clamp_{SHORT[result]}"
        clamp_float(lowering, clamped, target)
    if not aside:
        return
    start, width = (16, 16) if high else FIELDS["WORD_0" if keeps else select]
    shift, mask = lowering.word(start), ((1 << width) - 1) << start
    value = Source("v", target)
    if unused != "UNUSED_PRESERVE" and not high and not keeps:
        # All other bits are zero, or copies of the field's sign bit.
        value = lowering.field(value, 0, width, unused == "UNUSED_SEXT")
        mask = 0xFFFF_FFFF
    lowering.valu("fly_insert", (places[0],), value, shift, lowering.word(mask))


def clamp_float(lowering: Lowering, name: str, row: int) -> None:
    # gfx12 has no DX10_CLAMP, and behaves as if it were set.
    always = int(not lowering.registers.facts.mode_has_ieee)
    lowering.valu(name, (row,), Source("v", row), immediate=always)
