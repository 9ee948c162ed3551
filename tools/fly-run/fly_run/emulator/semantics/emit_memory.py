"""The emitters of loads, stores and atomics of every address space.

Operands: 0 data (the result of a load, else what is stored), 1 vector address or offset,
2 scalar base, 3 data of an atomic that returns. The immediate is the offset.

Where the active lanes' addresses follow each other, and the last region of this site holds them
all, the access is a few vector moves. Everything else goes through the wave's ADDRESS list: the
lanes' guest addresses go in, `fly_resolve_*` checks each byte range and puts host addresses there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fly_run.emulator import state
from fly_run.emulator.irgen import Value, void
from fly_run.emulator.semantics.emit import (
    LANES,
    ROW,
    Handler,
    load_row,
    read_vector,
    store_row,
    write_vector,
)
from fly_run.emulator.semantics.operation import Operation

WRITES, FLAT, ALIGNED = 1, 2, 4  # flags of the resolvers
CHUNK = 16


@dataclass(frozen=True)
class Access:
    """What a load or store moves. `half` is where in a register a 16-bit datum goes or comes
    from: None (the whole register), "low" or "high" (the other half is kept)."""

    kind: str  # "load" or "store"
    size: int  # bytes
    signed: bool = False
    half: str | None = None

    @property
    def dwords(self) -> int:
        return max(1, self.size // 4)


@dataclass(frozen=True)
class Atomic:
    """`combine(handler, old, data)` gives the new value of a scalar `element`; with `compares`
    the data is (new, expected): the new value is stored where the old one equals `expected`."""

    element: str
    combine: Callable[[Handler, Value, Value], Value]
    returns: bool
    compares: bool = False

    @property
    def size(self) -> int:
        return 8 if self.element in ("i64", "double") else 4


def emit_memory(operation: Operation, name: str) -> Handler:
    handler = Handler(name)
    variant = name.rpartition(".")[2]
    detail = operation.detail
    mask = handler.exec_mask()
    done = f"done{handler.fresh()}"
    start = f"start{handler.fresh()}"
    handler.branch_if(mask.compare("ne", 0), start, done)
    handler.block(start)
    if isinstance(detail, Access):
        if operation.form in ("global", "flat", "lds"):
            _contiguous(handler, operation.form, variant, detail, mask, done)
        if operation.form == "lds" and detail.size >= 4:
            _within_lds(handler, detail, mask, done)
        _collect(handler, operation.form, variant, detail.size)
        _resolve(handler, operation.form, detail.size, WRITES if detail.kind == "store" else 0)
        if detail.kind == "load" and detail.size >= 4:
            _gather(handler, detail)
        else:
            move = _load_lane if detail.kind == "load" else _store_lane
            handler.for_lanes(mask, lambda lane: move(handler, detail, lane))
    else:
        assert isinstance(detail, Atomic)
        _collect(handler, operation.form, variant, detail.size)
        _resolve(handler, operation.form, detail.size, WRITES | ALIGNED)
        shared = operation.form == "lds"
        handler.for_lanes(mask, lambda lane: _atomic_lane(handler, detail, lane, shared))
    handler.branch(done)
    handler.block(done)
    handler.next()
    return handler


# -- addresses --------------------------------------------------------------------------------


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

    # The low dwords must not wrap around: then equal high dwords mean what they say.
    straight = (low_first.zext("i64") + span + access.size).compare("ule", 1 << 32)
    follow = all_active(lows.compare("eq", steps + start)) & straight
    if access.dwords > 1 or access.size < 4:
        # Only where all lanes take part: a masked move of such data costs more than it saves.
        follow = follow & mask.compare("eq", -1)
    go, other = f"fast{h.fresh()}", f"other{h.fresh()}"
    h.branch_if(follow, go, other)
    h.block(go)
    host, inside = _host(h, form, base, span + access.size)
    move, slow = f"move{h.fresh()}", f"slow{h.fresh()}"
    h.branch_if(inside, move, slow)
    h.block(move)
    lane_zero = host.at(h.constant("i64", 0) - first * access.size)
    if access.kind == "load":
        _load_run(h, access, lane_zero, mask)
    else:
        _store_run(h, access, lane_zero, mask)
    h.branch(done)
    h.block(other)
    if access.kind == "load" and access.size >= 4:
        same = all_active(lows.compare("eq", low_first.splat(LANES)))
        one = f"one{h.fresh()}"
        h.branch_if(same, one, slow)
        h.block(one)
        host, inside = _host(h, form, base, h.constant("i64", access.size))
        spread = f"spread{h.fresh()}"
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


def _host(h: Handler, form: str, base: Value, length: Value) -> tuple[Value, Value]:
    """The host pointer of guest address `base`, and whether `length` bytes from there on lie in
    one place that this access may use."""
    if form == "lds":
        size = h.wave.at(state.LDS_SIZE).load("i64")
        pointer = h.wave.at(state.LDS_BASE).load("ptr").at(base)
        return pointer, base.compare("ult", size) & length.compare("ule", size - base)
    region = h.op.at(state.OP_LINK).load("ptr")
    offset = base - region.at(state.REGION_LOW).load("i64")
    size = region.at(state.REGION_LENGTH).load("i64")
    inside = offset.compare("ult", size) & length.compare("ule", size - offset)
    address = base + region.at(state.REGION_DELTA).load("i64")
    return address.convert("inttoptr", "ptr"), inside


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
    move, slow = f"inside{h.fresh()}", f"outside{h.fresh()}"
    h.branch_if(all_inside, move, slow)
    h.block(move)
    base = h.wave.at(state.LDS_BASE).load("ptr")
    if access.kind == "load":

        def fetch(first: Value, lanes: Value) -> None:
            index = load_row(offsets, first, CHUNK) + constant
            _fetch_chunk(h, access, base, index, first, lanes)

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


def _gather(h: Handler, access: Access) -> None:
    """Loads dwords from the host addresses in the ADDRESS list."""
    nowhere = h.named("ptr", "null")

    def fetch(first: Value, lanes: Value) -> None:
        address = h.wave.at(state.ADDRESS).at(first << 3).load("i64", CHUNK, align=64)
        _fetch_chunk(h, access, nowhere, address, first, lanes)

    h.over_chunks(CHUNK, fetch)


def _fetch_chunk(
    h: Handler, access: Access, base: Value, index: Value, first: Value, lanes: Value
) -> None:
    """Loads a chunk's dwords from `base` plus each lane's `index`, which have been checked.

    Real kernels read runs and single elements in groups of 16 lanes (rows of tiles, a broadcast
    element): those are one move. A processor's gather costs many times that.
    """
    head = index.function.value(
        index.element, 0, f"extractelement {index.type} {index.name}, i32 0"
    )
    active = lanes.cast(f"i{CHUNK}", 0)
    rows = [h.operand(0).at(n * ROW) for n in range(access.dwords)]
    end = f"chunk{h.fresh()}"

    def matches(steps: Value) -> Value:
        same = index.compare("eq", head.splat(CHUNK) + steps)
        return (same.cast(f"i{CHUNK}", 0) & active).compare("eq", active)

    def case(condition: Value, work: Callable[[], list[Value]]) -> None:
        def run() -> None:
            # The address register may be among the results: all is loaded before any is stored.
            for row, value in zip(rows, work(), strict=True):
                store_row(row, first, value, None)
            h.branch(end)

        h.when(condition, run)

    # Where lane 0 is not active its address means nothing: then it only counts if another has it.
    start = base.at(head.zext("i64") if head.element == "i32" else head)

    def broadcast() -> list[Value]:
        return [
            lanes.select(
                start.at(4 * n).load("i32", align=1).splat(CHUNK), load_row(row, first, CHUNK)
            )
            for n, row in enumerate(rows)
        ]

    h.when(active.compare("eq", 0), lambda: h.branch(end))
    case(matches(index.like(0)), broadcast)
    if access.dwords == 1:
        steps = h.vector(index.element, range(0, 4 * CHUNK, 4))
        case(matches(steps), lambda: [_masked_load(h, start, rows[0], first, lanes)])
    pointers = [
        h.value(
            "ptr",
            CHUNK,
            f"getelementptr i8, ptr {base.at(4 * n).name}, {index.type} {index.name}",
        )
        for n in range(access.dwords)
    ]
    values = [
        _gather_dwords(h, places, row, first, lanes)
        for places, row in zip(pointers, rows, strict=True)
    ]
    for row, value in zip(rows, values, strict=True):
        store_row(row, first, value, None)
    h.branch(end)
    h.block(end)


def _masked_load(h: Handler, start: Value, row: Value, first: Value, lanes: Value) -> Value:
    old = load_row(row, first, lanes.lanes)
    name = f"llvm.masked.load.v{lanes.lanes}i32.p0"
    h.declarations.add(f"declare {old.type} @{name}(ptr, {lanes.type}, {old.type})")
    text = (
        f"call {old.type} @{name}(ptr align 1 {start.name}, {lanes.type} {lanes.name},"
        f" {old.type} {old.name})"
    )
    return h.value("i32", lanes.lanes, text)


def _gather_dwords(
    h: Handler, pointers: Value, row: Value, first: Value, lanes: Value
) -> Value:
    """i32 from each active lane's pointer; other lanes keep what the row has."""
    old = load_row(row, first, CHUNK)
    name = f"llvm.masked.gather.v{CHUNK}i32.v{CHUNK}p0"
    h.declarations.add(f"declare {old.type} @{name}({pointers.type}, {lanes.type}, {old.type})")
    text = (
        f"call {old.type} @{name}({pointers.type} align 1 {pointers.name},"
        f" {lanes.type} {lanes.name}, {old.type} {old.name})"
    )
    return h.value("i32", CHUNK, text)


def _collect(h: Handler, form: str, variant: str, size: int) -> None:
    """Writes every lane's address to the ADDRESS list."""
    low, high = _low_and_high(h, form, variant)
    base = _base(h, form, variant)
    if form in ("scratch", "buffer"):
        base = _private_base(h, form, size)
    list_of = h.wave.at(state.ADDRESS)

    def turn(carried: list[Value]) -> tuple[list[Value], Value]:
        (first,) = carried
        if form in ("scratch", "buffer") and variant == "s":
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


def _private_base(h: Handler, form: str, size: int) -> Value:
    """The scalar part of a scratch or buffer address."""
    if form == "scratch":
        return (h.operand(2).load("i32").zext("i64") + h.immediate()) & 0xFFFFFFFF
    return h.immediate()


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


# -- data -------------------------------------------------------------------------------------


def _load_run(h: Handler, access: Access, host: Value, mask: Value) -> None:
    """Loads consecutive data from the address that lane 0 has, or would have."""
    origin = h.constant("i64", 0)
    target = h.operand(0)
    lanes = mask.cast("i1", LANES)
    if access.size == 4:
        store_row(target, origin, _masked_load(h, host, target, origin, lanes), None)
        return
    if access.size < 4:
        raw = host.load(f"i{8 * access.size}", LANES, align=1)
        old = load_row(target, origin, LANES) if access.half else None
        store_row(target, origin, _widen(access, raw, old), None)
        return

    def turn(carried: list[Value]) -> tuple[list[Value], Value]:
        (first,) = carried
        count = access.dwords
        block = host.at(first * access.size).load("i32", CHUNK * count, align=1)
        for n in range(count):
            order = ", ".join(f"i32 {lane * count + n}" for lane in range(CHUNK))
            text = (
                f"shufflevector {block.type} {block.name}, {block.type} poison,"
                f" <{CHUNK} x i32> <{order}>"
            )
            store_row(target.at(n * ROW), first, h.value("i32", CHUNK, text), None)
        after = first + CHUNK
        return [after], after.compare("ult", LANES)

    h.loop([origin], turn)


def _store_run(h: Handler, access: Access, host: Value, mask: Value) -> None:
    origin = h.constant("i64", 0)
    source = h.operand(0)
    if access.size == 4:
        data, lanes = load_row(source, origin, LANES), mask.cast("i1", LANES)
        name = f"llvm.masked.store.v{LANES}i32.p0"
        h.declarations.add(f"declare void @{name}(<{LANES} x i32>, ptr, <{LANES} x i1>)")
        # A whole store can be forwarded to a load that follows; a masked one can't.
        whole, partial, stored = (f"{what}{h.fresh()}" for what in ("whole", "some", "stored"))
        h.branch_if(mask.compare("eq", -1), whole, partial)
        h.block(whole)
        host.store(data, align=1)
        h.branch(stored)
        h.block(partial)
        h.line(
            f"call void @{name}({data.type} {data.name}, ptr align 1 {host.name},"
            f" {lanes.type} {lanes.name})"
        )
        h.branch(stored)
        h.block(stored)
        return
    if access.size < 4:
        data = load_row(source, origin, LANES)
        if access.half == "high":
            data = data.lshr(16)
        host.store(data.trunc(f"i{8 * access.size}"), align=1)
        return

    def turn(carried: list[Value]) -> tuple[list[Value], Value]:
        (first,) = carried
        count = access.dwords
        rows = [load_row(source.at(n * ROW), first, CHUNK) for n in range(count)]
        # Interleaves by joining pairs: 16 + 16 lanes, then 32 + 32.
        if count == 3:
            rows.append(rows[0])
        width = CHUNK
        while len(rows) > 1:
            order = ", ".join(f"i32 {n}" for n in range(2 * width))
            rows = [
                h.value(
                    "i32",
                    2 * width,
                    f"shufflevector <{width} x i32> {a.name}, <{width} x i32> {b.name},"
                    f" <{2 * width} x i32> <{order}>",
                )
                for a, b in zip(rows[::2], rows[1::2], strict=True)
            ]
            width *= 2
        order = ", ".join(f"i32 {n * CHUNK + lane}" for lane in range(CHUNK) for n in range(count))
        whole = rows[0]
        text = (
            f"shufflevector {whole.type} {whole.name}, {whole.type} poison,"
            f" <{CHUNK * count} x i32> <{order}>"
        )
        host.at(first * access.size).store(h.value("i32", CHUNK * count, text), align=1)
        after = first + CHUNK
        return [after], after.compare("ult", LANES)

    h.loop([origin], turn)


def _widen(access: Access, raw: Value, old: Value | None) -> Value:
    """The register that a loaded byte or short makes."""
    if access.half is None:
        return raw.sext("i32") if access.signed else raw.zext("i32")
    assert old is not None
    short = raw.sext("i16") if access.signed else raw.zext("i16")
    if access.half == "low":
        return (old & 0xFFFF0000) | short.zext("i32")
    return (old & 0xFFFF) | (short.zext("i32") << 16)


def _host_of_lane(h: Handler, lane: Value) -> Value:
    return h.wave.at(state.ADDRESS).at(lane << 3).load("ptr")


def _load_lane(h: Handler, access: Access, lane: Value) -> None:
    host, target = _host_of_lane(h, lane), h.operand(0).at(lane << 2)
    if access.size < 4:
        raw = host.load(f"i{8 * access.size}", align=1)
        old = target.load("i32") if access.half else None
        target.store(_widen(access, raw, old))
        return
    for n in range(access.dwords):
        target.at(n * ROW).store(host.at(4 * n).load("i32", align=1))


def _store_lane(h: Handler, access: Access, lane: Value) -> None:
    host, source = _host_of_lane(h, lane), h.operand(0).at(lane << 2)
    if access.size < 4:
        value = source.load("i32")
        if access.half == "high":
            value = value.lshr(16)
        host.store(value.trunc(f"i{8 * access.size}"), align=1)
        return
    for n in range(access.dwords):
        host.at(4 * n).store(source.at(n * ROW).load("i32"), align=1)


def _lane_value(place: Value, element: str) -> Value:
    """One lane's register, or pair of registers."""
    low = place.load("i32")
    if element in ("i64", "double"):
        wide = low.zext("i64") | (place.at(ROW).load("i32").zext("i64") << 32)
        return wide.bits(element)
    return low.bits(element)


def _atomic_lane(h: Handler, atomic: Atomic, lane: Value, shared: bool) -> None:
    """Lanes act one after the other, in ascending order. Memory that other host threads may see
    is changed by compare-and-exchange; LDS belongs to one thread."""
    host = _host_of_lane(h, lane)
    element = atomic.element
    data_place = h.operand(3).at(lane << 2)
    data = _lane_value(data_place, element)
    wide = element in ("i64", "double")
    expected = None
    if atomic.compares:
        expected = _lane_value(data_place.at(2 * ROW if wide else ROW), element)
    integer = "i64" if wide else "i32"

    def new_value(old: Value) -> Value:
        typed = old.bits(element)
        if expected is not None:
            same = typed.compare("oeq" if typed.is_float else "eq", expected)
            return same.select(data, typed).bits(integer)
        return atomic.combine(h, typed, data).bits(integer)

    if shared:
        old = host.load(integer, align=1)
        host.store(new_value(old), align=1)
    else:

        def turn(carried: list[Value]) -> tuple[list[Value], Value]:
            (seen,) = carried
            new = new_value(seen)
            pair = f"%v{h.fresh()}"
            h.line(
                f"{pair} = cmpxchg ptr {host.name}, {integer} {seen.name},"
                f" {integer} {new.name} monotonic monotonic"
            )
            found = h.value(integer, 0, f"extractvalue {{{integer}, i1}} {pair}, 0")
            swapped = h.value("i1", 0, f"extractvalue {{{integer}, i1}} {pair}, 1")
            return [found], ~swapped

        (old,) = h.loop([host.load(integer, align=4)], turn)
    if atomic.returns:
        target = h.operand(0).at(lane << 2)
        if wide:
            target.store(old.trunc("i32"))
            target.at(ROW).store(old.lshr(32).trunc("i32"))
        else:
            target.store(old)


def emit_scalar_load(operation: Operation, name: str) -> Handler:
    """s_load: operands are the result, the base and the offset register; the immediate is the
    constant offset. The low two bits of the address are ignored (ISA manual, SMEM)."""
    handler = Handler(name)
    size = operation.detail
    base = handler.operand(1).load("i64")
    offset = handler.operand(2).load("i32").zext("i64")
    address = (base & ~3) + ((handler.immediate() + offset) & ~3)
    host, inside = _host(handler, "global", address, handler.constant("i64", size))
    quick, slow = f"quick{handler.fresh()}", f"slow{handler.fresh()}"
    finish = f"finish{handler.fresh()}"
    before = handler.label
    assert before
    handler.branch_if(inside, quick, slow)
    handler.block(slow)
    found = handler.call(
        "fly_resolve_scalar",
        "ptr",
        handler.wave,
        handler.op,
        address,
        handler.constant("i64", size),
    )
    handler.when(
        found.compare("eq", handler.named("ptr", "null")),
        lambda: handler.stop(state.STATUS_FAULT, handler.op),
    )
    slow_end = handler.label
    handler.branch(finish)
    handler.block(quick)
    handler.branch(finish)
    handler.block(finish)
    pointer = handler.value(
        "ptr", 0, f"phi ptr [{host.name}, %{quick}], [{found.name}, %{slow_end}]"
    )
    count = size // 4
    data = pointer.load("i32", count, align=4) if count > 1 else pointer.load("i32", align=4)
    handler.operand(0).store(data, align=4)
    handler.next()
    return handler


__all__ = [
    "ALIGNED",
    "FLAT",
    "WRITES",
    "Access",
    "Atomic",
    "emit_memory",
    "emit_scalar_load",
    "read_vector",
    "void",
    "write_vector",
]
