"""The emitters of loads, stores and atomics of every address space.

Operands: 0 data (the result of a load, or the data to store), 1 vector address or offset,
2 scalar base, 3 data of an atomic. The immediate is the offset.

If the active lanes' addresses are consecutive and the site's last region contains them all, the
access is a few vector moves. Everything else goes through the wave's ADDRESS list: it first holds
the lanes' guest addresses; `fly_resolve_*` checks each byte range and replaces them by host
addresses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fly_run.emulator import state
from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.access import ALIGNED, CHUNK, FLAT, WRITES, Access, Atomic
from fly_run.emulator.semantics.base.emit import ROW, Handler, load_row, store_row
from fly_run.emulator.semantics.base.operation import Operation
from fly_run.emulator.semantics.memory.chunks import (
    RowLoad,
    by_rows,
    dwords_of,
    fetch_chunk,
    gather,
    put_chunk,
)
from fly_run.emulator.semantics.memory.quick_buffer import through_buffer
from fly_run.emulator.semantics.memory.transfer import (
    atomic_lane,
    every_active,
    first_lane,
    lanes_of,
    last_lane,
    load_lane,
    load_run,
    shortcut,
    store_lane,
    store_run,
    store_to,
    whole_wave,
)


def emit_memory(operation: Operation, name: str) -> Handler:
    handler = Handler(name)
    variant = handler.kind
    detail = operation.detail
    mask = handler.exec_mask()
    none, some, done = shortcut(handler), f"some{handler.fresh()}", f"done{handler.fresh()}"
    handler.branch_if(mask.compare("eq", 0), none, some)
    handler.block(none)
    handler.branch(done)
    handler.block(some)
    if isinstance(detail, Access):
        if operation.form in ("global", "flat", "lds"):
            _contiguous(handler, operation.form, variant, detail, mask, done)
        if operation.form == "buffer":
            through_buffer(handler, detail, mask, done)
        slow = ""
        if operation.form == "lds" and detail.size >= 4:
            slow = _within_lds(handler, variant, detail, mask)
        elif operation.form in ("global", "flat") and detail.kind == "load" and detail.size >= 4:
            slow = _within_region(handler, operation.form, variant, detail, mask)
        if slow:
            handler.branch(done)
            handler.block(slow)
        _listed(handler, operation.form, variant, detail, mask)
    else:
        assert isinstance(detail, Atomic)
        if operation.form != "buffer":
            _collect(handler, operation.form, variant, detail.size, mask)
        _resolve(handler, operation.form, detail.size, WRITES | ALIGNED)
        handler.for_some_lanes(
            mask, lambda lane: atomic_lane(handler, detail, lane, operation.form)
        )
    handler.branch(done)
    handler.block(done)
    handler.next()
    return handler


def _listed(h: Handler, form: str, variant: str, access: Access, mask: Value) -> None:
    """The general path: any addresses, through the ADDRESS list."""
    if form != "buffer":
        _collect(h, form, variant, access.size, mask)
    _resolve(h, form, access.size, WRITES if access.kind == "store" else 0)
    if access.kind == "load" and access.size >= 4:
        gather(h, access)
        return
    move = load_lane if access.kind == "load" else store_lane

    def one(lane: Value) -> None:
        move(h, access, lane)

    def put(first: Value, lanes: Value) -> None:
        index = h.wave.at(state.ADDRESS).at(first << 3).load("i64", CHUNK, align=64)
        put_chunk(h, access, h.named("ptr", "null"), index, first, lanes, one)

    if access.dwords > 1:
        h.over_chunks(CHUNK, put)
    else:
        h.for_some_lanes(mask, one)


def _low_and_high(h: Handler, form: str, variant: str) -> tuple[Value, Value | None]:
    """Returns pointers to the address rows: the low dwords, and the high ones if any."""
    row = h.operand(1)
    return row, row.at(ROW) if form in ("global", "flat") and variant == "v" else None


SCALAR_BASES = ("s", "g", "h")  # variants with a base in scalar registers


def _base(h: Handler, form: str, variant: str) -> Value:
    """Returns the i64 that is added to every lane's part of the address."""
    offset = h.immediate()
    if variant in SCALAR_BASES and form in ("global", "flat"):
        return h.operand(2).load("i64") + offset
    return offset


def _unit(variant: str, size: int) -> int:
    """Returns the number of bytes that the vector offset counts."""
    return size if variant == "h" else 1


def _offset(low: Value, variant: str, size: int) -> Value:
    """Returns the i64 that the low dword of a vector address contributes."""
    if variant in ("g", "h"):
        return low.sext("i64") * _unit(variant, size)
    return low.zext("i64")


@dataclass(frozen=True)
class _Place:
    """A lane's address: the lane's number (i64), the dwords of its vector address (`high` if it has
    one), and the whole address (i64; in LDS i32)."""

    lane: Value
    low: Value
    high: Value | None
    address: Value


def _place(h: Handler, form: str, variant: str, size: int, lane: Value) -> _Place:
    row, high_row = _low_and_high(h, form, variant)
    low = row.at(lane << 2).load("i32")
    if form == "lds":
        # An LDS address is 32 bits wide: the sum with the offset wraps.
        return _Place(lane, low, None, low + h.immediate().trunc("i32"))
    address = _base(h, form, variant) + _offset(low, variant, size)
    if high_row is None:
        return _Place(lane, low, None, address)
    high = high_row.at(lane << 2).load("i32")
    return _Place(lane, low, high, address + (high.zext("i64") << 32))


def _contiguous(
    h: Handler, form: str, variant: str, access: Access, mask: Value, done: str
) -> None:
    """The fast paths; falls through if none applies. The values that a path moves are recomputed
    after its test, at no cost: this way an error in them gives a wrong result, which tests detect,
    instead of merely disabling the path."""
    row, high_row = _low_and_high(h, form, variant)
    origin = h.constant("i64", 0)
    lanes = h.lanes
    # Masked moves only pay for dwords; for other sizes all lanes must take part.
    whole = access.size != 4

    def start() -> Value:
        return origin if whole else first_lane(h, mask)

    first = _place(h, form, variant, access.size, start())
    unit = _unit(variant, access.size)
    step = access.size // unit
    steps = h.vector("i32", (step * lane for lane in range(lanes)))
    lows = load_row(row, origin, lanes)

    def all_active(good: Value, of: _Place) -> Value:
        if high_row is not None:
            assert of.high is not None
            good = good & load_row(high_row, origin, lanes).compare("eq", of.high)
        return every_active(good, mask)

    lane_zero = first.low - (first.lane * step).trunc("i32")
    follow = all_active(lows.compare("eq", steps + lane_zero), first)
    count = whole_wave(h, mask, lanes) if whole else None
    if count is not None:
        follow = follow & count.compare("ne", 0)
        length = count * access.size
    else:
        length = (last_lane(h, mask) - first.lane + 1) * access.size
    if form != "lds":
        # The low dwords must not wrap: only then do equal high dwords imply consecutive addresses.
        if variant in ("g", "h"):
            last = first.low.sext("i64") + (length if unit == 1 else length.binary("udiv", unit))
            follow = follow & last.compare("sle", 1 << 31)
        else:
            follow = follow & (first.low.zext("i64") + length).compare("ule", 1 << 32)
    go, other = shortcut(h), f"other{h.fresh()}"
    h.branch_if(follow, go, other)
    h.block(go)
    host, inside = host_of(h, form, first.address, length)
    move, slow = shortcut(h), f"slow{h.fresh()}"
    h.branch_if(inside, move, slow)
    h.block(move)
    place = _place(h, form, variant, access.size, start())
    before = (place.lane * access.size).trunc(place.address.element)
    run = host(place.address - before)
    if access.kind == "load":
        load_run(h, access, run, mask, count, lanes, form == "lds")
    else:
        store_run(h, access, run, mask, count, lanes, form == "lds")
    h.branch(done)
    h.block(other)
    if access.kind == "load" and access.size >= 4:
        first = _place(h, form, variant, access.size, first_lane(h, mask))
        same = all_active(lows.compare("eq", first.low.splat(lanes)), first)
        one = shortcut(h)
        h.branch_if(same, one, slow)
        h.block(one)
        host, inside = host_of(h, form, first.address, h.constant("i64", access.size))
        spread = shortcut(h)
        h.branch_if(inside, spread, slow)
        h.block(spread)
        source = host(_place(h, form, variant, access.size, first_lane(h, mask)).address)
        data = [source.at(4 * n).load("i32", align=1) for n in range(access.dwords)]
        under = lanes_of(h.exec_mask(), lanes)
        for n, value in enumerate(data):
            store_row(h.operand(0).at(n * ROW), origin, value.splat(lanes), under)
        h.branch(done)
    else:
        h.branch(slow)
    h.block(slow)


def host_of(
    h: Handler, form: str, address: Value, length: Value
) -> tuple[Callable[[Value], Value], Value]:
    """Returns a function from guest addresses near `address` to host pointers, and whether `length`
    bytes from there, one or more, lie in one region that permits this access."""
    if form == "lds":
        size = h.wave.at(state.LDS_SIZE).load("i64")
        base = h.wave.at(state.LDS_BASE).load("ptr")
        return base.at, address.zext("i64").compare("ult", starts(h, size, length))
    region = h.op.at(state.OP_LINK).load_shared("ptr")
    offset = address - region.at(state.REGION_LOW).load("i64")
    size = region.at(state.REGION_LENGTH).load("i64")

    def host(place: Value) -> Value:
        moved = place + region.at(state.REGION_DELTA).load("i64")
        return moved.convert("inttoptr", "ptr")

    return host, offset.compare("ult", starts(h, size, length))


def starts(h: Handler, size: Value, length: Value | int) -> Value:
    """Returns the number of offsets in `size` bytes, from the first, at which `length` bytes may
    start; 0 if none. `length` is at least 1."""
    return h.intrinsic("llvm.usub.sat", size, size.like(length - 1))


def _within_lds(h: Handler, variant: str, access: Access, mask: Value) -> str:
    """Handles addresses in LDS; falls through to the list if one is outside."""
    offsets = h.operand(1)
    size = h.wave.at(state.LDS_SIZE).load("i64")
    room = size - access.size
    origin = h.constant("i64", 0)
    constant = h.immediate().trunc("i32")
    inside = (load_row(offsets, origin, h.lanes) + constant).compare("ule", room.trunc("i32"))
    all_inside = every_active(inside, mask) & room.compare("sge", 0)

    good, slow = f"inside{h.fresh()}", f"outside{h.fresh()}"
    h.branch_if(all_inside, good, slow)
    h.block(good)
    base = h.wave.at(state.LDS_BASE).load("ptr")
    if access.kind == "load":
        dwords = dwords_of(h, access, base)

        def fetch(first: Value, lanes: Value) -> None:
            index = load_row(offsets, first, CHUNK) + constant
            fetch_chunk(h, dwords, index, first, lanes, access.dwords == 1, base)

        h.over_chunks(CHUNK, fetch)
        return slow

    def one(lane: Value) -> None:
        store_to(h, access, base.at(offsets.at(lane << 2).load("i32") + constant), lane)

    def put(first: Value, lanes: Value) -> None:
        index = load_row(offsets, first, CHUNK) + constant
        put_chunk(h, access, base, index, first, lanes, one)

    if access.dwords > 1:
        h.over_chunks(CHUNK, put)
    else:
        h.for_some_lanes(mask, one)
    return slow


def _within_region(h: Handler, form: str, variant: str, access: Access, mask: Value) -> str:
    """Loads from the site's last region; falls through to the list if an address is outside."""
    row, high_row = _low_and_high(h, form, variant)
    region = h.op.at(state.OP_LINK).load_shared("ptr")
    begin = region.at(state.REGION_LOW).load("i64")
    length = region.at(state.REGION_LENGTH).load("i64")
    base = _base(h, form, variant) - begin

    def offsets(first: Value, lanes: int) -> Value:
        offset = _offset(load_row(row, first, lanes), variant, access.size) + base
        if high_row is not None:
            offset = offset + (load_row(high_row, first, lanes).zext("i64") << 32)
        return offset

    every = offsets(h.constant("i64", 0), h.lanes)
    all_inside = every_active(every.compare("ult", starts(h, length, access.size)), mask)
    good, slow = shortcut(h), f"outside{h.fresh()}"
    h.branch_if(all_inside, good, slow)
    h.block(good)
    host = (begin + region.at(state.REGION_DELTA).load("i64")).convert("inttoptr", "ptr")
    dwords = dwords_of(h, access, host)
    if access.dwords == 1:
        done, chunks = f"rows{h.fresh()}", f"chunks{h.fresh()}"

        def move(load: RowLoad, heads: list[Value]) -> None:
            for number, head in enumerate(heads):
                place = h.constant("i64", number * CHUNK)
                store_row(h.operand(0), place, load(host.at(head)), None)

        by_rows(h, every, mask, done, move)
        h.branch(chunks)
        h.block(done)
        h.next()
        h.block(chunks)

    def fetch(first: Value, lanes: Value) -> None:
        fetch_chunk(h, dwords, offsets(first, CHUNK), first, lanes, access.dwords == 1, host)

    h.over_chunks(CHUNK, fetch)
    return slow


def _collect(h: Handler, form: str, variant: str, size: int, mask: Value) -> None:
    """Writes the lanes' addresses, up to the last active one's, to the ADDRESS list. Those in LDS
    and in private memory are 32 bits wide, and their sums wrap."""
    low, high = _low_and_high(h, form, variant)
    base = _base(h, form, variant)
    narrow = form in ("scratch", "lds")
    if narrow:
        base = base.trunc("i32")
    if form == "scratch":
        base = h.operand(2).load("i32") + base
    list_of, last = h.wave.at(state.ADDRESS), last_lane(h, mask)

    def turn(carried: list[Value]) -> tuple[list[Value], Value]:
        (first,) = carried
        if form == "scratch" and variant == "s":
            address = base.splat(CHUNK).zext("i64")
        elif narrow:
            address = (load_row(low, first, CHUNK) + base).zext("i64")
        else:
            address = _offset(load_row(low, first, CHUNK), variant, size) + base
            if high is not None:
                address = address + (load_row(high, first, CHUNK).zext("i64") << 32)
        list_of.at(first << 3).store(address, align=64)
        after = first + CHUNK
        return [after], after.compare("ule", last)

    h.loop([h.constant("i64", 0)], turn)


def _resolve(h: Handler, form: str, size: int, flags: int) -> None:
    """Replaces the ADDRESS list by host addresses, or leaves with a fault."""
    good = _call_resolver(h, form, size, flags)
    h.when(~good, lambda: h.stop(state.STATUS_FAULT, h.op))


def _call_resolver(h: Handler, form: str, size: int, flags: int) -> Value:
    """Returns an i1: whether the ADDRESS list now holds host addresses; if not, a fault is
    recorded."""
    space = {"flat": "global"}.get(form, form)
    if form == "flat":
        flags |= FLAT
    bounded = form in ("scratch", "lds")
    last = h.constant("i1", flags & ALIGNED) if bounded else h.constant("i64", flags)
    return h.call(f"fly_resolve_{space}", "i1", h.wave, h.op, h.constant("i64", size), last)
