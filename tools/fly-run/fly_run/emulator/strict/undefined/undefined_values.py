"""Propagates uninitialised values of a wave, and reports uses of them.

Registers, LDS and private memory start undefined, except for those that the hardware sets.
Undefined bits may be copied, spilled and computed with: compilers do that if the result is unused.
They are reported in addresses, branches, EXEC, atomics, and stores to global memory.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fly_run.emulator import state
from fly_run.emulator.semantics.base.access import Access, Atomic
from fly_run.emulator.strict.accesses import Destination, Values
from fly_run.emulator.strict.dataflow import M0, MATRIX_FORMS, Effect, Place
from fly_run.emulator.strict.relative import BLOCK
from fly_run.emulator.strict.undefined import undefined_memory
from fly_run.emulator.strict.undefined.definedness import ALL_32, U64, WIDTHS, Bits, ones
from fly_run.emulator.strict.undefined.definedness_rules import NONZERO, TABLES, rule_of
from fly_run.emulator.strict.undefined.shadow import Memory, Shadow, Use
from fly_run.emulator.strict.undefined.undefined_moves import move_of


def step(
    shadow: Shadow,
    effect: Effect,
    values: Values,
    active: np.ndarray,
    places: list[Destination],
    shared: Memory,
) -> Use | None:
    """Updates the shadow for a step; returns a use to report. `places` are the destinations of a
    memory access, `shared` the shadow of the workgroup's LDS."""
    form = effect.operation.form
    if form == "flow":
        return _flow(shadow, effect)
    if isinstance(effect.operation.detail, Access | Atomic) or form == "smem":
        return undefined_memory.access(shadow, effect, active, places, shared)
    mixes = form in MATRIX_FORMS or effect.operation.mnemonic.startswith("fly_transpose")
    change = _mix if mixes else move_of(effect.operation.mnemonic) or _compute
    change(shadow, effect, values, active)
    if effect.operation.mnemonic == BLOCK and shadow.read(M0).any():
        return Use("which registers are moved", None, shadow.origin((M0,)))
    return _exec(shadow, effect)


def _exec(shadow: Shadow, effect: Effect) -> Use | None:
    """EXEC must be defined for all lanes of the wave."""
    if not any(state.EXEC in place.words() for place in effect.writes):
        return None
    words = shadow.bits[state.EXEC // 4 : state.EXEC // 4 + shadow.lanes // 32]
    if not words.any():
        return None
    return Use("which lanes continue", None, int(shadow.origins[state.EXEC // 4]))


def _flow(shadow: Shadow, effect: Effect) -> Use | None:
    """The operands of branches and jumps must be defined."""
    name = effect.operation.mnemonic
    for place in effect.reads:
        if place.offset == state.EXEC:
            continue
        bits = shadow.read(place)
        if place.offset == state.VCC:
            bits = bits & ones(shadow.lanes)
        if bits.any():
            what = "where a branch goes" if "branch" in name else "where a jump goes"
            return Use(what, None, shadow.origin((place,)))
    for place in effect.writes:
        shadow.write(place, np.zeros(1, U64), np.ones(state.LANES, bool), 0)
    return None


def _compute(shadow: Shadow, effect: Effect, values: Values, active: np.ndarray) -> None:
    operation = effect.operation
    reads = [shadow.read(place) for place in effect.reads]
    keep = operation.keeps_high
    if not any(bits.any() for bits in reads):
        for place in effect.writes:
            shadow.write(place, np.zeros(1, U64), active, 0, keep)
        return
    any_bit = np.bitwise_or.reduce(np.broadcast_arrays(*(bits != 0 for bits in reads)))
    table = effect.step.immediate if operation.mnemonic in TABLES else 0
    rule = rule_of(operation.mnemonic, table)
    known = [values.lanes(source) for source in effect.reads]
    result = np.zeros(1, U64)
    for number, place in enumerate(effect.writes):
        if number and NONZERO.fullmatch(operation.mnemonic):
            bits = (result != 0).astype(U64)
        elif number or place.element == "mask":
            bits = any_bit.astype(U64)
        else:
            bits = result = rule(reads, known, WIDTHS[place.element])
        if "saveexec" in operation.mnemonic:
            # The first result is the old EXEC; the combination goes to EXEC.
            bits = np.zeros(1, U64) if number == 0 else bits
            if place.offset == state.EXEC:
                bits = rule(reads, known, 64)
        origins = _origins(shadow, effect, reads, lambda only: rule(only, known, 64))
        shadow.write(place, bits, active, origins, keep)


def _origins(
    shadow: Shadow, effect: Effect, reads: list[np.ndarray], rule: Callable[[list[Bits]], Bits]
) -> np.ndarray | int:
    """Returns the origins of a result's undefined bits, for each lane: the first undefined source
    that alone makes it undefined."""
    undefined = [number for number, bits in enumerate(reads) if bits.any()]
    if len(undefined) == 1:
        return shadow.origins_of(effect.reads[undefined[0]])
    found = np.zeros(state.LANES, np.int32)
    missing = np.ones(state.LANES, bool)
    for alone in (True, False):
        for number in undefined:
            bits = reads[number]
            if alone:
                others = [one if n == number else np.zeros(1, U64) for n, one in enumerate(reads)]
                bits = rule(others)
            here = missing & np.broadcast_to((bits != 0) & (reads[number] != 0), missing.shape)
            origins = np.broadcast_to(shadow.origins_of(effect.reads[number]), found.shape)
            found[here] = origins[here]
            missing &= ~here
    return found


def _mix(shadow: Shadow, effect: Effect, values: Values, active: np.ndarray) -> None:
    """Matrix instructions and transposed reads use all lanes. The propagation is not tracked by
    element: if any element is undefined, all results are."""
    origin = shadow.origin(effect.reads)
    whole = np.array([ALL_32 if origin else 0], U64)
    (target,) = effect.writes
    for word in target.words():
        shadow.write(Place(word, 1, True), whole, np.ones(state.LANES, bool), origin)
