"""Micro-ops that inspect the addresses of a memory access before it happens: the number of cache
lines that a wave touches, and the cycles of LDS banks. Their operands are those of the access, the
link is the site with parameters and sums (state.ACCESS).

The counts are exact, but that the hardware behaves this way is a model:
fly_run.emulator.watch.measure documents its source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from fly_run.emulator import state
from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.emit import LANES, ROW, Handler, load_row
from fly_run.emulator.semantics.base.operation import Operation
from fly_run.emulator.semantics.memory.resolve_buffer import BufferAccess
from fly_run.emulator.semantics.memory.transfer import shortcut

CHUNK = 16


def operations() -> Iterator[Operation]:
    for name, body in CUSTOM.items():
        yield Operation(name, "custom", body=body)


def _site(h: Handler, name: str) -> Value:
    return h.op.at(state.OP_LINK).load("ptr").at(state.ACCESS.offsets[name])


def _parameter(h: Handler, name: str) -> Value:
    return _site(h, name).load("i64")


def _add(h: Handler, name: str, value: Value) -> None:
    place = _site(h, name)
    place.store(place.load("i64") + value)


def _bits(h: Handler, test: Callable[[Value], Value]) -> Value:
    """i64: the lanes of the ADDRESS list whose addresses satisfy `test`."""
    total = None
    for first in range(0, LANES, CHUNK):
        addresses = h.wave.at(state.ADDRESS + 8 * first).load("i64", CHUNK, align=64)
        bits = test(addresses).cast(f"i{CHUNK}", 0).zext("i64") << first
        total = bits if total is None else total | bits
    assert total is not None
    return total


def _list_addresses(
    h: Handler, base: Value, low: Value | None, high: Value | None, unit: Value | None = None
) -> None:
    """Writes the sums of the base and of the rows with low and high dwords, if any, to the ADDRESS
    list. `unit`: the low dwords are signed numbers of so many bytes."""
    for first in range(0, LANES, CHUNK):
        start = h.constant("i64", first)
        address = base.splat(CHUNK)
        if low is not None:
            row = load_row(low, start, CHUNK)
            own = row.zext("i64") if unit is None else row.sext("i64") * unit.splat(CHUNK)
            address = own + address
        if high is not None:
            address = address + (load_row(high, start, CHUNK).zext("i64") << 32)
        h.wave.at(state.ADDRESS + 8 * first).store(address, align=64)


def _unless_known(
    h: Handler,
    mask: Value,
    key: Value,
    same: Callable[[], Value],
    keep: Callable[[], None],
    count: Callable[[], tuple[Value, Value]],
) -> None:
    """Adds this access's units and ideal: the previous ones if EXEC and the key are unchanged and
    the lanes' addresses differ by a constant, otherwise the result of `count`. `same` returns the
    lanes with unchanged addresses, `keep` records them. Loops repeat one pattern over and over, and
    comparing takes a tenth of the time."""
    known = mask.compare("eq", _parameter(h, "known_mask"))
    known = known & key.compare("eq", _parameter(h, "known_key"))
    known = known & (same() | ~mask).compare("eq", -1)
    done, anew = shortcut(h), f"anew{h.fresh()}"
    h.branch_if(known, done, anew)
    h.block(anew)
    _site(h, "known_mask").store(mask)
    _site(h, "known_key").store(key)
    keep()
    units, ideal = count()
    _site(h, "known_units").store(units)
    _site(h, "known_ideal").store(ideal)
    h.branch(done)
    h.block(done)
    _add(h, "units", _parameter(h, "known_units"))
    _add(h, "ideal", _parameter(h, "known_ideal"))


def _kept(h: Handler) -> Value:
    return h.op.at(state.OP_LINK).load("ptr").at(state.KNOWN)


def _first(h: Handler, mask: Value) -> Value:
    """Returns the number of the first lane of a non-zero mask."""
    return h.intrinsic("llvm.cttz", mask, h.constant("i1", 0), result=mask)


def _count_lines(h: Handler, mask: Value) -> None:
    """Adds the number of distinct cache lines that the lanes of `mask` touch."""
    _add(h, "lanes", h.intrinsic("llvm.ctpop", mask))

    def when_some() -> None:
        base = h.wave.at(state.ADDRESS).at(_first(h, mask) << 3).load("i64")
        line = h.constant("i64", 1) << _parameter(h, "shift")

        def places() -> list[tuple[Value, int]]:
            return [
                (h.wave.at(state.ADDRESS + 8 * n).load("i64", CHUNK, align=64) - base, n)
                for n in range(0, LANES, CHUNK)
            ]

        def same() -> Value:
            total = h.constant("i64", 0)
            for place, first in places():
                old = _kept(h).at(8 * first).load("i64", CHUNK, align=8)
                bits = place.compare("eq", old).cast(f"i{CHUNK}", 0)
                total = total | (bits.zext("i64") << first)
            return total

        def keep() -> None:
            for place, first in places():
                _kept(h).at(8 * first).store(place, align=8)

        _unless_known(h, mask, base & (line - 1), same, keep, lambda: _lines(h, mask, line))

    h.when(mask.compare("ne", 0), when_some)


def _lines(h: Handler, mask: Value, line: Value) -> tuple[Value, Value]:
    """Returns the number of distinct cache lines of the lanes' first and last bytes, and the
    minimum for that many."""
    size, shift = _parameter(h, "size"), _parameter(h, "shift")
    starts, ends = shift.splat(CHUNK), (size - 1).splat(CHUNK)
    crossing = _bits(h, lambda a: a.lshr(starts).compare("ne", (a + ends).lshr(starts)))
    zero, false = h.constant("i64", 0), h.constant("i1", 0)

    def turn(carried: list[Value]) -> tuple[list[Value], Value]:
        heads, tails, found = carried
        at_head = heads.compare("ne", 0)
        lane = h.intrinsic("llvm.cttz", at_head.select(heads, tails), false, result=heads)
        address = h.wave.at(state.ADDRESS).at(lane << 3).load("i64")
        wanted = (address + at_head.select(0, size - 1)).lshr(shift).splat(CHUNK)
        same_head = _bits(h, lambda a: a.lshr(starts).compare("eq", wanted))
        same_tail = _bits(h, lambda a: (a + ends).lshr(starts).compare("eq", wanted))
        heads, tails = heads & ~same_head, tails & ~same_tail
        return [heads, tails, found + 1], (heads | tails).compare("ne", 0)

    *_, found = h.loop([mask, mask & crossing, zero], turn)
    least = (h.intrinsic("llvm.ctpop", mask) * size + line - 1).lshr(shift)
    return found, h.intrinsic("llvm.umin", least, found)


def _global(h: Handler, variant: str) -> None:
    _list(h, variant)
    _count_lines(h, h.exec_mask())


def _list(h: Handler, variant: str) -> None:
    """Lists the addresses of a global or flat access, whose variant says what they are the sum of
    (`fly_run.emulator.semantics.memory.emit`)."""
    low, base = h.operand(1), h.immediate()
    if variant == "v":
        return _list_addresses(h, base, low, low.at(ROW))
    units = {"s": None, "g": h.constant("i64", 1), "h": _parameter(h, "size")}
    _list_addresses(h, base + h.operand(2).load("i64"), low, None, units[variant])


def _flat(h: Handler, variant: str) -> None:
    """Lanes whose address is in an aperture access LDS or private memory."""
    _list(h, variant)
    mask = h.exec_mask()
    for name, aperture in (
        ("shared", state.SHARED_APERTURE),
        ("private", state.PRIVATE_APERTURE),
    ):
        inside = _bits(h, lambda a, high=aperture: a.lshr(32).compare("eq", high)) & mask
        _add(h, name, h.intrinsic("llvm.ctpop", inside))
        mask = mask & ~inside
    _count_lines(h, mask)


def _buffer(h: Handler) -> None:
    """Lanes out of range access nothing (see fly_resolve_buffer)."""
    access = BufferAccess(h.wave, h.op, _parameter(h, "size"))
    mask = h.exec_mask()
    none = h.constant("i64", 0)
    _add(h, "private", access.private.select(h.intrinsic("llvm.ctpop", mask), none))

    def turn(carried: list[Value]) -> tuple[list[Value], Value]:
        lane, inside = carried
        own = access.lane(lane)
        h.wave.at(state.ADDRESS).at(lane << 3).store(own.address)
        after = lane + 1
        return [after, inside | (own.inside.zext("i64") << lane)], after.compare("ult", LANES)

    def count() -> None:
        inside = h.loop([none, none], turn)[1]
        _count_lines(h, inside & mask)

    h.when(~access.private, count)


def _cells(h: Handler, test: Callable[[Value], Value]) -> Value:
    """i64: the lanes of the list of 32-bit cells, stored in place of addresses, that satisfy
    `test`."""
    return test(h.wave.at(state.ADDRESS).load("i32", LANES, align=64)).cast("i64", 0)


def _lds(h: Handler) -> None:
    """In each phase a bank delivers one dword per cycle, to all lanes that want it: a phase takes
    as many cycles as there are different dwords in its busiest bank."""
    mask = h.exec_mask()
    zero, false = h.constant("i64", 0), h.constant("i1", 0)
    size, banks = _parameter(h, "size"), _parameter(h, "banks")
    wide = _parameter(h, "granule")
    row = load_row(h.operand(1), zero, LANES) + h.immediate().trunc("i32")
    odd = ((h.constant("i64", 1) << wide) - 1).trunc("i32")
    aligned = ((row & odd).compare("eq", 0).cast("i64", 0) | ~mask).compare("eq", -1)
    # If every address is a multiple of the size, data of two lanes are identical or disjoint, and
    # a granule loads all the banks that it covers equally: one counter suffices for them.
    granule = aligned.select(wide, 2)
    cells = row.lshr(granule.trunc("i32"))
    h.wave.at(state.ADDRESS).store(cells, align=64)
    parts = ((size - 1).lshr(granule) + 1).trunc("i32")
    counters = (banks.lshr(granule - 2) - 1).trunc("i32")
    # The last temporary row is reserved for handlers: here it has counters by bank.
    tally = h.wave.at(state.TEMP + (state.TEMP_ROWS - 1) * ROW)
    none = h.constant("i32", 0)

    def phase(carried: list[Value]) -> tuple[list[Value], Value]:
        number, cycles, used = carried
        place = _site(h, "phase0").at(number << 3)
        wanted = place.load("i64") & mask

        def busy() -> Value:
            tally.store(h.constant("i32", 0, LANES), align=64)

            def by_part(carried: list[Value]) -> tuple[list[Value], Value]:
                part, busiest = carried
                most = h.loop([wanted, busiest], lambda c: by_lane(part, *c))[1]
                return [part + 1, most], (part + 1).compare("ult", parts)

            return h.loop([none, none], by_part)[1].zext("i64")

        def by_lane(part: Value, left: Value, busiest: Value) -> tuple[list[Value], Value]:
            lane = h.intrinsic("llvm.cttz", left, false, result=left)
            cell = h.wave.at(state.ADDRESS).at(lane << 2).load("i32") + part

            def wants(number: Value) -> Value:
                """Returns the lanes whose part `number` is this cell."""
                return _cells(h, lambda cells: cells.compare("eq", cell - number)) & wanted

            def seen() -> Value:
                """Whether the cell has been counted as an earlier part of some lane."""

                def look(carried: list[Value]) -> tuple[list[Value], Value]:
                    earlier, found = carried
                    following = earlier + 1
                    return [following, found | wants(earlier)], following.compare("ult", part)

                return h.loop([none, zero], look)[1].compare("ne", 0)

            old = h.choose(part.compare("ne", 0), seen, lambda: false | false)
            counter = tally.at((cell & counters).zext("i64") << 2)
            count = counter.load("i32") + (~old).zext("i32")
            counter.store(count)
            left = left & ~wants(part)
            return [left, h.intrinsic("llvm.umax", busiest, count)], left.compare("ne", 0)

        some = wanted.compare("ne", 0)
        cycles = cycles + h.choose(some, busy, lambda: zero | 0)
        more = place.at(8).load("i64").compare("ne", 0)
        return [number + 1, cycles, used + some.zext("i64")], more

    def count() -> tuple[Value, Value]:
        _, cycles, used = h.loop([zero, zero, zero], phase)
        return cycles, used

    def when_some() -> None:
        _add(h, "lanes", h.intrinsic("llvm.ctpop", mask))
        # Adding a constant to all cells only rotates the banks.
        places = cells - h.wave.at(state.ADDRESS).at(_first(h, mask) << 2).load("i32")
        _unless_known(
            h,
            mask,
            granule,
            lambda: places.compare("eq", _kept(h).load("i32", LANES, align=8)).cast("i64", 0),
            lambda: _kept(h).store(places, align=8),
            count,
        )

    h.when(mask.compare("ne", 0), when_some)


# Named after the access that they precede: its form and its variant.
CUSTOM: dict[str, Callable[[Handler], None]] = {
    **{f"fly_measure_global.{one}": partial(_global, variant=one) for one in "vsgh"},
    **{f"fly_measure_flat.{one}": partial(_flat, variant=one) for one in "vgh"},
    "fly_measure_buffer": _buffer,
    "fly_measure_lds.v": _lds,
}
