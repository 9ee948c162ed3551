"""The bytes of LDS that a tensor data move reads or writes, from its descriptor, and what of both
must be defined.

Fields and rules as in `semantics.cdna5.tensor`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fly_run.emulator.lowering.cdna5.memory import GROUPS
from fly_run.emulator.lowering.steps import Step
from fly_run.emulator.semantics.cdna5.tensor import EXTENDED, STORES, TENSOR, TILE
from fly_run.emulator.strict.accesses import Values
from fly_run.emulator.strict.undefined.shadow import Memory, Shadow, Use

# The bits of groups 0 and 1 that every move reads: all but the barrier's address, which only moves
# read that arrive, and stride 1.
BARRIER = 0xFFFF << 32
READ = ((1 << 128) - 1, ((1 << 208) - 1) ^ BARRIER)

MASK = 0xFFFF  # of the workgroups that a multicast serves: the lower bits of group 1


@dataclass(frozen=True)
class Request:
    """What a multicast asks for, with a mask of workgroups, or 0 for none. Two requests are the
    same if they are equal."""

    mnemonic: str
    mask: int
    addresses: tuple[bytes, ...]


def lds_bytes(step: Step, values: Values, size: int) -> np.ndarray:
    """Returns the offsets, as an array of int64 within `size` bytes of LDS."""
    groups = [
        _bits(values, place, count) for place, count in zip(step.operands, GROUPS, strict=False)
    ]
    empty = np.zeros(0, np.int64)
    if any(group is None for group in groups):
        return empty
    words = [group or 0 for group in groups]
    if not words[0] & 1:
        return empty
    control = words[1] & 0xFFFF_FFFF
    shift = control >> 16 & 3
    gathers = words[0] >> 31 & 1
    extended = bool(step.extra & EXTENDED)
    iterates = bool(control >> 19 & 1) and extended and not gathers
    counts = []
    for number, (group, start, width) in enumerate(TILE):
        tile = words[group] >> start & (1 << width) - 1
        used = number < 2 or (extended and not gathers and not (number >= 3 and iterates))
        counts.append((tile or (0 if number == 0 else 1)) if used else 1)
    total = int(np.prod(counts)) << shift
    times = (words[2] >> 112 & 0xFFFF) + 1 if iterates else 1
    step_bytes = (words[2] >> 32 & 0xFFFF_FFFF) << shift if iterates else 0
    offsets = np.arange(total, dtype=np.int64)
    if control >> 20 & 1 and not step.extra & STORES:
        interval = 4 << ((control >> 22 & 7) + 1)
        offsets = offsets + offsets // interval * (((control >> 25 & 127) + 1) * 4)
    if step.extra & STORES:
        offsets = offsets[_inside(words, counts, gathers).repeat(1 << shift)]
    start = words[0] >> 32 & 0xFFFF_FFFF
    every = [offsets + start + turn * step_bytes for turn in range(times)]
    found = np.concatenate(every) if every else empty
    return found[found < size]


def multicast(step: Step, values: Values, name: str) -> Request | None:
    """Returns the request of a move to LDS; None for others, which ignore the mask, and if its
    descriptor is not valid."""
    words = [
        _bits(values, place, count) for place, count in zip(step.operands, GROUPS, strict=False)
    ]
    if stores(step) or not (words[0] or 0) & 1:
        return None
    return Request(name, (words[1] or 0) & MASK, (str(words).encode(),))


def arrives(step: Step, values: Values) -> int | None:
    """Returns the address in LDS of the barrier at which a move arrives when it is done. None if it
    names none, or copies nothing."""
    words = [
        _bits(values, place, count) for place, count in zip(step.operands, GROUPS, strict=False)
    ]
    first, second = (word or 0 for word in words[:2])
    _, start, width = TILE[0]
    if not first & 1 or not second >> 18 & 1 or not second >> start & (1 << width) - 1:
        return None
    return (second >> 32 & 0xFFFF) * 8


def _inside(words: list[int], counts: list[int], gathers: int) -> np.ndarray:
    """Returns whether each element of a tile is in the tensor, the first dimension fastest. The
    rows of a gather count as inside."""
    number, good = np.arange(int(np.prod(counts))), np.ones(int(np.prod(counts)), bool)
    for dimension, (group, start, width) in enumerate(TENSOR):
        at, number = number % counts[dimension], number // counts[dimension]
        if counts[dimension] > 1 and not (gathers and dimension == 1):
            good &= at < (words[group] >> start & (1 << width) - 1)
    return good


def _bits(values: Values, place: int, count: int) -> int | None:
    """Returns consecutive dwords as a number."""
    found = 0
    for number in range(count):
        word = values.word(place + 4 * number)
        if word is None:
            return None
        found |= word << 32 * number
    return found


def undefined_use(
    step: Step, shadow: Shadow, lds: Memory, offsets: np.ndarray, barrier: int | None
) -> Use | None:
    """Returns a use of an undefined value: in the descriptor, of LDS that is stored, or of the
    barrier at this address, if any."""
    read = READ if barrier is None else (READ[0], READ[1] | BARRIER)
    for place, meant in zip(step.operands, read, strict=False):
        for word in range(
            place // 4, min(place // 4 + meant.bit_length() // 32 + 1, shadow.end // 4)
        ):
            used = meant >> 32 * (word - place // 4) & 0xFFFF_FFFF
            if int(shadow.bits[word]) & used:
                return Use("what a tensor data move copies", None, int(shadow.origins[word]))
    if stores(step) and (bad := offsets[lds.bytes[offsets] != 0]).size:
        return Use("a stored value", None, int(lds.origins[bad[0] // 4]))
    if barrier is not None and lds.bytes[barrier : barrier + 8].any():
        return Use("when a barrier in LDS is complete", None, int(lds.origins[barrier // 4]))
    return None


def stores(step: Step) -> bool:
    """Whether LDS is read, and memory written."""
    return bool(step.extra & STORES)
