"""Propagates undefined bytes in loads, stores and atomics between registers, LDS and private
memory."""

from __future__ import annotations

import numpy as np

from fly_run.emulator.semantics.base.access import Access, Atomic
from fly_run.emulator.strict.accesses import Destination
from fly_run.emulator.strict.dataflow import Effect, Place
from fly_run.emulator.strict.undefined.definedness import U64
from fly_run.emulator.strict.undefined.shadow import Memory, Shadow, Use

WIDE_STORE = 16  # bytes: a vector of three is stored as four, the last of which is padding


def access(
    shadow: Shadow,
    effect: Effect,
    active: np.ndarray,
    places: list[Destination],
    shared: Memory,
) -> Use | None:
    """Updates the shadows for a memory access; returns a use to report. `places` are the access's
    destinations, `shared` the shadow of the workgroup's LDS."""
    detail = effect.operation.detail
    scalar = effect.operation.form == "smem"
    for place in effect.reads:
        bits = shadow.read(place)
        wrong = np.broadcast_to(bits != 0, active.shape) & (active if not scalar else True)
        if place.role == "address" and wrong.any():
            lane = int(np.flatnonzero(wrong)[0]) if place.lanes else None
            return Use("the address", lane, shadow.origin((place,), lane))
    data = [place for place in effect.reads if place.role == "value"]
    if scalar:
        return _scalar(shadow, effect, data)
    for where in places:
        memory = {"lds": shared, "scratch": shadow.private}.get(where.space)
        if isinstance(detail, Atomic):
            use = _atomic(shadow, effect, data[0], where, memory)
        elif detail.kind == "store":
            use = _store(shadow, data[0], detail, where, memory)
        else:
            use = None
            _load(shadow, effect.writes[0], detail, where, memory)
        if use is not None:
            return use
    return None


def _scalar(shadow: Shadow, effect: Effect, data: list[Place]) -> Use | None:
    """Global memory is always defined."""
    for place in data:
        if shadow.read(place).any():
            return Use("a stored value", None, shadow.origin((place,)))
    for word in (word for place in effect.writes for word in place.words()):
        shadow.bits[word // 4] = 0
    return None


def _bytes(where: Destination, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the lanes, and the offsets of each lane's bytes."""
    lanes = np.flatnonzero(where.lanes)
    return lanes, where.offsets[lanes, None] + np.arange(size)


def _index(memory: Memory, lanes: np.ndarray, offsets: np.ndarray):
    """Returns an index of bytes of LDS or of lanes' private memory; None if some are out of bounds,
    which is a fault that the access itself will raise."""
    if len(lanes) and (offsets.min() < 0 or offsets.max() >= memory.bytes.shape[-1]):
        return None
    return offsets if memory.bytes.ndim == 1 else (lanes[:, None], offsets)


def _dword(memory: Memory, lanes: np.ndarray, offsets: np.ndarray, number: int):
    """Returns an index of the dwords that hold the first byte of each lane's dword `number`."""
    first = offsets[:, min(4 * number, offsets.shape[1] - 1)] // 4
    return first if memory.bytes.ndim == 1 else (lanes, first)


def _load(
    shadow: Shadow, place: Place, detail: Access, where: Destination, memory: Memory | None
) -> None:
    half = detail.half
    size = detail.size
    lanes, offsets = _bytes(where, size)
    found = np.zeros((len(lanes), 4 * place.count), np.uint8)
    known = memory is not None and (index := _index(memory, lanes, offsets)) is not None
    if memory is not None and known:
        found[:, :size] = memory.bytes[index]
        if detail.signed and size < 4:
            found[:, size:] = np.where(found[:, size - 1 : size] & 0x80, 0xFF, 0)
    dwords = found.view(np.uint32)
    for number, word in enumerate(place.words()):
        row, origins = shadow.bits[shadow.row(word)], shadow.origins[shadow.row(word)]
        new = dwords[:, number]
        if half is not None:
            old = row[lanes]
            low = (old & np.uint32(0xFFFF_0000)) | (new & np.uint32(0xFFFF))
            high = (old & np.uint32(0xFFFF)) | (new << np.uint32(16))
            new = low if half == "low" else high
        row[lanes] = new
        if memory is not None and known:
            undefined = new != 0
            origins[lanes[undefined]] = memory.origins[_dword(memory, lanes, offsets, number)][
                undefined
            ]


def _store(
    shadow: Shadow, place: Place, detail: Access, where: Destination, memory: Memory | None
) -> Use | None:
    lanes, offsets = _bytes(where, detail.size)
    rows = [shadow.bits[shadow.row(word)][lanes] for word in place.words()]
    if detail.half == "high":
        rows = [row >> np.uint32(16) for row in rows]
    dwords = np.stack(rows, 1) if len(lanes) else np.zeros((0, len(rows)), np.uint32)
    data = np.ascontiguousarray(dwords).view(np.uint8)[:, : detail.size]
    if memory is not None:
        index = _index(memory, lanes, offsets)
        if index is not None:
            memory.bytes[index] = data
            for number, word in enumerate(place.words()):
                undefined = data[:, 4 * number : 4 * number + 4].any(1)
                own = shadow.origins[shadow.row(word)][lanes[undefined]]
                at = _dword(memory, lanes[undefined], offsets[undefined], number)
                memory.origins[at] = own
        return None
    matters = data[:, :12] if detail.size == WIDE_STORE else data
    wrong = np.flatnonzero(matters.any(1))
    if not len(wrong):
        return None
    lane = int(lanes[wrong[0]])
    return Use("a stored value", lane, shadow.origin((place,), lane))


def _atomic(
    shadow: Shadow, effect: Effect, place: Place, where: Destination, memory: Memory | None
) -> Use | None:
    wrong = np.flatnonzero((shadow.read(place) != 0) & where.lanes)
    if len(wrong):
        return Use("an atomic's operand", int(wrong[0]), shadow.origin((place,), int(wrong[0])))
    size = effect.operation.detail.size
    lanes, offsets = _bytes(where, size)
    index = _index(memory, lanes, offsets) if memory is not None else None
    if memory is not None and index is not None and memory.bytes[index].any():
        which = int(np.flatnonzero(memory.bytes[index].any(1))[0])
        origin = int(memory.origins[_dword(memory, lanes, offsets, 0)][which])
        return Use("the memory of an atomic", int(lanes[which]), origin)
    for written in effect.writes:
        shadow.write(written, np.zeros(1, U64), where.lanes, 0)
    return None
