"""ds_read2_b32: two reads of LDS by one row of addresses."""

from __future__ import annotations

from fly_run.emulator import state
from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.access import CHUNK
from fly_run.emulator.semantics.base.emit import Handler, load_row, store_row
from fly_run.emulator.semantics.memory.chunks import Dword, fetch_chunk, pointer
from fly_run.emulator.semantics.memory.transfer import (
    every_active,
    first_lane,
    lanes_of,
    last_lane,
    shortcut,
)


def read_pair(h: Handler) -> None:
    """A shortcut before the two reads of ds_read2_b32, which it skips unless a lane's address is
    outside of the LDS. Operands: the two results, which are not the addresses, and these; the
    immediate and the extra word are the offsets."""
    mask = h.exec_mask()
    skip, some, slow = shortcut(h), f"some{h.fresh()}", f"slow{h.fresh()}"
    h.branch_if(mask.compare("eq", 0), skip, some)
    h.block(skip)
    h.jump(h.op.at(3 * state.OP_SIZE))
    h.block(some)
    apart = _as_runs(h, mask, skip)
    h.block(apart)
    _by_chunks(h, mask, skip, slow)
    h.block(slow)


def _as_runs(h: Handler, mask: Value, done: str) -> str:
    """Both runs of all lanes at once; returns the label for other addresses."""
    origin, address = h.constant("i64", 0), h.operand(2)
    size = h.wave.at(state.LDS_SIZE).load("i64")
    offsets = h.immediate(), h.extra().zext("i64")

    def lane_zero() -> Value:
        """i32: lane 0's address, or what it would be if active; it may be below the LDS."""
        first = first_lane(h, mask)
        return address.at(first << 2).load("i32") - (first << 2).trunc("i32")

    start = lane_zero()
    steps = h.vector("i32", range(0, 4 * h.lanes, 4))
    good = every_active(load_row(address, origin, h.lanes).compare("eq", steps + start), mask)
    first, last = first_lane(h, mask) << 2, last_lane(h, mask) << 2
    for offset in offsets:
        lowest = start.sext("i64") + offset
        good = good & (lowest + first).compare("sge", 0)
        good = good & (lowest + last + 4).compare("sle", size)
    fast, apart = shortcut(h), f"apart{h.fresh()}"
    h.branch_if(good, fast, apart)
    h.block(fast)
    base = h.wave.at(state.LDS_BASE).load("ptr").at(lane_zero().sext("i64"))
    under = lanes_of(mask, h.lanes)
    values = [base.at(offset).load("i32", h.lanes, align=1) for offset in offsets]
    for number, value in enumerate(values):
        store_row(h.operand(number), origin, value, under)
    h.branch(done)
    return apart


def _by_chunks(h: Handler, mask: Value, done: str, slow: str) -> None:
    """Both dwords of 16 lanes at a time, if all addresses are in the LDS."""
    address, origin = h.operand(2), h.constant("i64", 0)
    offsets = h.immediate().trunc("i32"), h.extra()
    room = h.wave.at(state.LDS_SIZE).load("i64") - 4
    rows = load_row(address, origin, h.lanes)
    good = room.compare("sge", 0)
    for offset in offsets:
        # The sum with the offset wraps, as for a single read.
        good = good & every_active((rows + offset).compare("ule", room.trunc("i32")), mask)
    inside = shortcut(h)
    h.branch_if(good, inside, slow)
    h.block(inside)
    base = h.wave.at(state.LDS_BASE).load("ptr")

    def dword(number: int, offset: Value) -> Dword:
        return Dword(h.operand(number), lambda index: pointer(base, index + offset))

    dwords = [dword(number, offset) for number, offset in enumerate(offsets)]

    def fetch(first: Value, lanes: Value) -> None:
        fetch_chunk(h, dwords, load_row(address, first, CHUNK), first, lanes, follow=True)

    h.over_chunks(CHUNK, fetch)
    h.branch(done)
