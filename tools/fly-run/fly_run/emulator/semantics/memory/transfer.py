"""Moves data between registers and host memory whose addresses have been checked.

Runs are the contiguous range of all lanes' addresses. Lanes are one after the other; `chunks` moves
those of 16 at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fly_run.emulator import state
from fly_run.emulator.irgen import Function, Value
from fly_run.emulator.semantics.base.access import CHUNK, Access, Atomic
from fly_run.emulator.semantics.base.emit import HALF, LANES, ROW, Handler, load_row, store_row

SHORTCUT = "shortcut"


def shortcut(h: Handler) -> str:
    """Returns the label of a faster path, equivalent to the other branch of its condition."""
    return f"{SHORTCUT}{h.fresh()}"


def lanes_of(mask: Value, lanes: int) -> Value:
    """Returns the first `lanes` bits of a mask as `<lanes x i1>`."""
    return (mask.trunc(f"i{lanes}") if lanes < LANES else mask).cast("i1", lanes)


def every_active(good: Value, mask: Value) -> Value:
    """Returns whether all lanes of a mask (i64) are among the good ones (`<n x i1>`)."""
    bits = good.cast(f"i{good.lanes}", 0)
    return ((bits.zext("i64") if good.lanes < LANES else bits) & mask).compare("eq", mask)


def first_lane(h: Function, mask: Value) -> Value:
    """Returns the number of the first lane of a mask (i64), 64 if there is none."""
    return h.intrinsic("llvm.cttz", mask, h.constant("i1", 0), result=mask)


def last_lane(h: Function, mask: Value) -> Value:
    """Returns the number of the last lane of a mask (i64), -1 if there is none."""
    return 63 - h.intrinsic("llvm.ctlz", mask, h.constant("i1", 0), result=mask)


def whole_wave(h: Handler, mask: Value, lanes: int) -> Value:
    """Returns the number of lanes (i64) of a wave that has all its lanes active, 0 of another: 32,
    or 64 if there are such waves."""
    some = mask.compare("eq", (1 << HALF) - 1).select(h.constant("i64", HALF), 0)
    if lanes == HALF:
        return some
    return mask.compare("eq", -1).select(h.constant("i64", LANES), some)


def picked(block: Value, count: int) -> list[Value]:
    """Returns the `count` rows of a block that has them lane by lane."""
    rows = []
    for number in range(count):
        order = ", ".join(f"i32 {lane * count + number}" for lane in range(CHUNK))
        text = (
            f"shufflevector {block.type} {block.name}, {block.type} poison,"
            f" <{CHUNK} x i32> <{order}>"
        )
        rows.append(block.function.value("i32", CHUNK, text))
    return rows


def joined(a: Value, b: Value) -> Value:
    """Returns the elements of two vectors of one type, the second's after the first's."""
    count = 2 * a.lanes
    order = ", ".join(f"i32 {n}" for n in range(count))
    text = f"shufflevector {a.type} {a.name}, {b.type} {b.name}, <{count} x i32> <{order}>"
    return a.function.value(a.element, count, text)


def interleaved(rows: Sequence[Value]) -> Value:
    """Returns a block that has rows of 16 lanes lane by lane."""
    f, count = rows[0].function, len(rows)
    # By joining pairs: 16 + 16 lanes, then 32 + 32.
    parts = [*rows, rows[0]] if count == 3 else list(rows)
    while len(parts) > 1:
        parts = [joined(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    order = ", ".join(f"i32 {n * CHUNK + lane}" for lane in range(CHUNK) for n in range(count))
    block = parts[0]
    text = (
        f"shufflevector {block.type} {block.name}, {block.type} poison,"
        f" <{CHUNK * count} x i32> <{order}>"
    )
    return f.value("i32", CHUNK * count, text)


def load_run(
    h: Handler,
    access: Access,
    host: Value,
    mask: Value,
    whole: Value | None,
    lanes: int,
    padded: bool,
) -> None:
    """Loads contiguous data from the address that lane 0 has, or would have if active. `padded`
    memory may be read for inactive lanes too. `whole`: the number of lanes that a wave has, all
    active, a multiple of 32; None for dwords, of which any of the first `lanes` may be."""
    origin = h.constant("i64", 0)
    target = h.operand(0)
    if whole is None:
        under = lanes_of(mask, lanes)
        if padded:
            store_row(target, origin, host.load("i32", lanes, align=1), under)
        else:
            store_row(target, origin, masked_load(h, host, target, origin, under), None)
        return

    def narrow(carried: list[Value]) -> tuple[list[Value], Value]:
        (first,) = carried
        raw = host.at(first * access.size).load(f"i{8 * access.size}", HALF, align=1)
        old = load_row(target, first, HALF) if access.half else None
        store_row(target, first, _widen(access, raw, old), None)
        after = first + HALF
        return [after], after.compare("ult", whole)

    def wide(carried: list[Value]) -> tuple[list[Value], Value]:
        (first,) = carried
        count = access.dwords
        block = host.at(first * access.size).load("i32", CHUNK * count, align=1)
        for n, value in enumerate(picked(block, count)):
            store_row(target.at(n * ROW), first, value, None)
        after = first + CHUNK
        return [after], after.compare("ult", whole)

    h.loop([origin], narrow if access.size < 4 else wide)


def store_run(
    h: Handler,
    access: Access,
    host: Value,
    mask: Value,
    whole: Value | None,
    lanes: int,
    padded: bool,
) -> None:
    """Stores contiguous data; `whole` and `lanes` are those of `load_run`. In `padded` memory,
    which is private to this workgroup, the old data of inactive lanes are rewritten: a masked store
    can't be forwarded to the next load."""
    origin = h.constant("i64", 0)
    source = h.operand(0)
    if whole is None:
        data, under = load_row(source, origin, lanes), lanes_of(mask, lanes)
        if padded:
            old = host.load("i32", lanes, align=1, volatile=True)
            host.store(under.select(data, old), align=1)
            return
        name = f"llvm.masked.store.v{lanes}i32.p0"
        h.declarations.add(f"declare void @{name}(<{lanes} x i32>, ptr, <{lanes} x i1>)")
        # A whole store can be forwarded to a subsequent load; a masked one can't.
        every, partial, stored = shortcut(h), f"some{h.fresh()}", f"stored{h.fresh()}"
        h.branch_if(mask.compare("eq", -1 if lanes == LANES else (1 << lanes) - 1), every, partial)
        h.block(every)
        host.store(data, align=1)
        h.branch(stored)
        h.block(partial)
        h.line(
            f"call void @{name}({data.type} {data.name}, ptr align 1 {host.name},"
            f" {under.type} {under.name})"
        )
        h.branch(stored)
        h.block(stored)
        return

    def narrow(carried: list[Value]) -> tuple[list[Value], Value]:
        (first,) = carried
        data = load_row(source, first, HALF)
        if access.half == "high":
            data = data.lshr(16)
        host.at(first * access.size).store(data.trunc(f"i{8 * access.size}"), align=1)
        after = first + HALF
        return [after], after.compare("ult", whole)

    def wide(carried: list[Value]) -> tuple[list[Value], Value]:
        (first,) = carried
        count = access.dwords
        rows = [load_row(source.at(n * ROW), first, CHUNK) for n in range(count)]
        host.at(first * access.size).store(interleaved(rows), align=1)
        after = first + CHUNK
        return [after], after.compare("ult", whole)

    h.loop([origin], narrow if access.size < 4 else wide)


def masked_load(h: Handler, start: Value, row: Value, first: Value, lanes: Value) -> Value:
    old = load_row(row, first, lanes.lanes)
    name = f"llvm.masked.load.v{lanes.lanes}i32.p0"
    h.declarations.add(f"declare {old.type} @{name}(ptr, {lanes.type}, {old.type})")
    text = (
        f"call {old.type} @{name}(ptr align 1 {start.name}, {lanes.type} {lanes.name},"
        f" {old.type} {old.name})"
    )
    return h.value("i32", lanes.lanes, text)


def _widen(access: Access, raw: Value, old: Value | None) -> Value:
    """Returns the register value for a loaded byte or short."""
    if access.half is None:
        return raw.sext("i32") if access.signed else raw.zext("i32")
    assert old is not None
    short = raw.sext("i16") if access.signed else raw.zext("i16")
    if access.half == "low":
        return (old & 0xFFFF0000) | short.zext("i32")
    return (old & 0xFFFF) | (short.zext("i32") << 16)


def _host_of_lane(h: Handler, lane: Value) -> Value:
    return h.wave.at(state.ADDRESS).at(lane << 3).load("ptr")


def load_lane(h: Handler, access: Access, lane: Value) -> None:
    load_from(h, access, _host_of_lane(h, lane), lane)


def load_from(h: Handler, access: Access, host: Value, lane: Value) -> None:
    """Loads the data of a lane from a host pointer."""
    target = h.operand(0).at(lane << 2)
    if access.size < 4:
        raw = host.load(f"i{8 * access.size}", align=1)
        old = target.load("i32") if access.half else None
        target.store(_widen(access, raw, old))
        return
    for n in range(access.dwords):
        target.at(n * ROW).store(host.at(4 * n).load("i32", align=1))


def store_lane(h: Handler, access: Access, lane: Value) -> None:
    store_to(h, access, _host_of_lane(h, lane), lane)


def store_to(h: Handler, access: Access, host: Value, lane: Value) -> None:
    """Stores the data of a lane to a host pointer."""
    source = h.operand(0).at(lane << 2)
    if access.size < 4:
        value = source.load("i32")
        if access.half == "high":
            value = value.lshr(16)
        host.store(value.trunc(f"i{8 * access.size}"), align=1)
        return
    for n in range(access.dwords):
        host.at(4 * n).store(source.at(n * ROW).load("i32"), align=1)


def _lane_value(place: Value, element: str) -> Value:
    """Returns one lane's register, or pair of registers."""
    low = place.load("i32")
    if element in ("i64", "double"):
        wide = low.zext("i64") | (place.at(ROW).load("i32").zext("i64") << 32)
        return wide.bits(element)
    return low.bits(element)


def exchange(h: Handler, host: Value, integer: str, new_value: Callable[[Value], Value]) -> Value:
    """Atomically replaces memory that other host threads may access by `new_value` of it. Returns
    the old value."""

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
    return old


def atomic_lane(h: Handler, atomic: Atomic, lane: Value, form: str) -> None:
    """Executes lanes in ascending order. Memory that other host threads may access is changed by
    compare-and-exchange; LDS belongs to one thread."""
    host = _host_of_lane(h, lane)
    element = atomic.element
    # A buffer atomic returns into its data register; its operand 3 is the scalar offset.
    data_place = h.operand(0 if form == "buffer" else 3).at(lane << 2)
    data = _lane_value(data_place, element)
    wide = element in ("i64", "double")
    other = None
    if atomic.values == 2:
        other = _lane_value(data_place.at(2 * ROW if wide else ROW), element)
    integer = "i64" if wide else "i32"

    def new_value(old: Value) -> Value:
        typed = old.bits(element)
        if other is None:
            return atomic.combine(h, typed, data).bits(integer)
        if atomic.compares:
            same = typed.compare("oeq" if typed.is_float else "eq", other)
            return same.select(data, typed).bits(integer)
        return atomic.combine(h, typed, data, other).bits(integer)

    if form == "lds":
        old = host.load(integer, align=1)
        host.store(new_value(old), align=1)
    else:
        old = exchange(h, host, integer, new_value)
    if atomic.returns:
        target = h.operand(0).at(lane << 2)
        if wide:
            target.store(old.trunc("i32"))
            target.at(ROW).store(old.lshr(32).trunc("i32"))
        else:
            target.store(old)
