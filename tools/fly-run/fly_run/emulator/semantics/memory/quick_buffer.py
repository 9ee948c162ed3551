"""The usual accesses through a buffer resource: a raw one, whose lanes in range are in the site's
last region. `resolve_buffer` has the rules, and handles everything else lane by lane.

Lanes that are out of range are usual too: kernels switch lanes off by their offsets.
"""

from __future__ import annotations

from fly_run.emulator import state
from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.access import (
    BUFFER_INDEX,
    BUFFER_OFFSET,
    BUFFER_WIDE,
    CHUNK,
    Access,
)
from fly_run.emulator.semantics.base.emit import ROW, Handler, load_row, store_row
from fly_run.emulator.semantics.memory.chunks import dwords_of, fetch_chunk, put_chunk
from fly_run.emulator.semantics.memory.resolve_buffer import Resource
from fly_run.emulator.semantics.memory.transfer import (
    every_active,
    first_lane,
    lanes_of,
    load_from,
    load_run,
    shortcut,
    store_run,
    store_to,
    whole_wave,
)

MOST = 0xFFFF_FFFF  # the greatest offset of a lane


class _Offsets:
    """The lanes' offsets: those of a row, or 0."""

    def __init__(self, h: Handler):
        self._h = h
        self._row = h.operand(1)
        self._given = (h.extra() & BUFFER_OFFSET).compare("ne", 0)

    def at(self, first: Value, lanes: int) -> Value:
        """Returns the offsets of some lanes, an i32 each."""
        return self._given.select(load_row(self._row, first, lanes), 0)

    def of(self, lane: Value) -> Value:
        """Returns the offset of a lane, an i64."""
        return self._given.select(self._row.at(lane << 2).load("i32").zext("i64"), 0)


def through_buffer(h: Handler, access: Access, mask: Value, done: str) -> None:
    """Emits the access, which ends at the label `done`; falls through to the general path."""
    origin = h.constant("i64", 0)
    wide = (h.extra() & BUFFER_WIDE).compare("ne", 0)
    resource = Resource.read(h.operand(2), wide)
    special = resource.swizzled | resource.adds_lane | resource.within_stride | resource.unknown
    special = special | resource.base.lshr(32).compare("eq", state.SCRATCH_BUFFER >> 32)
    constant, scalar = h.immediate(), h.operand(3).load("i32").zext("i64")
    usual = ~special & (h.extra() & BUFFER_INDEX).compare("eq", 0) & constant.compare("sge", 0)
    region = h.op.at(state.OP_LINK).load_shared("ptr")
    # From the address of a lane's offset 0: bytes to the end of the range and of the region.
    begin = resource.base + scalar + constant
    skipped = begin - region.at(state.REGION_LOW).load("i64")
    length = region.at(state.REGION_LENGTH).load("i64")
    in_range = h.intrinsic("llvm.usub.sat", resource.records, constant)
    offsets = _Offsets(h)
    rows = offsets.at(origin, h.lanes)

    def fitting(bytes_left: Value) -> Value:
        """Returns the lanes (i64) whose access ends within so many bytes."""
        last = h.intrinsic("llvm.umin", bytes_left - access.size, bytes_left.like(MOST))
        fits = rows.compare("ule", last.trunc("i32")).cast(f"i{h.lanes}", 0)
        fits = fits if h.lanes == 64 else fits.zext("i64")
        return bytes_left.compare("uge", access.size).select(fits, 0)

    inside = fitting(in_range) & mask
    first_outside = h.intrinsic("llvm.umin", in_range, in_range.like(MOST)).trunc("i32")
    beyond = rows.compare("uge", first_outside).cast(f"i{h.lanes}", 0)
    beyond = beyond if h.lanes == 64 else beyond.zext("i64")
    outside = in_range.compare("ule", MOST).select(beyond & mask, 0)
    mapped = skipped.compare("ule", length).select(fitting(length - skipped), 0)
    good = usual & (inside | outside).compare("eq", mask) & (inside & ~mapped).compare("eq", 0)
    quick, slow = shortcut(h), f"slow{h.fresh()}"
    h.branch_if(good, quick, slow)
    h.block(quick)
    host = (begin + region.at(state.REGION_DELTA).load("i64")).convert("inttoptr", "ptr")
    h.when(inside.compare("ne", 0), lambda: _move(h, access, host, offsets, rows, inside))
    if access.kind == "load":
        h.when(outside.compare("ne", 0), lambda: _clear(h, access, outside))
    h.branch(done)
    h.block(slow)


def _move(
    h: Handler, access: Access, host: Value, offsets: _Offsets, rows: Value, mask: Value
) -> None:
    """Moves the data of the lanes of `mask`, at least one, from or to `host` plus their offsets."""
    after = f"moved{h.fresh()}"
    first = first_lane(h, mask)
    steps = h.vector("i32", (access.size * lane for lane in range(h.lanes)))
    # An offset of lane 0 below 0 does not matter, but it must not wrap.
    zero = offsets.of(first) - first * access.size
    run = every_active(rows.compare("eq", steps + zero.trunc("i32")), mask)
    run = run & (zero + access.size * h.lanes).compare("sle", 1 << 32)
    count = None
    if access.size != 4:
        count = whole_wave(h, mask, h.lanes)
        run = run & count.compare("ne", 0)
    quick, other = shortcut(h), f"other{h.fresh()}"
    h.branch_if(run, quick, other)
    h.block(quick)
    move_run = load_run if access.kind == "load" else store_run
    move_run(
        h, access, host.at(offsets.of(first) - first * access.size), mask, count, h.lanes, False
    )
    h.branch(after)
    h.block(other)
    if access.kind == "load" and access.size >= 4:
        dwords = dwords_of(h, access, host)

        def fetch(first: Value, lanes: Value) -> None:
            index = offsets.at(first, CHUNK).zext("i64")
            fetch_chunk(h, dwords, index, first, lanes, access.dwords == 1, host)

        h.over_chunks(CHUNK, fetch, mask)
    else:
        move = load_from if access.kind == "load" else store_to

        def one(lane: Value) -> None:
            move(h, access, host.at(offsets.of(lane)), lane)

        def put(first: Value, lanes: Value) -> None:
            index = offsets.at(first, CHUNK).zext("i64")
            put_chunk(h, access, host, index, first, lanes, one)

        if access.dwords > 1:
            h.over_chunks(CHUNK, put, mask)
        else:
            h.for_lanes(mask, one)
    h.branch(after)
    h.block(after)


def _clear(h: Handler, access: Access, mask: Value) -> None:
    """Sets the results of lanes to 0, or the halves of registers that they are."""
    origin, under = h.constant("i64", 0), lanes_of(mask, h.lanes)
    kept = {None: 0, "low": 0xFFFF0000, "high": 0xFFFF}[access.half]
    for number in range(access.dwords):
        row = h.operand(0).at(number * ROW)
        store_row(row, origin, load_row(row, origin, h.lanes) & kept, under)
