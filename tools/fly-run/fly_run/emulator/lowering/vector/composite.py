"""Lowers vector instructions that consist of several operations."""

from __future__ import annotations

from collections.abc import Callable

from fly_run.emulator import state
from fly_run.emulator.isa.instruction import Immediate, Operand, Register
from fly_run.emulator.lowering.registers import Unsupported, short_constant_bits
from fly_run.emulator.lowering.steps import Lowering, Source, modifiers, part, plain
from fly_run.emulator.lowering.vector import convert
from fly_run.emulator.lowering.vector.single import clamp_float, lower_valu, op_sel


def _compare_and_set(lowering: Lowering, name: str, encoding: str) -> None:
    """gfx9's v_cmpx: a comparison whose result also goes to EXEC."""
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
                    # Source 0 gives the low result, source 1 the high one.
                    if number != half:
                        continue
                    chosen, default = found.get("op_sel"), 0
                else:
                    chosen = found.get("op_sel_hi" if half else "op_sel")
                choice = chosen[number] if isinstance(chosen, tuple) else default
                if not lowering.registers.facts.is_gfx9 and _is_scalar(operand):
                    # The first register is both halves (LLVM:
                    # isLegalGFX12PlusPackedMathFP32Operand).
                    choice = 0
                negated = found.get("neg_hi" if half else "neg_lo")
                negate = bool(negated[number]) if isinstance(negated, tuple) else False
                source = lowering.source(part(plain(operand), int(choice)), element)
                # One operand may be negated in both halves, and temporaries are scarce.
                sources.append(lowering.with_signs(source, "float", negate, False))
            lowering.valu(single, (results[half],), *sources)
            if found.get("clamp"):
                clamp_float(lowering, "fly_clamp_f32", results[half])
        lowering.valu("v_mov_b32", (row,), Source("v", results[0]))

    return run


def _is_scalar(operand: Operand) -> bool:
    return isinstance(operand, Register) and operand.bank == "s"


def _mixed(result: str, small: str = "f16") -> Callable[[Lowering, str, str], None]:
    """v_fma_mix: an f32 fma whose sources may be halves of f16 (gfx1250: or of bf16)."""

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
            if is_half and small == "bf16":
                source = _widened_brain(lowering, operand, is_high)
            elif is_half:
                source = lowering.source(plain(operand), "half")
                source = lowering.field(source, 16, 16, False) if is_high else source
                converted = lowering.temporary()
                lowering.valu("v_cvt_f32_f16", (converted,), source)
                source = Source("v", converted)
            else:
                source = lowering.source(plain(operand), "float")
            if isinstance(operand, Register | Immediate):
                negate, absolute = operand.negate, operand.absolute
                source = lowering.with_signs(source, "float", negate, absolute)
            sources.append(source)
        sum_at = row if result == "f32" else lowering.temporary()
        lowering.valu("v_fma_f32", (sum_at,), *sources)
        if found.get("clamp"):
            clamp_float(lowering, "fly_clamp_f32", sum_at)
        if result == "f32":
            return
        narrow = "fly_bf16_of_f32" if small == "bf16" else "v_cvt_f16_f32"
        lowering.valu(narrow, (sum_at,), Source("v", sum_at))
        start = 16 if result == "high" else 0
        mask = lowering.word(0xFFFF << start)
        lowering.valu("fly_insert", (row,), Source("v", sum_at), lowering.word(start), mask)

    return run


def _widened_brain(lowering: Lowering, operand: Operand, high: bool) -> Source:
    """Converts a bf16 half of an operand to f32."""
    if isinstance(operand, Immediate) and not operand.literal:
        return lowering.word(short_constant_bits(operand, "bf16") << 16)
    source, row = lowering.source(plain(operand), "i32"), lowering.temporary()
    if high:
        lowering.valu("v_and_b32", (row,), source, lowering.word(0xFFFF_0000))
    else:
        lowering.valu("v_lshlrev_b32", (row,), lowering.word(16), source)
    return Source("v", row)


def _pack_halves(lowering: Lowering, name: str, encoding: str) -> None:
    """v_pack_b32_f16: packs two halves into a register."""
    found = modifiers(lowering, "op_sel")
    target, first, second = lowering.operands(3)
    row = lowering.vector_target(target, "i32")
    selects = op_sel(found, 2, False)
    sources = []
    for number, operand in enumerate((first, second)):
        source = lowering.source(plain(operand), "half")
        source = lowering.field(source, 16 if selects[number] else 0, 16, False)
        if isinstance(operand, Register | Immediate):
            source = lowering.with_signs(source, "half", operand.negate, operand.absolute)
        sources.append(source)
    lowering.valu("v_lshl_or_b32", (row,), sources[1], lowering.word(16), sources[0])


def _swap(lowering: Lowering, name: str, encoding: str) -> None:
    """v_swap_b32: swaps two registers."""
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
        if signed == [False, True]:  # a single handler suffices: products commute
            sources[:2], signed = sources[1::-1], [True, False]
        kinds = "".join("su"[not one] for one in signed)
        clamp = ".clamp" if found.get("clamp") else ""
        lowering.valu(f"fly_dot{count}_{kinds}{clamp}", (row,), *sources)

    return run


def _four_differences(lowering: Lowering, name: str, encoding: str) -> None:
    """v_mqsad_u32_u8: compares four windows of a register pair, one byte apart, with four bytes."""
    name = "v_msad_u8.clamp" if modifiers(lowering, "clamp").get("clamp") else "v_msad_u8"
    target, pair, reference, addends = lowering.operands(4)
    row = lowering.row_source(target, 4)
    low = lowering.row_source(pair, 2)
    against = lowering.source(reference, "i32")
    sums = lowering.row_source(addends, 4)
    # The result may overlap the sources.
    results = lowering.temporary(4)
    for number in range(4):
        place = results + number * state.ROW
        window = Source("v", low + state.ROW), Source("v", low), lowering.word(number)
        lowering.valu("v_alignbyte_b32", (place,), *window)
        addend = Source("v", sums + number * state.ROW)
        lowering.valu(name, (place,), Source("v", place), against, addend)
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
    "v_fma_mix_f32_bf16": _mixed("f32", "bf16"),
    "v_fma_mixlo_bf16": _mixed("low", "bf16"),
    "v_fma_mixhi_bf16": _mixed("high", "bf16"),
    "v_pack_b32_f16": _pack_halves,
    "v_swap_b32": _swap,
    "v_dot4_i32_iu8": _dot_of_signs(4),
    "v_dot8_i32_iu4": _dot_of_signs(8),
    "v_mqsad_u32_u8": _four_differences,
}


def expansion(name: str) -> Callable[[Lowering, str, str], None] | None:
    if name.startswith("v_cmpx_"):
        return _compare_and_set
    return EXPANSIONS.get(name) or convert.expansion(name)
