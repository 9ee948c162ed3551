"""The emitters of loads, stores and atomics of every address space.

Operands: 0 data (the result of a load, else what is stored), 1 vector address or offset,
2 scalar base, 3 data of an atomic. The immediate is the offset.

Where the active lanes' addresses follow each other, and the last region of this site holds them
all, the access is a few vector moves. Everything else goes through the wave's ADDRESS list: the
lanes' guest addresses go in, `fly_resolve_*` checks each byte range and puts host addresses there.
"""

from __future__ import annotations

from fly_run.emulator import state
from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.access import ALIGNED, CHUNK, FLAT, WRITES, Access, Atomic
from fly_run.emulator.semantics.emit import LANES, ROW, Handler, load_row, store_row
from fly_run.emulator.semantics.operation import Operation
from fly_run.emulator.semantics.transfer import (
    atomic_lane,
    fetch_chunk,
    gather,
    load_lane,
    load_run,
    shortcut,
    store_lane,
    store_run,
)


def emit_memory(operation: Operation, name: str) -> Handler:
    handler = Handler(name)
    variant = name.rpartition(".")[2]
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
        if operation.form == "lds" and detail.size >= 4:
            _within_lds(handler, detail, mask, done)
        if operation.form != "buffer":
            _collect(handler, operation.form, variant, detail.size)
        _resolve(handler, operation.form, detail.size, WRITES if detail.kind == "store" else 0)
        if detail.kind == "load" and detail.size >= 4:
            gather(handler, detail)
        else:
            move = load_lane if detail.kind == "load" else store_lane
            handler.for_lanes(mask, lambda lane: move(handler, detail, lane))
    else:
        assert isinstance(detail, Atomic)
        if operation.form != "buffer":
            _collect(handler, operation.form, variant, detail.size)
        _resolve(handler, operation.form, detail.size, WRITES | ALIGNED)
        handler.for_lanes(mask, lambda lane: atomic_lane(handler, detail, lane, operation.form))
    handler.branch(done)
    handler.block(done)
    handler.next()
    return handler


def _low_and_high(h: Handler, form: str, variant: str) -> tuple[Value, Value | None]:
    """Pointers to the rows that make the address: its low dwords, and its high ones if any."""
    row = h.operand(1)
    return row, row.at(ROW) if form in ("global", "flat") and variant == "v" else None


def _base(h: Handler, form: str, variant: str) -> Value:
    """i64: what is added to every lane's part of the address."""
    offset = h.immediate()
    if variant == "s" and form == "global":
        return h.operand(2).load("i64") + offset
    return offset


def _contiguous(
    h: Handler, form: str, variant: str, access: Access, mask: Value, done: str
) -> None:
    """The fast ways; falls through where none applies."""
    low, high = _low_and_high(h, form, variant)
    zero = h.constant("i1", 0)
    first = h.intrinsic("llvm.cttz", mask, zero, result=mask)
    last = 63 - h.intrinsic("llvm.ctlz", mask, zero, result=mask)
    origin = h.constant("i64", 0)
    lows = load_row(low, origin, LANES)
    low_first = low.at(first << 2).load("i32")
    # i1 lanes: the high dword is the first lane's.
    alike = None
    if form == "lds":
        # An LDS address is 32 bits wide: the sum with the offset wraps around.
        offset = h.immediate().trunc("i32")
        lows, low_first = lows + offset, low_first + offset
        base = low_first.zext("i64")
    else:
        base = _base(h, form, variant) + low_first.zext("i64")
    if high is not None:
        high_first = high.at(first << 2).load("i32")
        alike = load_row(high, origin, LANES).compare("eq", high_first)
        base = base + (high_first.zext("i64") << 32)
    steps = h.vector("i32", (access.size * lane for lane in range(LANES)))
    span = (last - first) * access.size
    start = low_first - (first * access.size).trunc("i32")

    def all_active(lanes: Value) -> Value:
        bits = lanes if alike is None else lanes & alike
        return (bits.cast("i64", 0) & mask).compare("eq", mask)

    follow = all_active(lows.compare("eq", steps + start))
    if form != "lds":
        # The low dwords must not wrap around: then equal high dwords mean what they say.
        follow = follow & (low_first.zext("i64") + span + access.size).compare("ule", 1 << 32)
    if access.dwords > 1 or access.size < 4:
        # Only where all lanes take part: a masked move of such data costs more than it saves.
        follow = follow & mask.compare("eq", -1)
    go, other = shortcut(h), f"other{h.fresh()}"
    h.branch_if(follow, go, other)
    h.block(go)
    host, inside = host_of(h, form, base, span + access.size)
    move, slow = shortcut(h), f"slow{h.fresh()}"
    h.branch_if(inside, move, slow)
    h.block(move)
    lane_zero = host.at(h.constant("i64", 0) - first * access.size)
    if access.kind == "load":
        load_run(h, access, lane_zero, mask, form == "lds")
    else:
        store_run(h, access, lane_zero, mask, form == "lds")
    h.branch(done)
    h.block(other)
    if access.kind == "load" and access.size >= 4:
        same = all_active(lows.compare("eq", low_first.splat(LANES)))
        one = shortcut(h)
        h.branch_if(same, one, slow)
        h.block(one)
        host, inside = host_of(h, form, base, h.constant("i64", access.size))
        spread = shortcut(h)
        h.branch_if(inside, spread, slow)
        h.block(spread)
        data = [host.at(4 * n).load("i32", align=1) for n in range(access.dwords)]
        lanes = h.exec_mask().cast("i1", LANES)
        for n, value in enumerate(data):
            store_row(h.operand(0).at(n * ROW), origin, value.splat(LANES), lanes)
        h.branch(done)
    else:
        h.branch(slow)
    h.block(slow)


def host_of(h: Handler, form: str, base: Value, length: Value) -> tuple[Value, Value]:
    """The host pointer of guest address `base`, and whether `length` bytes from there on lie in
    one place that this access may use."""
    if form == "lds":
        size = h.wave.at(state.LDS_SIZE).load("i64")
        pointer = h.wave.at(state.LDS_BASE).load("ptr").at(base)
        return pointer, base.compare("ult", size) & length.compare("ule", size - base)
    region = h.op.at(state.OP_LINK).load_shared("ptr")
    offset = base - region.at(state.REGION_LOW).load("i64")
    size = region.at(state.REGION_LENGTH).load("i64")
    inside = offset.compare("ult", size) & length.compare("ule", size - offset)
    address = base + region.at(state.REGION_DELTA).load("i64")
    return address.convert("inttoptr", "ptr"), inside


def read_pair(h: Handler) -> None:
    """A short cut before the two reads of ds_read2_b32, which it skips: both runs of all lanes
    in LDS at once. Operands: the two results, the address; the immediate and the extra word are
    the offsets."""
    mask, zero = h.exec_mask(), h.constant("i1", 0)
    slow = f"slow{h.fresh()}"
    some = f"some{h.fresh()}"
    h.branch_if(mask.compare("ne", 0), some, slow)
    h.block(some)
    origin, address = h.constant("i64", 0), h.operand(2)
    first = h.intrinsic("llvm.cttz", mask, zero, result=mask)
    last = 63 - h.intrinsic("llvm.ctlz", mask, zero, result=mask)
    start = address.at(first << 2).load("i32") - (first << 2).trunc("i32")
    steps = h.vector("i32", range(0, 4 * LANES, 4))
    follow = load_row(address, origin, LANES).compare("eq", steps + start)
    bits = follow.cast("i64", 0)
    size = h.wave.at(state.LDS_SIZE).load("i64")
    offsets = h.immediate(), h.extra().zext("i64")
    lowest = start.sext("i64")
    good = (bits & mask).compare("eq", mask)
    for offset in offsets:
        # Signed: lane 0 may stand before the LDS where it takes no part.
        low, high = lowest + offset + (first << 2), lowest + offset + (last << 2) + 4
        good = good & low.compare("sge", 0) & high.compare("sle", size)
    fast = shortcut(h)
    h.branch_if(good, fast, slow)
    h.block(fast)
    base = h.wave.at(state.LDS_BASE).load("ptr").at(lowest)
    lanes = mask.cast("i1", LANES)
    values = [base.at(offset).load("i32", LANES, align=1) for offset in offsets]
    for number, value in enumerate(values):
        store_row(h.operand(number), origin, value, lanes)
    h.jump(h.op.at(3 * state.OP_SIZE))
    h.block(slow)


def _within_lds(h: Handler, access: Access, mask: Value, done: str) -> None:
    """Any addresses that all lie in LDS; falls through where one does not."""
    offsets = h.operand(1)
    size = h.wave.at(state.LDS_SIZE).load("i64")
    room = size - access.size
    origin = h.constant("i64", 0)
    constant = h.immediate().trunc("i32")
    lows = load_row(offsets, origin, LANES) + constant
    inside = lows.compare("ule", room.trunc("i32"))
    all_inside = (inside.cast("i64", 0) & mask).compare("eq", mask) & room.compare("sge", 0)
    move, slow = shortcut(h), f"outside{h.fresh()}"
    h.branch_if(all_inside, move, slow)
    h.block(move)
    base = h.wave.at(state.LDS_BASE).load("ptr")
    if access.kind == "load":

        def fetch(first: Value, lanes: Value) -> None:
            index = load_row(offsets, first, CHUNK) + constant
            fetch_chunk(h, access, base, index, first, lanes)

        h.over_chunks(CHUNK, fetch)
    else:

        def put(lane: Value) -> None:
            host = base.at((offsets.at(lane << 2).load("i32") + constant).zext("i64"))
            source = h.operand(0).at(lane << 2)
            for n in range(access.dwords):
                host.at(4 * n).store(source.at(n * ROW).load("i32"), align=1)

        h.for_lanes(mask, put)
    h.branch(done)
    h.block(slow)


def _collect(h: Handler, form: str, variant: str, size: int) -> None:
    """Writes every lane's address to the ADDRESS list."""
    low, high = _low_and_high(h, form, variant)
    base = _base(h, form, variant)
    if form == "scratch":
        base = (h.operand(2).load("i32").zext("i64") + base) & 0xFFFFFFFF
    list_of = h.wave.at(state.ADDRESS)

    def turn(carried: list[Value]) -> tuple[list[Value], Value]:
        (first,) = carried
        if form == "scratch" and variant == "s":
            address = base.splat(CHUNK)
        else:
            lows = load_row(low, first, CHUNK)
            address = lows.zext("i64") + base
            if form in ("scratch", "lds"):
                # These addresses are 32 bits wide: the sum wraps around there.
                address = address & 0xFFFFFFFF
            if high is not None:
                address = address + (load_row(high, first, CHUNK).zext("i64") << 32)
        list_of.at(first << 3).store(address, align=64)
        after = first + CHUNK
        return [after], after.compare("ult", LANES)

    h.loop([h.constant("i64", 0)], turn)


def _resolve(h: Handler, form: str, size: int, flags: int) -> None:
    """Turns the ADDRESS list into host addresses, or leaves with a fault."""
    space = {"flat": "global"}.get(form, form)
    if form == "flat":
        flags |= FLAT
    good = h.call(
        f"fly_resolve_{space}",
        "i1",
        h.wave,
        h.op,
        h.constant("i64", size),
        h.constant("i64", flags),
    )
    h.when(~good, lambda: h.stop(state.STATUS_FAULT, h.op))
