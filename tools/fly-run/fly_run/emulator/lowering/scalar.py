"""Lowers scalar instructions, control flow and lane reads."""

from __future__ import annotations

import re
from collections.abc import Callable

from fly_run.emulator.isa.instruction import Immediate, Instruction, Name, Operand, Register
from fly_run.emulator.lowering.registers import Unsupported
from fly_run.emulator.lowering.steps import Lowering, modifiers, plain
from fly_run.emulator.semantics.base.operation import Operation
from fly_run.emulator.state import SGPR

# SOPK: 16-bit constants, zero-extended in unsigned comparisons, otherwise sign-extended.
_SHORT_CONSTANT = re.compile(r"s_(?:movk|cmovk|addk|mulk|cmpk_\w+)_[iu]32")
HARDWARE_REGISTER = re.compile(r"hwreg\((\w+)(?:, ?(\d+), ?(\d+))?\)")
# In waves of 32 lanes vcc_hi is an ordinary register.
VCC_BRANCHES = {
    "s_cbranch_vccz": "fly_branch_vcc_lo_zero",
    "s_cbranch_vccnz": "fly_branch_vcc_lo_nonzero",
}
MODE_NAMES = ("HW_REG_MODE", "HW_REG_WAVE_MODE")  # the second since gfx12
# The location of a wave is always place 0 of unit 0, and there are never exceptions.
ZERO_REGISTERS = frozenset(f"HW_REG_{name}" for name in ("HW_ID", "XCC_ID", "TRAPSTS"))
# How the processor schedules a wave: writing it has no effect here.
TIMING_REGISTERS = frozenset({"HW_REG_WAVE_SCHED_MODE"})
# A wave outside a cluster has 0 there.
CLUSTER_REGISTER = "HW_REG_IB_STS2"
ROUND_AND_DENORMALS = 0xFF  # bits of MODE
UPPER_BITS = 0xFF << 12  # MODE: what s_set_vgpr_msb sets
INDEX_MODES = {"SRC0": 1, "SRC1": 2, "SRC2": 4, "DST": 8}


def lower_scalar(lowering: Lowering, operation: Operation, encoding: str) -> None:
    modifiers(lowering)
    name, outputs, inputs = operation.name, operation.outputs, operation.inputs
    operands = lowering.operands(len(outputs) + len(inputs))
    places = [
        lowering.scalar_target(operand, 2 if element == "i64" else 1)
        for operand, element in zip(operands, outputs, strict=False)
    ]
    for operand, element in zip(operands[len(outputs) :], inputs, strict=True):
        if _SHORT_CONSTANT.fullmatch(name) and isinstance(operand, Immediate):
            value = operand.value & 0xFFFF
            if not name.endswith("u32"):
                value = (value & 0x7FFF) - (value & 0x8000)
            places.append(lowering.word(value).offset)
        else:
            places.append(lowering.scalar_source(operand, element))
    lowering.add(name, *places)


def lower_nothing(lowering: Lowering, operation: Operation, encoding: str) -> None:
    """Emits no step: the preceding micro-op continues with the following one. The instruction still
    counts, because counting goes by the instructions' numbers."""


def lower_flow(lowering: Lowering, operation: Operation, encoding: str) -> None:
    instruction, name = lowering.instruction, operation.name
    if lowering.registers.mask_count == 1 and name in VCC_BRANCHES:
        name = VCC_BRANCHES[name]
    after = instruction.pc + instruction.size
    if name in ("s_memtime", "s_memrealtime"):
        modifiers(lowering)
        (target,) = lowering.operands(1)
        lowering.add(name, lowering.scalar_target(target, 2))
    elif name == "s_getpc_b64":
        (target,) = lowering.operands(1)
        lowering.add(name, lowering.scalar_target(target, 2), immediate=after)
    elif name == "s_setpc_b64":
        (source,) = lowering.operands(1)
        lowering.add(name, lowering.scalar_source(source, "i64"))
    elif name == "s_swappc_b64":
        target, source = lowering.operands(2)
        places = lowering.scalar_target(target, 2), lowering.scalar_source(source, "i64")
        lowering.add(name, *places, immediate=after)
    elif name == "s_call_b64":
        place = lowering.scalar_target(instruction.operands[0], 2)
        lowering.add(name, place, immediate=after, link=instruction.target)
    elif name.startswith("s_subvector_loop"):
        place = lowering.scalar_target(instruction.operands[0], 1)
        lowering.add(name, place, link=instruction.target)
    else:
        lowering.add(name, link=instruction.target)


# -- special cases -----------------------------------------------------------------------------


def _mode_field(operand: object) -> int:
    """Returns offset + 32 · size of a field of MODE, the only hardware register that can be set."""
    match = HARDWARE_REGISTER.fullmatch(operand.text) if isinstance(operand, Name) else None
    if match is None or match[1] not in MODE_NAMES:
        raise Unsupported("a hardware register other than MODE")
    return int(match[2] or 0) + 32 * int(match[3] or 32)


def sets_mode(instruction: Instruction, bits: int) -> bool:
    """Whether an instruction is s_setreg and writes some of these bits of MODE."""
    register = instruction.operands[0] if instruction.operands else None
    if not instruction.mnemonic.startswith("s_setreg") or not isinstance(register, Name):
        return False
    match = HARDWARE_REGISTER.fullmatch(register.text)
    if match is None or match[1] not in MODE_NAMES:
        return False
    return bool(bits >> int(match[2] or 0) & ((1 << int(match[3] or 32)) - 1))


def _set_register(lowering: Lowering, name: str, encoding: str) -> None:
    field, value = lowering.operands(2)
    match = HARDWARE_REGISTER.fullmatch(field.text) if isinstance(field, Name) else None
    if match is not None and match[1] in TIMING_REGISTERS:
        return
    if lowering.registers.facts.vgprs > 256 and sets_mode(lowering.instruction, UPPER_BITS):
        raise Unsupported("upper bits of register numbers in MODE")
    # LLVM's code for gfx1250 begins with such a write, of a bit without effect here.
    step = (
        "fly_set_mode"
        if sets_mode(lowering.instruction, ROUND_AND_DENORMALS)
        else "fly_set_mode_bits"
    )
    lowering.add(step, lowering.scalar_source(value, "i32"), extra=_mode_field(field))


def _get_register(lowering: Lowering, name: str, encoding: str) -> None:
    target, field = lowering.operands(2)
    match = HARDWARE_REGISTER.fullmatch(field.text) if isinstance(field, Name) else None
    if match is not None and match[1] in ZERO_REGISTERS:
        lowering.add("s_mov_b32", lowering.scalar_target(target, 1), lowering.word(0).offset)
        return
    lowering.add("fly_get_mode", lowering.scalar_target(target, 1), extra=_mode_field(field))


def _lane_number(lowering: Lowering, operand: Operand) -> int:
    """Returns the scalar that selects a lane. Handlers take it modulo 64; in waves of 32 lanes it
    is reduced modulo 32 first."""
    number = lowering.scalar_source(operand, "i32")
    if lowering.registers.mask_count == 2 or isinstance(operand, Immediate):
        return number
    aside = lowering.scalar_temporary()
    lowering.add("fly_lane_of_32", aside, number)
    return aside


def _read_lane(lowering: Lowering, name: str, encoding: str) -> None:
    modifiers(lowering)
    target, source, lane = lowering.operands(3)
    lowering.add(
        name,
        lowering.scalar_target(target, 1),
        lowering.row_source(source, 1),
        _lane_number(lowering, lane),
    )


def _write_lane(lowering: Lowering, name: str, encoding: str) -> None:
    modifiers(lowering)
    target, source, lane = lowering.operands(3)
    lowering.add(
        name,
        lowering.vector_target(target, "i32"),
        lowering.scalar_source(source, "i32"),
        _lane_number(lowering, lane),
    )


def _read_first(lowering: Lowering, name: str, encoding: str) -> None:
    modifiers(lowering)
    target, source = lowering.operands(2)
    place = lowering.scalar_target(target, 1)
    if isinstance(source, Register) and source.bank == "s":
        lowering.add("s_mov_b32", place, lowering.scalar_source(source, "i32"))
    else:
        lowering.add(name, place, lowering.row_source(source, 1))


def _swap_lanes(lowering: Lowering, name: str, encoding: str) -> None:
    given = modifiers(lowering, "bound_ctrl")
    lowering.add(
        name,
        *(lowering.vector_target(operand, "i32") for operand in lowering.operands(2)),
        extra=int(bool(given.get("bound_ctrl"))),
    )


def index_mode(lowering: Lowering) -> int:
    """Returns the operands that s_set_gpr_idx_on makes relative: SRC0 1, SRC1 2, SRC2 4, DST 8."""
    _, mode = lowering.operands(2)
    return _listed_mode(mode)


def _listed_mode(mode: Operand) -> int:
    if isinstance(mode, Immediate):
        return mode.value & 15
    listed = mode.text.removeprefix("gpr_idx(").rstrip(")") if isinstance(mode, Name) else "?"
    try:
        return sum(INDEX_MODES[word.strip()] for word in listed.split(",") if word.strip())
    except KeyError:
        raise Unsupported("this index mode") from None


def _set_index(lowering: Lowering, name: str, encoding: str) -> None:
    index, _ = lowering.operands(2)
    source = lowering.scalar_source(plain(index), "i32")
    lowering.add(name, source, extra=index_mode(lowering))


def mode_alone(lowering: Lowering) -> int:
    """Returns the operand of s_set_gpr_idx_mode, encoded as that of s_set_gpr_idx_on."""
    (mode,) = lowering.operands(1)
    return _listed_mode(mode)


def _set_mode(lowering: Lowering, name: str, encoding: str) -> None:
    lowering.add(name, extra=mode_alone(lowering))


def _set_index_alone(lowering: Lowering, name: str, encoding: str) -> None:
    (index,) = lowering.operands(1)
    lowering.add(name, lowering.scalar_source(plain(index), "i32"))


def _move_relative(lowering: Lowering, name: str, encoding: str) -> None:
    modifiers(lowering)
    target, source = lowering.operands(2)
    count = 2 if name.endswith("64") else 1
    if name.startswith("s_movrels") and not isinstance(source, Register):
        raise Unsupported("a source that is not a register")
    element = "i64" if count == 2 else "i32"
    places = lowering.scalar_target(target, count), lowering.scalar_source(source, element)
    lowering.add(name, *places, extra=SGPR + 4 * (general_scalars(lowering) - count))


def general_scalars(lowering: Lowering) -> int:
    """Returns the number of scalar registers that relative numbers reach: those before VCC and, on
    gfx9, FLAT_SCRATCH and XNACK_MASK."""
    return 102 if lowering.registers.facts.is_gfx9 else 106


def indexed_move(lowering: Lowering, mode: int) -> None:
    """v_mov_b32 while s_set_gpr_idx_on is active."""
    modifiers(lowering)
    lowering.registers.name_all()
    target, source = lowering.operands(2)
    if not isinstance(source, Register) or source.bank == "s":
        # A scalar or constant source is not indexed: copy it to a row first.
        aside = lowering.temporary()
        lowering.valu("v_mov_b32", (aside,), lowering.source(source, "i32"))
        place, mode = aside, mode & ~1
    else:
        place = lowering.row_source(source, 1)
    lowering.add("fly_indexed_move", lowering.vector_target(target, "i32"), place, extra=mode)


EXPANSIONS: dict[str, Callable[[Lowering, str, str], None]] = {
    "s_setreg_b32": _set_register,
    "s_setreg_imm32_b32": _set_register,
    "s_getreg_b32": _get_register,
    "v_readlane_b32": _read_lane,
    "v_writelane_b32": _write_lane,
    "v_readfirstlane_b32": _read_first,
    "v_permlane16_swap_b32": _swap_lanes,
    "v_permlane32_swap_b32": _swap_lanes,
    "s_set_gpr_idx_on": _set_index,
    "s_set_gpr_idx_mode": _set_mode,
    "s_set_gpr_idx_idx": _set_index_alone,
    **{f"s_movrel{end}_b{width}": _move_relative for end in ("s", "d") for width in (32, 64)},
}
