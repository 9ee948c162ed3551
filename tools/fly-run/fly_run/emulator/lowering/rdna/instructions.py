"""Lowers instructions that only gfx11 and gfx12 have: dual instructions (VOPD), comparisons that
only write EXEC, clocks, fields of MODE, split barriers.

Sources: RDNA3 and RDNA4 ISA manuals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fly_run.emulator import state
from fly_run.emulator.isa.instruction import Immediate, Instruction, Name, Register
from fly_run.emulator.lowering import scalar
from fly_run.emulator.lowering.matrix import mfma
from fly_run.emulator.lowering.rdna import memory as rdna_memory
from fly_run.emulator.lowering.rdna import relative
from fly_run.emulator.lowering.registers import Unsupported, short_constant_bits
from fly_run.emulator.lowering.scalar import CLUSTER_REGISTER, HARDWARE_REGISTER
from fly_run.emulator.lowering.steps import EXEC, VCC, Lowering, Source, Step, modifiers, plain
from fly_run.emulator.lowering.vector import dpp
from fly_run.emulator.lowering.vector.single import (
    clamp_float,
    is_high,
    lower_valu,
    op_sel,
    source_of,
)
from fly_run.emulator.semantics.vector.picking import BOUND, INACTIVE

Lower = Callable[[Instruction], list[Step]]

# -- VOPD ------------------------------------------------------------------------------------------

# VOPD's text omits or renames operands: v_dual_cndmask_b32 selects by VCC.
_SELECTS_BY_VCC = "v_cndmask_b32"


def dual(lowering: Lowering, lower: Lower) -> None:
    """Lowers VOPD: both halves read their sources before either writes. If the second half reads
    the first one's destination, the first result goes through a temporary."""
    first, second = _half(lowering.instruction), lowering.instruction.second
    assert second is not None
    second = _half(second)
    target = _result(first)
    steps_first, steps_second = lower(first), lower(second)
    if _registers(target).isdisjoint(_reads(second)):
        lowering.steps += [*steps_first, *steps_second]
    elif _registers(_result(second)).isdisjoint(_reads(first)):
        lowering.steps += [*steps_second, *steps_first]
    else:
        row = lowering.registers.row(target, target.count, lowering.instruction)
        # The last temporary rows but one: single instructions allocate theirs from the first.
        aside = state.TEMP + (state.TEMP_ROWS - 1 - target.count) * state.ROW
        for number in range(target.count):
            at = number * state.ROW
            lowering.valu("v_mov_b32", (aside + at,), Source("v", row + at))
        lowering.steps += [_writing(step, row, aside) for step in steps_first]
        lowering.steps += steps_second
        for number in range(target.count):
            at = number * state.ROW
            lowering.valu("v_mov_b32", (row + at,), Source("v", aside + at))


def _half(instruction: Instruction) -> Instruction:
    """Returns the single instruction equivalent to a half of a VOPD instruction."""
    name = "v_" + instruction.mnemonic.removeprefix("v_dual_")
    operands = instruction.operands
    if name == "v_bitop2_b32":
        # gfx1250: a table of two inputs is one of three whose last is 0.
        name, operands = "v_bitop3_b32", (*operands, Immediate(0))
    if name == _SELECTS_BY_VCC and len(operands) == 3:
        operands = (*operands, Register("s", VCC, 1))
    if name.startswith("v_dot2acc") and isinstance(operands[1], Immediate):
        operands = (operands[0], _in_both_halves(operands[1], name), *operands[2:])
    return replace(instruction, mnemonic=name, operands=operands, second=None)


def _in_both_halves(constant: Immediate, name: str) -> Immediate:
    """Repeats a 16-bit constant factor in both halves, as measured (`matrix.measured`)."""
    if constant.literal:
        return constant
    return Immediate(short_constant_bits(constant, name.rpartition("_")[2]) * 0x10001, literal=True)


def _result(instruction: Instruction) -> Register:
    target = instruction.operands[0]
    if not isinstance(target, Register) or target.bank != "v":
        raise Unsupported("a result that is not a vector register")
    return target


def _reads(instruction: Instruction) -> set[int]:
    """Returns the vector registers that an instruction reads; also its result if it accumulates."""
    start = 0 if "fmac" in instruction.mnemonic or "dot2" in instruction.mnemonic else 1
    return {
        index
        for operand in instruction.operands[start:]
        if isinstance(operand, Register) and operand.bank == "v"
        for index in _registers(operand)
    }


def _registers(operand: Register) -> set[int]:
    return set(range(operand.index, operand.index + operand.count))


def _writing(step: Step, row: int, aside: int) -> Step:
    """Redirects a step's result, and an accumulation's old value with it."""
    if step.operands and step.operands[0] == row:
        return replace(step, operands=(aside, *step.operands[1:]))
    return step


# -- comparisons -----------------------------------------------------------------------------------


def _compare_into_exec(lowering: Lowering, name: str, encoding: str) -> None:
    """v_cmpx writes only EXEC."""
    single = name.replace("v_cmpx_", "v_cmp_").replace("_t_f", "_tru_f")
    operation = lowering.table.get(single)
    if operation is None:
        raise Unsupported("this comparison")
    instruction = lowering.instruction
    operands = (Name(EXEC), *instruction.operands)
    lowering.instruction = replace(instruction, operands=operands)
    lower_valu(lowering, operation, encoding)
    if encoding == "dpp":
        # The last step restores EXEC after DPP narrowed it: the result must come after that.
        compare, restore = lowering.steps[-2:]
        aside = lowering.scalar_temporary()
        compare = replace(compare, operands=(aside, *compare.operands[1:]))
        lowering.steps[-2:] = [compare, restore]
        width = 32 * lowering.registers.mask_count
        lowering.add(f"s_mov_b{width}", state.EXEC, aside)


# -- scalar ----------------------------------------------------------------------------------------


def _mode_field(offset: int) -> Callable[[Lowering, str, str], None]:
    """s_round_mode, s_denorm_mode: four bits of MODE."""

    def run(lowering: Lowering, name: str, encoding: str) -> None:
        (value,) = lowering.operands(1)
        source = lowering.scalar_source(value, "i32")
        lowering.add("fly_set_mode", source, extra=offset + 32 * 4)

    return run


# Hardware registers that count time. Here time is the number of instructions executed.
CLOCKS = {
    "HW_REG_SHADER_CYCLES": 0,
    "HW_REG_SHADER_CYCLES_LO": 0,
    "HW_REG_SHADER_CYCLES_HI": 4,
}


def _get_register(lowering: Lowering, name: str, encoding: str) -> None:
    """s_getreg_b32 of a clock, or of a field of MODE as on gfx9."""
    target, field = lowering.operands(2)
    match = HARDWARE_REGISTER.fullmatch(field.text) if isinstance(field, Name) else None
    if match is not None and match[1] == CLUSTER_REGISTER:
        source = state.IB_STS2
    elif match is not None and match[1] in CLOCKS:
        now = lowering.scalar_temporary()
        lowering.add("s_memtime", now)
        source = now + CLOCKS[match[1]]
    else:
        scalar.EXPANSIONS["s_getreg_b32"](lowering, name, encoding)
        return
    place = lowering.scalar_target(target, 1)
    offset, size = int(match[2] or 0), int(match[3] or 32)
    moved, high = lowering.scalar_temporary(), lowering.word(32 - offset - size)
    lowering.add("s_lshl_b32", moved, source, high.offset)
    lowering.add("s_lshr_b32", place, moved, lowering.word(32 - size).offset)


def _add_to_pc(lowering: Lowering, name: str, encoding: str) -> None:
    """s_add_pc_i64: a jump relative to the next instruction, by a constant or by a register."""
    (distance,) = lowering.operands(1)
    instruction = lowering.instruction
    if instruction.target is not None:
        lowering.add("s_branch", link=instruction.target)
        return
    target = lowering.scalar_temporary()
    lowering.add("s_getpc_b64", target, immediate=instruction.pc + instruction.size)
    lowering.add("s_add_nc_u64", target, target, lowering.scalar_source(distance, "i64"))
    lowering.add("s_setpc_b64", target)


def _send_and_return(lowering: Lowering, name: str, encoding: str) -> None:
    """s_sendmsg_rtn: only the message that requests the time."""
    target, message = lowering.operands(2)
    if not isinstance(message, Name) or "MSG_RTN_GET_REALTIME" not in message.text:
        raise Unsupported("a message other than MSG_RTN_GET_REALTIME")
    lowering.add("s_memrealtime", lowering.scalar_target(target, 2))


def _barrier_part(lowering: Lowering, name: str, encoding: str) -> None:
    """Signals and waits of the workgroup's own barrier (-1) and its cluster's (-3); the same and
    what else there is for named ones: a wait has the number 1 and means the barrier that the wave
    has joined."""
    named = lowering.registers.facts.named_barriers
    operands = lowering.instruction.operands
    constant = operands[0].value if operands and isinstance(operands[0], Immediate) else None
    if constant is not None and constant & 0xFFFF == 0xFFFF and name in OWN_BARRIER:
        lowering.add(OWN_BARRIER[name])
        return
    clusters = lowering.registers.facts.clusters
    if (
        clusters
        and constant is not None
        and constant & 0xFFFF == 0xFFFD
        and name in CLUSTER_BARRIER
    ):
        lowering.add(CLUSTER_BARRIER[name])
        return
    if not named:
        raise Unsupported("a named barrier")
    waits = name == "s_barrier_wait"
    if constant is not None and not 1 <= constant <= (1 if waits else named):
        raise Unsupported(f"barrier {constant}")
    if waits or not operands:
        lowering.add(NAMED_BARRIER[name])
        return
    word = lowering.scalar_source(operands[0], "i32")
    in_m0 = constant is None or name == "s_barrier_init"
    lowering.add(NAMED_BARRIER[name], word, state.M0 if in_m0 else lowering.word(0).offset)


OWN_BARRIER = {
    "s_barrier_signal": "s_barrier_signal",
    "s_barrier_signal_isfirst": "fly_signal_first",
    "s_barrier_wait": "s_barrier_wait",
}
CLUSTER_BARRIER = {
    "s_barrier_signal": "fly_cluster_signal",
    "s_barrier_signal_isfirst": "fly_cluster_signal_first",
    "s_barrier_wait": "fly_cluster_wait",
}
NAMED_BARRIER = {
    "s_barrier_init": "fly_named_init",
    "s_barrier_join": "fly_named_join",
    "s_barrier_leave": "fly_named_leave",
    "s_barrier_signal": "fly_named_signal",
    "s_barrier_signal_isfirst": "fly_named_signal_first",
    "s_barrier_wait": "fly_named_wait",
}


# -- lanes and registers ---------------------------------------------------------------------------


def _permute_rows(lowering: Lowering, name: str, encoding: str) -> None:
    """v_permlane16, v_permlanex16: op_sel holds fi and bound_ctrl."""
    chosen = modifiers(lowering, "op_sel").get("op_sel", (0, 0))
    assert isinstance(chosen, tuple)
    target, source, *places = lowering.instruction.operands
    rows = lowering.vector_target(target, "i32"), lowering.row_source(source, 1)
    if name.endswith("_var_b32"):
        selects = [lowering.row_source(place, 1) for place in places]
    else:
        selects = [lowering.scalar_source(place, "i32") for place in places]
    flags = (INACTIVE if chosen[0] else 0) | (BOUND if chosen[1] else 0)
    lowering.add(name, *rows, *selects, extra=flags)


def _swap_halves(lowering: Lowering, name: str, encoding: str) -> None:
    """v_permlane64: swaps the halves of a wave of 64 lanes; does nothing in a wave of 32."""
    if lowering.registers.wave_size == 32:
        return
    modifiers(lowering)
    rows = [lowering.row_source(operand, 1) for operand in lowering.operands(2)]
    lowering.add(name, *rows)


def _dot_of_floats(lowering: Lowering, name: str, encoding: str) -> None:
    """v_dot2_f32: it ignores MODE, as matrix instructions do."""
    operation = lowering.table.get(name)
    if operation is None:
        raise Unsupported("")
    mfma.with_own_control(lowering)
    lower_valu(lowering, operation, encoding)
    mfma.with_own_control(lowering, ends=True)


def _dot_to_half(lowering: Lowering, name: str, encoding: str) -> None:
    """v_dot2_f16_f16, v_dot2_bf16_bf16: VOP3's signs apply to both halves of a factor; op_sel
    selects the halves of the addend and of the result. They round to nearest in any MODE (RDNA3 and
    RDNA4 ISA manuals, MODE)."""
    known = dpp.MODIFIERS if encoding == "dpp" else ()
    selects = op_sel(modifiers(lowering, "op_sel", *known), 3, packed=False)
    target, *operands = lowering.operands(4)
    operation = lowering.table[name]
    mfma.with_own_control(lowering)
    sources = []
    for number, (operand, element) in enumerate(zip(operands, operation.inputs, strict=True)):
        if number == 2 and isinstance(operand, Immediate) and not operand.literal:
            source = lowering.word(short_constant_bits(operand, name.rpartition("_")[2]))
        else:
            source = source_of(lowering, operation, operand, element)
        if encoding == "dpp" and number == 0:
            source = dpp.move(lowering, source, element)
        if number == 2 and isinstance(operand, Register) and is_high(operand, selects[2]):
            source = lowering.field(source, 16, 16, False)
        if isinstance(operand, Register | Immediate) and (operand.negate or operand.absolute):
            keep = lowering.word(0x7FFF_7FFF if operand.absolute else 0xFFFF_FFFF)
            flip = lowering.word(0x8000_8000 if operand.negate else 0)
            row = lowering.temporary()
            lowering.valu("fly_sign_32", (row,), source, keep, flip)
            source = Source("v", row)
        sources.append(source)
    result, row = lowering.temporary(), lowering.vector_target(target, "i16")
    lowering.valu(operation.name, (result,), *sources)
    start = 16 if is_high(target, selects[3]) else 0
    mask = lowering.word(0xFFFF << start)
    lowering.valu("fly_insert", (row,), Source("v", result), lowering.word(start), mask)
    if encoding == "dpp":
        lowering.add("fly_restore_exec")
    mfma.with_own_control(lowering, ends=True)


def _swap_short(lowering: Lowering, name: str, encoding: str) -> None:
    """v_swap_b16: swaps two halves of registers."""
    modifiers(lowering)
    both = lowering.operands(2)
    rows = [lowering.vector_target(operand, "i16") for operand in both]
    starts = [16 if isinstance(o, Register) and o.half == "h" else 0 for o in both]
    values = [
        lowering.field(Source("v", row), start, 16, False)
        for row, start in zip(rows, starts, strict=True)
    ]
    for row, start, value in zip(rows, starts, reversed(values), strict=True):
        mask = lowering.word(0xFFFF << start)
        lowering.valu("fly_insert", (row,), value, lowering.word(start), mask)


def _scalar_function(lowering: Lowering, name: str, encoding: str) -> None:
    """v_s_rcp_f32 and similar: a function of one number in a scalar register, regardless of
    EXEC."""
    clamps = modifiers(lowering, "clamp").get("clamp")
    target, source = lowering.operands(2)
    place, short = lowering.scalar_target(target, 1), name.endswith("_f16")
    value = lowering.source(plain(source), "half" if short else "float")
    row, saved, lane = lowering.temporary(), lowering.scalar_temporary(), lowering.word(0)
    lowering.add("s_mov_b64", saved, state.EXEC)
    lowering.add("s_mov_b64", state.EXEC, lowering.word(1).offset)
    if isinstance(source, Register):  # under the lane's own EXEC, like all steps before the result
        signs = source.negate, source.absolute
        value = lowering.with_signs(value, "half" if short else "float", *signs)
    lowering.valu("v_" + name.removeprefix("v_s_"), (row,), value)
    if clamps:
        clamp_float(lowering, "fly_clamp_f16" if short else "fly_clamp_f32", row)
    lowering.add("v_readlane_b32", place, row, lane.offset)
    lowering.add("s_mov_b64", state.EXEC, saved)


EXPANSIONS: dict[str, Callable[[Lowering, str, str], None]] = {
    "s_getreg_b32": _get_register,
    "s_add_pc_i64": _add_to_pc,
    **{
        f"v_{name}_b32": _permute_rows
        for name in ("permlane16", "permlanex16", "permlane16_var", "permlanex16_var")
    },
    "v_permlane64_b32": _swap_halves,
    **relative.EXPANSIONS,
    **rdna_memory.EXPANSIONS,
    "v_swap_b16": _swap_short,
    **{
        f"v_dot2{kind}_f32_{form}": _dot_of_floats
        for kind in ("", "c", "acc")
        for form in ("f16", "bf16")
    },
    "v_dot2_f16_f16": _dot_to_half,
    "v_dot2_bf16_bf16": _dot_to_half,
    **{
        f"v_s_{function}_{size}": _scalar_function
        for function in ("exp", "log", "rcp", "rsq", "sqrt")
        for size in ("f16", "f32")
    },
    "s_round_mode": _mode_field(0),
    "s_denorm_mode": _mode_field(4),
    "s_sendmsg_rtn_b64": _send_and_return,
    **dict.fromkeys(NAMED_BARRIER, _barrier_part),
}


def expansion(name: str) -> Callable[[Lowering, str, str], None] | None:
    if name.startswith("v_cmpx_"):
        return _compare_into_exec
    return EXPANSIONS.get(name)
