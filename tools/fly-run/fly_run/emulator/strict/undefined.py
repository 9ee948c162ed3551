"""Uninitialised values of a wave: where they go, and where they matter.

Registers, LDS and private memory start undefined, except for what the hardware sets. Undefined
bits may be copied, spilled and computed with: compilers do that where the result is not used. They
matter in an address, a branch, EXEC, an atomic, and in what is stored to global memory.
"""

from __future__ import annotations

import numpy as np

from fly_run.emulator import state
from fly_run.emulator.semantics.base.access import Access, Atomic
from fly_run.emulator.strict import undefined_memory
from fly_run.emulator.strict.accesses import Destination, Values
from fly_run.emulator.strict.dataflow import MATRIX_FORMS, Effect, Place
from fly_run.emulator.strict.definedness import ALL_32, U64, WIDTHS, ones, rule_of
from fly_run.emulator.strict.shadow import Shadow, Use
from fly_run.emulator.strict.undefined_moves import move_of


def step(
    shadow: Shadow,
    effect: Effect,
    values: Values,
    active: np.ndarray,
    places: list[Destination],
    shared: np.ndarray,
) -> Use | None:
    """What a step does to the shadow; a use that matters. `places` are where a memory access
    goes, `shared` the shadow of the workgroup's LDS, a byte for each byte."""
    form = effect.operation.form
    if form == "flow":
        return _flow(shadow, effect)
    if isinstance(effect.operation.detail, Access | Atomic) or form == "smem":
        return undefined_memory.access(shadow, effect, active, places, shared)
    mixes = form in MATRIX_FORMS or effect.operation.mnemonic.startswith("fly_transpose")
    change = _mix if mixes else move_of(effect.operation.mnemonic) or _compute
    change(shadow, effect, values, active)
    return _exec(shadow, effect)


def _exec(shadow: Shadow, effect: Effect) -> Use | None:
    """EXEC must be defined, of all lanes that the wave has."""
    if not any(state.EXEC in place.words() for place in effect.writes):
        return None
    words = shadow.bits[state.EXEC // 4 : state.EXEC // 4 + shadow.lanes // 32]
    if not words.any():
        return None
    return Use("which lanes go on", None, int(shadow.origins[state.EXEC // 4]))


def _flow(shadow: Shadow, effect: Effect) -> Use | None:
    """Branches and jumps: what they look at must be defined."""
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
    origin = shadow.origin(effect.reads)
    any_bit = np.bitwise_or.reduce(np.broadcast_arrays(*(bits != 0 for bits in reads)))
    rule = rule_of(operation.mnemonic)
    for number, place in enumerate(effect.writes):
        if number or place.element == "mask":
            bits = any_bit.astype(U64)
        else:
            known = [values.lanes(source) for source in effect.reads]
            bits = rule(reads, known, WIDTHS[place.element])
        if "saveexec" in operation.mnemonic:
            # The first result is EXEC as it was; EXEC becomes the combination.
            bits = np.zeros(1, U64) if number == 0 else bits
            if place.offset == state.EXEC:
                known = [values.lanes(source) for source in effect.reads]
                bits = rule(reads, known, 64)
        shadow.write(place, bits, active, origin, keep)


def _mix(shadow: Shadow, effect: Effect, values: Values, active: np.ndarray) -> None:
    """Matrix instructions and transposed reads work on all lanes. Which elements of the result an
    undefined element gets into is not worked out: all."""
    origin = shadow.origin(effect.reads)
    whole = np.array([ALL_32 if origin else 0], U64)
    (target,) = effect.writes
    for word in target.words():
        shadow.write(Place(word, 1, True), whole, np.ones(state.LANES, bool), origin)
