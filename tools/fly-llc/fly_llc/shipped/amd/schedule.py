"""schedule: reorders instructions within their dependences.

    fly-llc k.ll --insert pre-waits=schedule
    fly-llc k.ll --insert 'pre-waits=schedule --order random --seed 7'

`latency` is a list scheduler that prefers the longest latency path: loads move up. `reverse` delays
everything as long as possible. `random` is any order that dependences allow: a kernel's results
must not change, so it tests the dependences that earlier passes recorded.

It works on regions between barriers, calls, mode changes and control flow. It must run before waits
and hazard no-ops are inserted, because these are only correct for one order.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from fly_common.errors import InputError, UsageError

from fly_llc import mir
from fly_llc.mir.amd import kinds
from fly_llc.mir.dependences import dependences, regions
from fly_llc.mir.instruction import Instruction
from fly_llc.shipped import arguments

# Rough latencies in cycles. Only their order matters.
VECTOR_MEMORY, SCALAR_MEMORY, LDS, TRANSCENDENTAL, PLAIN = 300, 100, 64, 16, 4
# Waits and no-ops that are only correct for one order. Waits before si-insert-waitcnts represent
# fences (S_WAITCNT_soft, S_WAITCNT_lds_direct): nothing moves across them.
_FINAL = re.compile(r"S_WAITCNT|S_WAIT_[A-Z_]+CNT|S_WAITCNT_[A-Z]+CNT|S_NOP")
_SLOW = ("V_RCP", "V_RSQ", "V_SQRT", "V_EXP", "V_LOG", "V_SIN", "V_COS", "V_MFMA", "V_WMMA")


def main(text: str, words: Sequence[str]) -> str:
    """`--order latency|reverse|random` [latency], `--seed N` for random [0]."""
    options = arguments.read("schedule", words, order="latency", seed=0)
    module = mir.parse(text)
    for function in module.functions:
        choose = _chooser(options["order"], f"{options['seed']} {function.name}")
        for block in function.blocks:
            for one in block.instructions:
                if _FINAL.fullmatch(one.opcode):
                    raise InputError(
                        f"{function.name} already contains {one.opcode}: reordering would be wrong",
                        hint="insert it before the waits: --insert pre-waits=schedule",
                    )
            order = list(block.instructions)
            for start, end in regions(order):
                order[start:end] = _ordered(order[start:end], choose)
            if any(a is not b for a, b in zip(order, block.instructions, strict=True)):
                block.reorder(order)
                _forget_kills(order)
    return str(module)


Chooser = Callable[[list[int], list[int]], int]


def _chooser(order: str, seed: str) -> Chooser:
    """Returns a function that chooses among the ready instructions by their priorities."""
    if order == "latency":
        return lambda ready, priority: max(ready, key=lambda n: (priority[n], -n))
    if order == "reverse":
        return lambda ready, priority: min(ready, key=lambda n: (priority[n], -n))
    if order == "random":
        source = random.Random(seed)
        return lambda ready, priority: source.choice(ready)
    raise UsageError(f"schedule --order {order}: expected latency, reverse or random")


def _ordered(region: list[Instruction], choose: Chooser) -> list[Instruction]:
    before = dependences(region)
    after: list[list[int]] = [[] for _ in region]
    for number, needed in enumerate(before):
        for earlier in needed:
            after[earlier].append(number)
    # The longest path from each instruction to the end of the region, in cycles.
    priority = [0] * len(region)
    for number in reversed(range(len(region))):
        rest = max((priority[later] for later in after[number]), default=0)
        priority[number] = _latency(region[number]) + rest
    missing = [len(needed) for needed in before]
    ready = [number for number, count in enumerate(missing) if count == 0]
    found: list[Instruction] = []
    while ready:
        number = choose(ready, priority)
        ready.remove(number)
        found.append(region[number])
        for later in after[number]:
            missing[later] -= 1
            if missing[later] == 0:
                ready.append(later)
        ready.sort()
    return found


def _latency(one: Instruction) -> int:
    if kinds.is_memory(one) and kinds.reads_memory(one):
        if kinds.is_lds(one):
            return LDS
        return SCALAR_MEMORY if kinds.is_scalar_memory(one) else VECTOR_MEMORY
    return TRANSCENDENTAL if one.opcode.startswith(_SLOW) else PLAIN


def _forget_kills(order: list[Instruction]) -> None:
    """Removes `killed`, an optional flag that may be wrong in the new order."""
    for one in order:
        if any("killed" in operand.flags for operand in one.operands):
            one.replace(operands=[operand.without("killed") for operand in one.operands])
