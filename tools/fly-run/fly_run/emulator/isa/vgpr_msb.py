"""The upper bits of vector register numbers on gfx1250, which instructions don't encode.

S_SET_VGPR_MSB sets two bits for each of four operands, until the next such instruction: bits 1:0 of
its constant belong to the first source, 3:2 to the second, 5:4 to the third, 7:6 to the result.
Bits 15:8 repeat the former value, for trap handlers. S_SETREG_IMM32_B32 of MODE sets them too,
whichever field it writes: to bits 19:12 of its constant, where those of the result are the lowest,
as they are in MODE (llvm/llvm-project#186491; LLVM, which keeps the bits through such an
instruction, puts them there: AMDGPULowerVGPREncoding, handleSetregMode). Which operand an address
or a stored value is depends on the encoding (LLVM: getVGPRLoweringOperandTables in the same file;
llvm-objdump prints the resulting numbers, and a test compares them).

The constants are known statically, so every instruction gets its registers' full numbers before it
is lowered. LLVM starts and ends each block with the upper bits clear; code where control flow joins
with different bits, or that calls or returns with bits set, is rejected.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from fly_run.emulator.isa.instruction import (
    ADD_PC,
    SET_PC,
    SWAP_PC,
    Immediate,
    Instruction,
    Name,
    Operand,
    Register,
)

SET = "s_set_vgpr_msb"
SET_MODE = "s_setreg_imm32_b32"
_MODE = re.compile(r"hwreg\(HW_REG_(?:WAVE_)?MODE\b.*\)")
BANK = 256  # registers that an encoding can name
FIRST, SECOND, THIRD, RESULT = range(4)  # fields of two bits each
# Instructions through which the bits may not be set: their targets' state is not known.
_LEAVES = (*SET_PC, *SWAP_PC, "s_call_i64")
_ENDS = ("s_endpgm", "s_branch", *SET_PC, ADD_PC)
# Operands after the result, in order. Others than these have none or a scalar result.
_TWO_RESULTS = re.compile(r"v_(?:(?:add|sub|subrev)_co_(?:ci_)?u32|div_scale|mad_co)\w*")
_COMPARES = re.compile(r"v_cmpx_")
_RETURNS = re.compile(
    r"ds_\w*(?:load|rtn|swizzle|permute|append|consume)\w*"
    r"|(?:global|flat|scratch|cluster)_load_\w+"
)
_STORES_IN_FLIGHT = re.compile(r"(?:global|flat|scratch)_(?:store|atomic|prefetch)\w*")


class Conflict(Exception):
    """The bits at an instruction depend on the path that led there."""


def states(instructions: Mapping[int, Instruction]) -> dict[int, int]:
    """Returns the eight bits in effect at each instruction, by address, where they are not 0.
    Conflict if paths disagree."""
    if not any(_set(one) for one in instructions.values()):
        return {}
    found: dict[int, int] = {}
    reached = {one.target for one in instructions.values() if one.target is not None}
    ends = {one.pc + one.size for one in instructions.values() if one.mnemonic not in _ENDS}
    waiting = [(pc, 0) for pc in instructions if pc not in reached and pc not in ends]
    waiting = waiting or [(min(instructions), 0)]
    while waiting:
        pc, bits = waiting.pop()
        while pc in instructions:
            one = instructions[pc]
            if pc in found:
                if found[pc] != bits:
                    raise Conflict(
                        f"pc 0x{pc:x}: control flow joins with s_set_vgpr_msb 0x{found[pc]:x} and"
                        f" 0x{bits:x}"
                    )
                break
            found[pc] = bits
            if one.mnemonic in _LEAVES and bits:
                raise Conflict(f"pc 0x{pc:x}: {one.mnemonic} after s_set_vgpr_msb 0x{bits:x}")
            made = _set(one)
            bits = bits if made is None else made
            if one.target is not None:
                waiting.append((one.target, bits))
            if one.mnemonic in _ENDS:
                break
            pc += one.size
    return {pc: bits for pc, bits in found.items() if bits}


def _set(one: Instruction) -> int | None:
    """Returns the bits that an instruction sets; None if it leaves them alone."""
    if one.mnemonic == SET:
        (value,) = one.operands
        assert isinstance(value, Immediate)
        return value.value & 0xFF
    if one.mnemonic == SET_MODE:
        register, value = one.operands
        if isinstance(register, Name) and _MODE.fullmatch(register.text):
            assert isinstance(value, Immediate)
            field = value.value >> 12 & 0xFF
            return field >> 2 | (field & 3) << 6
    return None


def with_upper_bits(instruction: Instruction, bits: int) -> Instruction:
    """Returns the instruction with its vector registers' full numbers."""
    if not bits:
        return instruction
    operands = tuple(
        _moved(operand, bits >> 2 * place & 3) if place is not None else operand
        for operand, place in zip(instruction.operands, places(instruction), strict=True)
    )
    second = instruction.second
    return replace(
        instruction,
        operands=operands,
        second=None if second is None else with_upper_bits(second, bits),
    )


def _moved(operand: Operand, bank: int) -> Operand:
    if isinstance(operand, Register) and operand.bank == "v":
        return replace(operand, index=operand.index + BANK * bank)
    return operand


def places(instruction: Instruction) -> list[int | None]:
    """Returns the field of each operand, None for those that are never vector registers."""
    name, count = instruction.mnemonic, len(instruction.operands)
    if name.startswith(("buffer_", "tbuffer_")):
        order: tuple[int | None, ...] = (RESULT, FIRST)
    elif name.startswith("v_"):
        results = (RESULT, None) if _TWO_RESULTS.match(name) else (RESULT,)
        results = () if _COMPARES.match(name) else results
        order = (*results, FIRST, SECOND, THIRD)
        if name.startswith("v_wmma_scale"):
            # Scales are always in the first registers (llvm/llvm-project#157526).
            order = (RESULT, FIRST, SECOND, THIRD)
    elif _STORES_IN_FLIGHT.match(name) and not _returning(instruction):
        order = (FIRST, SECOND)
    elif _RETURNS.match(name) or _returning(instruction):
        order = (RESULT, FIRST, SECOND, THIRD)
    elif name.startswith("ds_"):
        order = (FIRST, SECOND, THIRD)
    else:
        order = ()
    if "addtid" in name:
        order = (RESULT,) if "load" in name else (SECOND,)
    return list((*order, *(None,) * count)[:count])


def _returning(instruction: Instruction) -> bool:
    """Whether an atomic returns the old value."""
    return "atomic" in instruction.mnemonic and "RETURN" in str(instruction.modifiers.get("th", ""))
