"""Runs of micro-ops that one handler executes: it replaces the first one's, and skips the others.

Each micro-op of a run but the last starts a run itself, so a branch into one is no special case.
Observers' micro-ops end a run, so what is between them is executed instruction by instruction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fly_run.emulator.lowering.steps import Step

FMAC = {"v_fmac_f32.vv": "fly_fmac_run_vv", "v_fmac_f32.sv": "fly_fmac_run_sv"}
PAIR, READ = "fly_read_pair", "ds_read_b32.v"


def fused(steps: Sequence[Step]) -> list[Step]:
    """Returns the steps of consecutive instructions with the handlers of runs, as many as before:
    sums of products into one register, and reads of pairs of dwords by one row of addresses."""
    made = list(steps)
    _sums(made)
    _pairs(made)
    return made


def _sums(steps: list[Step]) -> None:
    following = 0  # the length of the run that starts with the next step
    for place in reversed(range(len(steps))):
        step = steps[place]
        if step.handler not in FMAC:
            following = 0
            continue
        joins = following > 0 and _adds_to(steps[place + 1], step)
        following = following + 1 if joins else 1
        if following > 1:
            steps[place] = replace(step, handler=FMAC[step.handler], extra=following)


def _adds_to(step: Step, before: Step) -> bool:
    """Whether a v_fmac_f32 adds to the result of the one `before`, of the same kind, and only
    that."""
    same = step.handler in (before.handler, FMAC[before.handler])
    target, *factors = step.operands
    return same and target == before.operands[0] and target not in factors


def _pairs(steps: list[Step]) -> None:
    runs: dict[int, tuple[int, int, int]] = {}  # number of pairs, lowest and highest offset
    for place in reversed(range(len(steps) - 2)):
        step = steps[place]
        if step.handler != PAIR or {one.handler for one in steps[place + 1 : place + 3]} != {READ}:
            continue
        count, lowest, highest = 1, min(step.immediate, step.extra), max(step.immediate, step.extra)
        after = runs.get(place + 3)
        if after is not None and steps[place + 3].operands[2] == step.operands[2]:
            count += after[0]
            lowest, highest = min(lowest, after[1]), max(highest, after[2])
            places = (*step.operands[:3], count, lowest, highest)
            steps[place] = replace(step, handler="fly_read_pairs", operands=places)
        runs[place] = count, lowest, highest
