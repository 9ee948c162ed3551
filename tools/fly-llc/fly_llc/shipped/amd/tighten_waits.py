"""tighten-waits: relaxes each `s_waitcnt` to what the code after it needs.

    fly-llc k.ll --insert pre-emit=tighten-waits
    fly-run k.hsaco --strict …                      finds a register read too early, if there is one

A wait is relaxed if the rest of its block shows how much is needed: up to the next wait, the next
use of a pending result, or the end of the block. It is not changed before barriers, fences, cache
controls, ordered stores and atomics, and calls, or if something that it waits for is still pending
at the end of the block, because the wait may then protect more than a register. LLVM's own waits
are seldom too strong; hand-written ones often are.

Supports S_WAITCNT of gfx9 and gfx11. Reports its changes on standard error.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from fly_common.errors import InputError

from fly_llc import mir
from fly_llc.mir.amd import registers, waits
from fly_llc.mir.amd.waits import Layout, Pending
from fly_llc.mir.block import Block
from fly_llc.mir.function import Function
from fly_llc.mir.instruction import Instruction
from fly_llc.shipped import arguments

_CPU = re.compile(r'"target-cpu"="(gfx\w+)"')
_ORDERING = re.compile(
    r"S_BARRIER|S_WAIT(?!CNT$)|BUFFER_(?:INV|WB)|BUFFER_GL|GLOBAL_(?:INV|WB)|S_DCACHE|S_ICACHE"
    r"|S_SWAPPC|S_SETPC|S_CALL|S_ENDPGM|S_TRAP|S_SENDMSG|S_SETREG|S_MEMTIME|S_MEMREALTIME|INLINEASM"
    r"|\w*ATOMIC\w*|\w*_LDS_\w*|BUNDLE|S_SLEEP"
)

_EXPORT = re.compile(r"EXP|DS_GWS|DS_ORDERED|LDS_DIRECT|LDS_PARAM")

State = dict[str, Pending]


def main(text: str, words: Sequence[str]) -> str:
    """`--quiet 1` suppresses the report."""
    options = arguments.read("tighten-waits", words, quiet=0)
    module = mir.parse(text)
    cpu = _CPU.search(module.ir)
    layout = waits.layout(cpu[1]) if cpu else None
    if layout is None:
        raise InputError(
            f"{cpu[1] if cpu else 'the module'} has no S_WAITCNT of gfx9's or gfx11's kind"
        )
    for function in module.functions:
        if function.has_virtual_registers:
            raise InputError(
                f"{function.name} has virtual registers",
                hint="insert it after the waits: --insert pre-emit=tighten-waits",
            )
        total, relaxed = tighten(function, layout)
        if not options["quiet"]:
            print(
                f"tighten-waits: {function.name}: {relaxed} of {total} waits relaxed",
                file=sys.stderr,
            )
    return str(module)


def tighten(function: Function, layout: Layout) -> tuple[int, int]:
    """Returns the number of waits, and the number of relaxed ones."""
    entries = _entries(function, layout)
    total = relaxed = 0
    exports = any(
        _EXPORT.match(one.opcode) for block in function.blocks for one in block.instructions
    )
    for block in function.blocks:
        state = dict(entries[block.number])
        for one in list(block.instructions):
            if one.opcode == "S_WAITCNT" and one.operands:
                total += 1
                relaxed += _relax(block, one, state, layout, exports)
            _step(one, state, layout)
        # Remove waits that wait for nothing.
        for one in list(block.instructions):
            if (
                one.opcode == "S_WAITCNT"
                and one.operands
                and one.operands[0].integer == layout.nothing
            ):
                block.remove(one)
    return total, relaxed


def _entries(function: Function, layout: Layout) -> dict[int, State]:
    """Returns what may be pending at the start of each block: a fixpoint over the control flow."""
    empty = dict.fromkeys(layout, Pending())
    entries = {block.number: dict(empty) for block in function.blocks}
    waiting = list(function.blocks)
    while waiting:
        block = waiting.pop(0)
        state = dict(entries[block.number])
        for one in block.instructions:
            _step(one, state, layout)
        for number in block.successors:
            merged = {name: entries[number][name].merge(state[name]) for name in layout}
            if merged != entries[number]:
                entries[number] = merged
                waiting.append(function.block(number))
    return entries


def _step(one: Instruction, state: State, layout: Layout) -> None:
    if one.opcode == "S_WAITCNT" and one.operands and (word := one.operands[0].integer) is not None:
        for name, field in layout.items():
            count = field.read(word)
            if count < field.most:
                state[name] = state[name].wait(count)
    for inner in one.bundled or (one,):
        for name in layout.counters(inner):
            # Only vector loads and LDS operations complete in order.
            ordered = not inner.opcode.startswith(("FLAT_", "S_"))
            state[name] = state[name].issue(waits.written_later(inner), not ordered)


def _relax(block: Block, wait: Instruction, state: State, layout: Layout, exports: bool) -> bool:
    """Relaxes a wait as far as the code after it allows. Returns whether it changed. If nothing is
    exported, it need not wait for exports."""
    word = wait.operands[0].integer
    if word is None:
        return False
    made = word if exports else layout.exports.write(word, layout.exports.most)
    for name, field in layout.items():
        said = field.read(word)
        if said < field.most:
            count = _allowed(block, wait, name, state[name], said, layout)
            made = field.write(made, field.most if count is None else count)
    if made == word:
        return False
    wait.replace(operands=[made])
    return True


def _allowed(
    block: Block,
    wait: Instruction,
    name: str,
    pending: Pending,
    said: int,
    layout: Layout,
) -> int | None:
    """Returns the largest count that is still correct for everything after the wait; None if no
    wait is needed; `said` if that is unknown."""
    kept: int | None = None
    # What only this wait guarantees, if it is not changed.
    covered = pending.units - pending.wait(said).units
    for one in block.instructions[block.index(wait) + 1 :]:
        if _ORDERING.match(one.opcode) or one.bundled:
            return said
        if one.opcode == "S_WAITCNT" and one.operands:
            word = one.operands[0].integer
            field = layout[name]
            if word is not None and (later := field.read(word)) < field.most:
                covered -= pending.units - pending.wait(later).units
                if not covered:
                    return kept
            continue
        touched = registers.used(one) | registers.defined(one)
        needed = pending.needed(touched & covered)
        if needed is not None:
            # Operations issued since then are missing in `pending`; they only make it older.
            kept = needed if kept is None else min(kept, needed)
            covered -= pending.units - pending.wait(kept).units
        if not covered:
            return kept
    return said if covered else kept
