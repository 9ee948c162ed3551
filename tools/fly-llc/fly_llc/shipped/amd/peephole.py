"""peephole: small optimisations within basic blocks.

    fly-llc k.ll --insert pre-waits=peephole

- Removes a move of a constant into a register that already holds it.
- Removes a move of a register to itself.
- Merges two moves of constants into the halves of an aligned pair of scalar registers, if the pair
  is an inline constant.
- Merges consecutive no-ops (from si-insert-waitcnts on).

Runs after register allocation, on physical registers only. Reports its changes on standard error.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Sequence

from fly_common.errors import InputError

from fly_llc import mir
from fly_llc.mir.amd import registers
from fly_llc.mir.block import Block
from fly_llc.mir.instruction import Instruction
from fly_llc.shipped import arguments

_CONSTANT_MOVE = re.compile(r"S_MOV_B32|S_MOV_B64|V_MOV_B32_e32")
_SCALAR = re.compile(r"\$sgpr(\d{1,3})")
_UNKNOWN = re.compile(r"S_SWAPPC|S_CALL|S_SETPC|INLINEASM|SI_|BUNDLE|S_MOVREL|V_MOVREL|S_SET_GPR")
INLINE = range(-16, 65)  # integers that need no literal
LONGEST_NOP = 7  # S_NOP 7 waits for 8 cycles, on every target


def main(text: str, words: Sequence[str]) -> str:
    """`--quiet 1` suppresses the report."""
    options = arguments.read("peephole", words, quiet=0)
    module = mir.parse(text)
    for function in module.functions:
        if function.has_virtual_registers:
            raise InputError(
                f"{function.name} has virtual registers",
                hint="insert it after register allocation: --insert pre-waits=peephole",
            )
        done: Counter[str] = Counter()
        for block in function.blocks:
            _drop_moves(block, done)
            _join_moves(block, done)
            _join_no_ops(block, done)
        if not options["quiet"]:
            told = ", ".join(f"{count} {what}" for what, count in sorted(done.items()))
            print(f"peephole: {function.name}: {told or 'nothing to do'}", file=sys.stderr)
    return str(module)


def _plain_move(one: Instruction) -> bool:
    """Returns whether it is only a move: one result, one source, no other effect."""
    if not _CONSTANT_MOVE.fullmatch(one.opcode) or len(one.results) != 1 or not one.operands:
        return False
    if one.results[0].register is None:
        return False
    extra = [str(operand) for operand in one.operands[1:]]
    return extra in ([], ["implicit $exec"])


def _drop_moves(block: Block, done: Counter[str]) -> None:
    """Removes redundant moves. `known` holds the registers with a known constant."""
    known: dict[str, tuple[str, str]] = {}
    for one in list(block.instructions):
        if _plain_move(one):
            target, source = one.results[0].register, one.operands[0]
            assert target is not None
            if source.register == target and source.sub is None:
                block.remove(one)
                done["moves onto itself"] += 1
                continue
            # A move to a vector register only writes the lanes in EXEC, so it depends on EXEC.
            value = (one.opcode, source.text)
            if source.integer is not None and known.get(target) == value:
                block.remove(one)
                done["repeated constants"] += 1
                continue
        changed = registers.defined(one)
        if one.bundled or not _known_effects(one) or changed & {"exec_lo", "exec_hi"}:
            known.clear()
        known = {name: held for name, held in known.items() if not registers.units(name) & changed}
        if _plain_move(one) and one.operands[0].integer is not None:
            known[one.results[0].register or ""] = (one.opcode, one.operands[0].text)


def _known_effects(one: Instruction) -> bool:
    """Returns False for calls and inline assembly, whose operands do not name all they write."""
    return _UNKNOWN.match(one.opcode) is None


def _join_moves(block: Block, done: Counter[str]) -> None:
    at = 0
    while at + 1 < len(block.instructions):
        first, second = block.instructions[at : at + 2]
        joined = _pair(first, second)
        if joined is not None:
            block.remove(second)
            block.instructions[at] = joined
            done["pairs of moves joined"] += 1
        at += 1


def _pair(first: Instruction, second: Instruction) -> Instruction | None:
    """Returns one S_MOV_B64 that replaces both, or None."""
    values: dict[int, int] = {}
    for one in (first, second):
        if one.opcode != "S_MOV_B32" or not _plain_move(one) or one.operands[0].integer is None:
            return None
        match = _SCALAR.fullmatch(one.results[0].register or "")
        if match is None or one.attributes:
            return None
        values[int(match[1])] = one.operands[0].integer & 0xFFFF_FFFF
    low = min(values)
    if low % 2 or low + 1 not in values:
        return None
    whole = values[low] | values[low + 1] << 32
    whole -= (whole >> 63) << 64
    if whole not in INLINE:
        return None
    return Instruction(f"$sgpr{low}_sgpr{low + 1} = S_MOV_B64 {whole}", first.indent)


def _join_no_ops(block: Block, done: Counter[str]) -> None:
    at = 0
    while at + 1 < len(block.instructions):
        first, second = block.instructions[at : at + 2]
        counts = [
            one.operands[0].integer
            for one in (first, second)
            if one.opcode == "S_NOP" and one.operands
        ]
        if len(counts) == 2 and None not in counts:
            total = sum(count + 1 for count in counts if count is not None) - 1
            if total <= LONGEST_NOP:
                first.replace(operands=[total])
                block.remove(second)
                done["no-ops joined"] += 1
                continue
        at += 1
