"""Encodes instructions as micro-ops, the array that handlers traverse, and maps addresses to it.

Everything from the code object is checked here or by a handler: registers are within their
allocation, branches go to a micro-op, and an instruction without a handler is rejected before
anything runs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field

from fly_common.errors import InputError

from fly_run.emulator import state
from fly_run.emulator.isa import unsupported, vgpr_msb
from fly_run.emulator.isa.aliases import aliases_of
from fly_run.emulator.isa.instruction import (
    ADD_PC,
    SET_PC,
    SWAP_PC,
    Instruction,
    split_mnemonic,
)
from fly_run.emulator.lowering import denormals, fused, overflow, scalar
from fly_run.emulator.lowering.cdna5 import memory as cdna5_memory
from fly_run.emulator.lowering.cdna5 import vector as cdna5
from fly_run.emulator.lowering.matrix import mfma, wmma
from fly_run.emulator.lowering.memory import accesses, lds
from fly_run.emulator.lowering.rdna import instructions as rdna
from fly_run.emulator.lowering.registers import Registers, Unsupported
from fly_run.emulator.lowering.steps import Lowering, Step
from fly_run.emulator.lowering.vector import composite, dpp, single
from fly_run.emulator.semantics.base.operation import SHORT, TO_EXEC, Operation
from fly_run.emulator.semantics.base.small_float import FP16_OVFL

LOWERINGS: dict[str, Callable[[Lowering, Operation, str], None]] = {
    "valu": single.lower_valu,
    "scalar": scalar.lower_scalar,
    "flow": scalar.lower_flow,
    "nothing": scalar.lower_nothing,
    "matrix": mfma.lower_matrix,
    "wmma": wmma.lower_wmma,
    **dict.fromkeys(accesses.LOWERINGS, accesses.lower_memory),
}
EXPANSIONS = scalar.EXPANSIONS
# Operations with semantics of their own that no instruction may name.
INTERNAL = "fly_"
IDLE = "s_nop"
LEAVES = (*SET_PC, *SWAP_PC, ADD_PC, "s_endpgm")
CHANGES_MODE = ("s_round_mode", "s_denorm_mode")


@dataclass
class Program:
    """`ops` is the micro-ops' memory; `addresses` maps a pc to the index of its first micro-op;
    `instructions` are the decoded instructions by number."""

    ops: ctypes.Array[ctypes.c_char]
    addresses: dict[int, int]
    instructions: list[Instruction]

    @property
    def base(self) -> int:
        return ctypes.addressof(self.ops)

    def address_of(self, pc: int) -> int:
        """Returns the host address of the micro-op for `pc`."""
        return self.base + self.addresses[pc] * state.OP_SIZE

    def holds(self, op: int) -> bool:
        return self.base <= op < self.base + len(self.ops)

    def instruction_at(self, op: int) -> Instruction | None:
        """Returns the instruction of the micro-op at host address `op`."""
        offset = op - self.base
        number = ctypes.c_uint32.from_buffer(self.ops, offset + state.OP_INDEX).value
        return self.instructions[number] if number < len(self.instructions) else None


@dataclass
class Encoder:
    """`handlers` are the library's addresses by name; `null_region` is the address of an empty
    region, to which every memory site initially points; `split_modes` tells that f32 and f64
    operations have different rounding or denormal modes, `flush_halves` that f16 denormals may be
    flushed, `hold_halves` that f16 results may be kept finite; `weave` inserts the observers'
    micro-ops around an instruction's steps; `mfma` and `modes_vary` are as in Lowering."""

    registers: Registers
    table: dict[str, Operation]
    handlers: dict[str, int]
    null_region: int
    split_modes: bool = False
    flush_halves: bool = False
    hold_halves: bool = False
    weave: Callable[[Instruction, list[Step]], list[Step]] | None = None
    mfma: str = "exact"
    modes_vary: bool = False
    _index_mode: int | None = field(default=None)

    def encode(self, instructions: dict[int, Instruction], what: str) -> Program:
        """Encodes instructions by ascending address. `what` names the code in an error."""
        ordered = list(instructions.values())
        if any(_changes_mode(i) for i in ordered):
            self.split_modes = self.flush_halves = self.modes_vary = True
        if any(scalar.sets_mode(i, FP16_OVFL) for i in ordered):
            self.hold_halves = True
        refused: list[tuple[Instruction, str]] = []
        steps: list[tuple[int, Step]] = []  # number of the instruction, step
        addresses: dict[int, int] = {}
        landings = _landings(ordered)
        upper = self._upper_bits(instructions, what)
        after = None
        for number, instruction in enumerate(ordered):
            if after is not None and after != instruction.pc:
                steps.append((number - 1, Step("fly_end_of_code")))
            addresses[instruction.pc] = len(steps)
            after = instruction.pc + instruction.size
            # Observers see the full register numbers too.
            instruction = vgpr_msb.with_upper_bits(instruction, upper.get(instruction.pc, 0))
            ordered[number] = instruction
            try:
                lowered = self.lower(instruction)
                if not lowered and instruction.pc in landings:
                    # Counting starts at the instruction whose micro-op is the landing.
                    lowered = [Step(IDLE)]
                if self.weave is not None:
                    lowered = self.weave(instruction, lowered)
                steps += ((number, step) for step in lowered)
            except Unsupported as reason:
                refused.append((instruction, str(reason)))
        if refused:
            raise _refusal(refused, what)
        steps.append((len(ordered) - 1, Step("fly_end_of_code")))
        made = fused.fused([step for _, step in steps])
        steps = [(number, step) for (number, _), step in zip(steps, made, strict=True)]
        return self._assemble(ordered, steps, addresses)

    def _upper_bits(self, instructions: dict[int, Instruction], what: str) -> dict[int, int]:
        """Returns the bits of `vgpr_msb` at each address."""
        if self.registers.facts.vgprs <= vgpr_msb.BANK:
            return {}
        try:
            return vgpr_msb.states(instructions)
        except vgpr_msb.Conflict as conflict:
            raise InputError(
                f"{what}: {conflict}: the emulator needs to know register numbers statically"
            ) from None

    def lower(self, instruction: Instruction) -> list[Step]:
        lowering = Lowering(self.registers, self.table, instruction, self.mfma, self.modes_vary)
        if instruction.second is not None:
            rdna.dual(lowering, self.lower)
            return lowering.steps
        own, encoding = split_mnemonic(instruction.mnemonic)
        target = self.registers.target
        if accesses.SCALED in instruction.modifiers and not self.registers.facts.signed_offsets:
            raise Unsupported("scale_offset")  # LLVM prints gfx1250's bit for other targets too
        name = aliases_of(target.name).get(own, own)
        if name == "s_set_gpr_idx_on":
            self._index_mode = scalar.index_mode(lowering)
        elif name == "s_set_gpr_idx_mode":
            self._index_mode = scalar.mode_alone(lowering)
        elif name == "s_set_gpr_idx_off":
            self._index_mode = None
        elif self._index_mode is not None and name.startswith("v_"):
            if name != "v_mov_b32" or encoding:
                raise Unsupported("relative register numbers (s_set_gpr_idx_on)")
            scalar.indexed_move(lowering, self._index_mode)
            return lowering.steps
        to_lds = bool(instruction.modifiers.get("lds"))
        expand = EXPANSIONS.get(name) or composite.expansion(name) or lds.expansion(name, to_lds)
        if not self.registers.facts.is_gfx9:
            if not encoding and dpp.is_dpp(instruction.modifiers):
                encoding = "dpp"
            expand = rdna.expansion(own) or expand
        if self.registers.facts.vgprs > vgpr_msb.BANK:
            expand = cdna5.expansion(own) or cdna5_memory.expansion(own) or expand
        operation = self.table.get(name)
        if expand is not None:
            expand(lowering, name, encoding)
        elif operation is None or operation.form not in LOWERINGS or name.startswith(INTERNAL):
            raise Unsupported("")
        else:
            operation = self._returning(operation, instruction)
            LOWERINGS[operation.form](lowering, operation, encoding)
        return self._with_modes(lowering)

    def _returning(self, operation: Operation, instruction: Instruction) -> Operation:
        """Selects the form of a memory atomic that returns the old value: `glc`, `sc0` since
        gfx940, a cache policy on gfx12."""
        returning = self.table.get(operation.mnemonic + ".rtn")
        found = instruction.modifiers
        policy = str(found.get("th", ""))
        if returning is not None and (found.keys() & {"glc", "sc0"} or "RETURN" in policy):
            return returning
        return operation

    def _with_modes(self, lowering: Lowering) -> list[Step]:
        """Changes the host's control word around f16 and f64 arithmetic if it differs, and around
        gfx1250's bf16, which ignores MODE; flushes f16 denormals and keeps f16 results finite if
        MODE may ask for it."""
        if not (self.split_modes or self.flush_halves or self.hold_halves or self.modes_vary):
            return lowering.steps
        result = []
        for step in lowering.steps:
            name = step.handler if step.handler in self.table else step.handler.rpartition(".")[0]
            operation = self.table.get(name)
            if operation is None or operation.form != "valu":
                result.append(step)
                continue
            before, behind, notes, holds = [], [], [], []
            if self.hold_halves:
                notes, holds = overflow.around(step, operation, lowering)
            if self.flush_halves:
                before, step, behind = denormals.around(step, operation, lowering.temporary)
            double = "double" in {*operation.outputs, *operation.inputs}
            if self.modes_vary and operation.name in cdna5.BRAIN:
                plain = Step("fly_use_control", (lowering.word(mfma.IEEE_CONTROL).offset,))
                step_and_mode = [plain, step, Step("fly_mode_single")]
            elif self.split_modes and (double or denormals.is_half(operation)):
                step_and_mode = [Step("fly_mode_double"), step, Step("fly_mode_single")]
            else:
                step_and_mode = [step]
            result += [*notes, *before, *step_and_mode, *behind, *holds]
        return result

    def _address(self, step: Step) -> int:
        """Returns the address of a step's handler: in waves of 32 lanes, their own if there is one.
        A mask in EXEC is the exception: it is stored whole (`TO_EXEC`)."""
        own = step.handler + (TO_EXEC if step.operands[:1] == (state.EXEC,) else SHORT)
        if self.registers.wave_size < state.LANES and own in self.handlers:
            return self.handlers[own]
        return self.handlers[step.handler]

    def _assemble(
        self, ordered: list[Instruction], steps: list[tuple[int, Step]], addresses: dict[int, int]
    ) -> Program:
        ops = ctypes.create_string_buffer(len(steps) * state.OP_SIZE + 64)
        # Micro-ops are one cache line each: align the first.
        start = -ctypes.addressof(ops) % 64
        window = (ctypes.c_char * (len(steps) * state.OP_SIZE)).from_buffer(ops, start)
        base = ctypes.addressof(window)
        for place, (number, step) in enumerate(steps):
            link = self.null_region
            if step.site is not None:
                link = step.site
            elif step.link is not None:
                # A branch to undecoded code goes to the end, which faults.
                target = addresses.get(step.link, len(steps) - 1)
                link = base + target * state.OP_SIZE
            operands = (*step.operands, 0, 0, 0, 0, 0, 0)[:6]
            state.MICRO_OP.pack_into(
                window,
                place * state.OP_SIZE,
                self._address(step),
                *operands,
                step.immediate & 0xFFFF_FFFF_FFFF_FFFF,
                link,
                ordered[number].pc,
                number,
                step.extra,
            )
        return Program(window, addresses, ordered)


def _changes_mode(instruction: Instruction) -> bool:
    """Whether an instruction may change how floats are rounded or flushed."""
    return instruction.mnemonic.startswith(CHANGES_MODE) or scalar.sets_mode(
        instruction, scalar.ROUND_AND_DENORMALS
    )


def _landings(ordered: list[Instruction]) -> set[int | None]:
    """Returns the addresses that control may reach from elsewhere than the preceding instruction:
    targets of branches, successors of branches and calls, and the first instructions of
    functions."""
    found = {instruction.target for instruction in ordered}
    after = None
    for instruction in ordered:
        if instruction.pc != after:
            found.add(instruction.pc)
        end = instruction.pc + instruction.size
        if instruction.target is not None or instruction.mnemonic.startswith(LEAVES):
            found.add(end)
        after = end
    return found


def _refusal(refused: list[tuple[Instruction, str]], what: str) -> InputError:
    """Formats one line for each mnemonic and reason: how often it occurs, and where first."""
    groups: dict[tuple[str, str], list[Instruction]] = {}
    for instruction, reason in refused:
        groups.setdefault((instruction.mnemonic, reason), []).append(instruction)
    lines = []
    for (mnemonic, reason), found in sorted(groups.items()):
        times = f"{len(found)} times, first" if len(found) > 1 else "once,"
        known = unsupported.reason(mnemonic)
        why = f" with {reason}" if reason else f" ({known})" if known else ""
        lines.append(f"{mnemonic}{why}: {times} at pc 0x{found[0].pc:x}: {found[0].text}")
    noun = "instruction" if len(lines) == 1 else "instructions"
    return InputError(
        f"{what} uses {len(lines)} {noun} that the emulator does not support; nothing was run",
        hint="\n  ".join(lines),
    )
