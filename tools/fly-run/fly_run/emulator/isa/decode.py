"""Decodes a code object's machine code into Instructions, on demand.

Code is not a contiguous list: padding and constants lie between functions, and only control flow
tells what a byte means. So nothing is decoded before it is reached; `reachable` follows direct
control flow, `everything` sweeps over the whole code to find targets that are only in registers.
"""

from __future__ import annotations

import re

from fly_common.errors import InputError
from fly_common.quoting import quoted
from fly_image.amd.code_object import CodeObject
from fly_image.elf import Segment

from fly_run.emulator.isa.disassemble import Disassembler
from fly_run.emulator.isa.instruction import ADD_PC, GET_PC, Immediate, Instruction, Register
from fly_run.emulator.isa.parse import parse

# Instructions after which control does not fall through. `s_trap 2` is llvm.trap.
_ENDS = re.compile(
    r"s_endpgm(?:_saved|_ordered_ps_done)?|s_branch|s_setpc_b64|s_set_pc_i64|s_rfe\w*|s_code_end"
    rf"|{ADD_PC}"
)
_TRAP = 2
# How many instructions after s_getpc_b64 the address may be completed: LLVM emits the three
# together, and the scheduler may put a few others between.
_NEAR = 16


def _with_mask(text: str, encoded: bytes) -> str:
    """Replaces ds_swizzle's offset by a number: LLVM's text of a rotation omits its mask."""
    return re.sub(r"swizzle\([^)]*\)", hex(int.from_bytes(encoded, "little")), text)


class Code:
    """The executable segments of a code object, decoded for waves of `wave_size` lanes (None: the
    target's default). `pointers` are the code addresses in its data, the possible targets of
    indirect calls."""

    def __init__(self, code_object: CodeObject, wave_size: int | None = None):
        target = code_object.target
        self._parts: list[tuple[Segment, Disassembler]] = [
            (segment, Disassembler(target, segment.data, segment.address, wave_size))
            for segment in code_object.executable()
        ]
        self.pointers = tuple(
            relocation.value
            for relocation in code_object.relocations
            if self._is_code(relocation.value)
        )
        self._decoded: dict[int, Instruction | None] = {}

    def _is_code(self, address: int) -> bool:
        return address % 4 == 0 and any(part.holds(address, 4) for part, _ in self._parts)

    def decode_at(self, pc: int) -> Instruction | None:
        """Returns the instruction at `pc`; None if there is none: invalid bytes, or an address
        outside the code. InputError if the disassembler's text can't be parsed."""
        if pc not in self._decoded:
            self._decoded[pc] = self._decode(pc)
        return self._decoded[pc]

    def _decode(self, pc: int) -> Instruction | None:
        for segment, disassembler in self._parts:
            if segment.holds(pc, 4):
                found = disassembler.at(pc)
                if not found:
                    return None
                text, size = found
                if "swizzle(ROTATE," in text:
                    text = _with_mask(text, segment.data[pc - segment.address :][:2])
                return parse(text, pc, size)
        return None

    def reachable(self, entry: int) -> dict[int, Instruction]:
        """Returns the instructions reachable from `entry` by address, in ascending order: next
        instructions, branches, calls, addresses formed from s_getpc_b64. InputError if control
        reaches an address without an instruction.
        """
        found: dict[int, Instruction] = {}
        waiting = [(entry, entry)]
        while waiting:
            pc, origin = waiting.pop()
            while pc not in found:
                instruction = self.decode_at(pc)
                if instruction is None:
                    if pc != entry and self._is_end(pc) and origin in found:
                        break  # control that falls through the last instruction faults
                    raise self._no_code(pc, origin, found)
                found[pc] = instruction
                origin = pc
                if instruction.target is not None:
                    waiting.append((instruction.target, pc))
                if instruction.mnemonic in GET_PC:
                    waiting += [(address, pc) for address in self._formed(instruction)]
                if _stops(instruction):
                    break
                pc += instruction.size
        return dict(sorted(found.items()))

    def everything(self) -> dict[int, Instruction]:
        """Returns all that decodes in a sweep over the code, in ascending order; skips a dword that
        does not."""
        found: dict[int, Instruction] = {}
        for segment, _ in self._parts:
            pc = segment.address
            while segment.holds(pc, 4):
                instruction = self._decode_or_none(pc)
                if instruction is not None:
                    found[pc] = instruction
                pc += instruction.size if instruction else 4
        return found

    def _decode_or_none(self, pc: int) -> Instruction | None:
        try:
            return self.decode_at(pc)
        except InputError:
            return None

    def _is_end(self, address: int) -> bool:
        """Whether code ends at an address. The last function may be one that does not return."""
        return any(address == part.address + part.size for part, _ in self._parts)

    def _formed(self, getpc: Instruction) -> list[int]:
        """Returns code addresses formed by adding constants to the pair that `getpc` sets. LLVM's
        form is s_getpc_b64 s[a:b]; s_add_u32 sc, sa, low; s_addc_u32 sd, sb, high. On gfx1250 it is
        s_get_pc_i64 s[a:b]; s_add_nc_u64 s[c:d], s[a:b], both."""
        pair = getpc.operands[0]
        if not isinstance(pair, Register):
            return []
        lows: list[int] = []
        highs: list[int] = []
        pc = getpc.pc + getpc.size
        base = pc
        for _ in range(_NEAR):
            instruction = self._decode_or_none(pc)
            if instruction is None or _stops(instruction):
                break
            if instruction.mnemonic in GET_PC and instruction.operands == getpc.operands:
                break  # later additions belong to another address
            if instruction.mnemonic in ("s_add_u32", "s_add_co_u32"):
                lows += _added(instruction, pair.index)
            elif instruction.mnemonic in ("s_addc_u32", "s_add_co_ci_u32"):
                highs += _added(instruction, pair.index + 1)
            elif instruction.mnemonic == "s_add_nc_u64":
                both = _added(instruction, pair.index, 64)
                lows += both
                highs += [0] * bool(both)
            pc += instruction.size
        sums = [(base + low + (high << 32)) & (1 << 64) - 1 for low in lows for high in highs]
        return [address for address in sums if self._is_code(address)]

    def _no_code(self, pc: int, origin: int, found: dict[int, Instruction]) -> InputError:
        for segment, _ in self._parts:
            if segment.holds(pc, 4):
                word = int.from_bytes(segment.data[pc - segment.address :][:4], "little")
                what = f"0x{word:08x} is not an instruction of this processor"
                break
        else:
            what = "there is no code"
        came = (
            f", reached from 0x{origin:x} {quoted(found[origin].text)}" if origin in found else ""
        )
        return InputError(f"pc 0x{pc:x}: {what}{came}")


def _stops(instruction: Instruction) -> bool:
    """Whether control never falls through `instruction`."""
    if instruction.mnemonic == "s_trap":
        number = instruction.operands[0]
        return isinstance(number, Immediate) and number.value == _TRAP
    return bool(_ENDS.fullmatch(instruction.mnemonic))


def _added(instruction: Instruction, source: int, width: int = 32) -> list[int]:
    """Returns the unsigned constant that `instruction` adds to scalar register `source`."""
    _, a, b = instruction.operands
    if isinstance(b, Register):
        a, b = b, a
    if isinstance(a, Register) and a.index == source and isinstance(b, Immediate):
        return [b.value & (1 << width) - 1]
    return []
