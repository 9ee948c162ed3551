"""ds_read2_b32: two reads of LDS by one row of addresses, and runs of such pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fly_run.emulator import state
from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.access import CHUNK
from fly_run.emulator.semantics.base.emit import Handler, load_row, store_row
from fly_run.emulator.semantics.memory.chunks import (
    Dword,
    RowLoad,
    by_rows,
    fetch_chunk,
    pointer,
)
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

    def move_rows(load: RowLoad, heads: list[Value]) -> None:
        results = [h.operand(number) for number in (0, 1)]
        _move_rows(h, base, results, [h.immediate(), h.extra().zext("i64")], load, heads)

    by_rows(h, rows, mask, done, move_rows)
    dwords = [_dword(base, h.operand(number), offset) for number, offset in enumerate(offsets)]

    def fetch(first: Value, lanes: Value) -> None:
        fetch_chunk(h, dwords, load_row(address, first, CHUNK), first, lanes, follow=True)

    h.over_chunks(CHUNK, fetch)
    h.branch(done)


PAIR = 3 * state.OP_SIZE  # the shortcut and the two reads
# Operands of `read_pairs` besides those of `read_pair`, as numbers.
COUNT, LOWEST, HIGHEST = 3, 4, 5


def read_pairs(h: Handler) -> None:
    """A shortcut before several pairs of reads that follow each other, two or more, by the same row
    of addresses: what the addresses are is found out once. Operands: those of `read_pair`, the
    number of pairs, and the lowest and the highest of their offsets. If it does not apply, this
    pair's reads follow."""
    mask = h.exec_mask()
    end = h.op.at(_number(h, COUNT) * PAIR)
    skip, some, slow = shortcut(h), f"some{h.fresh()}", f"slow{h.fresh()}"
    h.branch_if(mask.compare("eq", 0), skip, some)
    h.block(skip)
    h.jump(end)
    h.block(some)
    apart = _runs_of_pairs(h, mask, end, skip)
    h.block(apart)
    _chunks_of_pairs(h, mask, end, skip, slow)
    h.block(slow)


def _number(h: Handler, operand: int) -> Value:
    """Returns an operand that is a number, as i64."""
    return h.op.at(state.OP_OPERANDS + 4 * operand).load("i32").zext("i64")


def _over_pairs(h: Handler, end: Value, body: Callable[[list[Value], list[Value]], None]) -> None:
    """Runs `body(rows, offsets)` for each pair: pointers to its two results, and its two offsets
    (i64)."""

    def turn(carried: list[Value]) -> tuple[list[Value], Value]:
        (op,) = carried
        places = [op.at(state.OP_OPERANDS + 4 * n).load("i32").zext("i64") for n in (0, 1)]
        offsets = op.at(state.OP_IMMEDIATE).load("i64"), op.at(state.OP_EXTRA).load("i32")
        body([h.wave.at(place) for place in places], [offsets[0], offsets[1].zext("i64")])
        after = op.at(PAIR)
        return [after], after.compare("ne", end)

    h.loop([h.op.at(0)], turn)


def _runs_of_pairs(h: Handler, mask: Value, end: Value, done: str) -> str:
    """The addresses of all lanes are consecutive; returns the label for other addresses."""
    origin, address = h.constant("i64", 0), h.operand(2)
    size = h.wave.at(state.LDS_SIZE).load("i64")

    def lane_zero() -> Value:
        first = first_lane(h, mask)
        return address.at(first << 2).load("i32") - (first << 2).trunc("i32")

    start = lane_zero()
    steps = h.vector("i32", range(0, 4 * h.lanes, 4))
    good = every_active(load_row(address, origin, h.lanes).compare("eq", steps + start), mask)
    first, last = first_lane(h, mask) << 2, last_lane(h, mask) << 2
    begin = start.sext("i64")
    good = good & (begin + _number(h, LOWEST) + first).compare("sge", 0)
    good = good & (begin + _number(h, HIGHEST) + last + 4).compare("sle", size)
    fast, apart = shortcut(h), f"apart{h.fresh()}"
    h.branch_if(good, fast, apart)
    h.block(fast)
    base = h.wave.at(state.LDS_BASE).load("ptr").at(lane_zero().sext("i64"))

    def move(rows: list[Value], offsets: list[Value]) -> None:
        under = lanes_of(mask, h.lanes)
        for row, offset in zip(rows, offsets, strict=True):
            store_row(row, origin, base.at(offset).load("i32", h.lanes, align=1), under)

    _over_pairs(h, end, move)
    h.branch(done)
    return apart


def _chunks_of_pairs(h: Handler, mask: Value, end: Value, done: str, slow: str) -> None:
    """All pairs of 16 lanes, then of the next, if all addresses are in the LDS."""
    address, origin = h.operand(2), h.constant("i64", 0)
    room = h.wave.at(state.LDS_SIZE).load("i64") - 4
    rows = load_row(address, origin, h.lanes)
    good = room.compare("sge", 0)
    # No offset in between is out of range if these are in range.
    for operand in (LOWEST, HIGHEST):
        offset = _number(h, operand).trunc("i32")
        good = good & every_active((rows + offset).compare("ule", room.trunc("i32")), mask)
    inside = shortcut(h)
    h.branch_if(good, inside, slow)
    h.block(inside)
    base = h.wave.at(state.LDS_BASE).load("ptr")

    def move_rows(load: RowLoad, heads: list[Value]) -> None:
        _over_pairs(h, end, lambda rows, offsets: _move_rows(h, base, rows, offsets, load, heads))

    by_rows(h, rows, mask, done, move_rows)

    def each(move: Callable[[Sequence[Dword]], None]) -> None:
        def pair(rows: list[Value], offsets: list[Value]) -> None:
            move([_dword(base, *one) for one in zip(rows, offsets, strict=True)])

        _over_pairs(h, end, pair)

    def fetch(first: Value, lanes: Value) -> None:
        fetch_chunk(h, each, load_row(address, first, CHUNK), first, lanes, follow=True)

    h.over_chunks(CHUNK, fetch)
    h.branch(done)


def _move_rows(
    h: Handler,
    base: Value,
    rows: list[Value],
    offsets: list[Value],
    load: RowLoad,
    heads: list[Value],
) -> None:
    """Loads results by `by_rows`, with these offsets to the addresses."""
    for row, offset in zip(rows, offsets, strict=True):
        for number, head in enumerate(heads):
            value = load(base.at(head.sext("i64") + offset))
            store_row(row, h.constant("i64", number * CHUNK), value, None)


def _dword(base: Value, row: Value, offset: Value) -> Dword:
    return Dword(row, lambda index: pointer(base, index + offset.trunc("i32")))
