"""Moves the data of 16 lanes at a time, each with its own host address, which has been checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fly_run.emulator import state
from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.access import CHUNK, Access
from fly_run.emulator.semantics.base.emit import LANES, ROW, Handler, load_row, store_row
from fly_run.emulator.semantics.memory.transfer import (
    every_active,
    interleaved,
    joined,
    masked_load,
    picked,
    shortcut,
)

EVERY = (1 << CHUNK) - 1  # all lanes of a chunk


def gather(h: Handler, access: Access) -> None:
    """Loads dwords from the host addresses in the ADDRESS list."""
    nowhere = h.named("ptr", "null")
    dwords = dwords_of(h, access, nowhere)

    def fetch(first: Value, lanes: Value) -> None:
        address = h.wave.at(state.ADDRESS).at(first << 3).load("i64", CHUNK, align=64)
        fetch_chunk(h, dwords, address, first, lanes, access.dwords == 1, nowhere)

    h.over_chunks(CHUNK, fetch)


@dataclass(frozen=True)
class Dword:
    """A result of `fetch_chunk`: its row, and the host pointers for the lanes' indices; both are
    scalars or vectors."""

    row: Value
    host: Callable[[Value], Value]


def dwords_of(h: Handler, access: Access, base: Value) -> list[Dword]:
    """Returns the dwords of an access whose indices count from `base`."""

    def host(number: int) -> Callable[[Value], Value]:
        return lambda index: pointer(base.at(4 * number), index)

    return [Dword(h.operand(0).at(n * ROW), host(n)) for n in range(access.dwords)]


def pointer(base: Value, index: Value) -> Value:
    """Returns `base` advanced by indices, which are signed."""
    text = f"getelementptr i8, ptr {base.name}, {index.type} {index.name}"
    return base.function.value("ptr", index.lanes, text)


Each = Callable[[Callable[[Sequence[Dword]], None]], None]


def fetch_chunk(
    h: Handler,
    dwords: Sequence[Dword] | Each,
    index: Value,
    first: Value,
    lanes: Value,
    follow: bool,
    block: Value | None = None,
) -> None:
    """Loads a chunk's dwords from the places of each lane's `index`, which have been checked; with
    `follow`, those of lanes may follow each other; `block` is the pointer that indices count from
    if a lane's dwords do. `dwords` may be a function that emits a loop, in which it calls its
    argument with the dwords of a turn.

    Real kernels read runs and single elements in groups of 16 lanes (rows of tiles, a broadcast
    element), which take one move each. The processor's gather costs many times that.
    """
    head = index.function.value(
        index.element, 0, f"extractelement {index.type} {index.name}, i32 0"
    )
    active = lanes.cast(f"i{CHUNK}", 0)
    end = f"chunk{h.fresh()}"

    def matches(steps: Value) -> Value:
        same = index.compare("eq", head.splat(CHUNK) + steps)
        return (same.cast(f"i{CHUNK}", 0) & active).compare("eq", active)

    def case(condition: Value, work: Callable[[Dword], Value]) -> None:
        quick, after = shortcut(h), f"after{h.fresh()}"
        h.branch_if(condition, quick, after)
        h.block(quick)
        finish(work)
        h.block(after)

    def finish(work: Callable[[Dword], Value]) -> None:
        def move(some: Sequence[Dword]) -> None:
            # The address register may be among the results: load everything before storing any.
            values = [work(dword) for dword in some]
            for dword, value in zip(some, values, strict=True):
                store_row(dword.row, first, value, None)

        if callable(dwords):
            dwords(move)
        else:
            move(dwords)
        h.branch(end)

    # An inactive lane 0 has an arbitrary address, which only counts if the active ones follow it or
    # have it too. It may be below 0 in LDS, where theirs are not.
    def broadcast(dword: Dword) -> Value:
        value = dword.host(head).load("i32", align=1).splat(CHUNK)
        return lanes.select(value, load_row(dword.row, first, CHUNK))

    def run(dword: Dword) -> Value:
        return masked_load(h, dword.host(head), dword.row, first, lanes)

    def scattered(dword: Dword) -> Value:
        return _gather_dwords(h, dword.host(index), dword.row, first, lanes)

    h.when(active.compare("eq", 0), lambda: h.branch(end))
    case(matches(index.like(0)), broadcast)
    if follow:
        case(matches(h.vector(index.element, range(0, 4 * CHUNK, 4))), run)
    if block is not None and not callable(dwords) and len(dwords) > 1:
        together, apart = shortcut(h), f"apart{h.fresh()}"
        h.branch_if(active.compare("eq", EVERY), together, apart)
        h.block(together)
        rows = picked(_blocks(block, index, len(dwords)), len(dwords))
        for dword, value in zip(dwords, rows, strict=True):
            store_row(dword.row, first, value, None)
        h.branch(end)
        h.block(apart)
    finish(scattered)
    h.block(end)


RowLoad = Callable[[Value], Value]  # of 16 dwords from a host pointer


def by_rows(
    h: Handler,
    index: Value,
    mask: Value,
    done: str,
    move: Callable[[RowLoad, list[Value]], None],
) -> None:
    """A shortcut for all lanes active, if those of each 16 have one index, or all have consecutive
    ones, as tiles of 16 columns have. `move` gets how to load 16 dwords, and each 16's first index;
    after it comes `done`. Falls through for others."""
    starts = range(0, index.lanes, CHUNK)
    order = ", ".join(f"i32 {start}" for start in starts for _ in range(CHUNK))
    text = (
        f"shufflevector {index.type} {index.name}, {index.type} poison,"
        f" <{index.lanes} x i32> <{order}>"
    )
    heads = h.value(index.element, index.lanes, text)
    steps = h.vector(index.element, (4 * (lane % CHUNK) for lane in range(index.lanes)))
    whole = mask.compare("eq", -1 if index.lanes == LANES else (1 << index.lanes) - 1)

    def one(host: Value) -> Value:
        return host.load("i32", align=1).splat(CHUNK)

    def run(host: Value) -> Value:
        return host.load("i32", CHUNK, align=1)

    for wanted, load in ((heads, one), (heads + steps, run)):
        fits = whole & every_active(index.compare("eq", wanted), mask)
        quick, after = shortcut(h), f"after{h.fresh()}"
        h.branch_if(fits, quick, after)
        h.block(quick)
        firsts = [
            h.value(index.element, 0, f"extractelement {index.type} {index.name}, i32 {start}")
            for start in starts
        ]
        move(load, firsts)
        h.branch(done)
        h.block(after)


def _place(base: Value, index: Value, lane: int) -> Value:
    """Returns the pointer of one lane's index."""
    f = base.function
    one = f.value(index.element, 0, f"extractelement {index.type} {index.name}, i32 {lane}")
    return base.at(one.sext("i64"))


def _blocks(base: Value, index: Value, count: int) -> Value:
    """Loads `count` dwords of each of 16 lanes; returns them lane by lane."""
    parts = [_place(base, index, lane).load("i32", count, align=1) for lane in range(CHUNK)]
    while len(parts) > 1:
        parts = [joined(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def put_chunk(
    h: Handler,
    access: Access,
    base: Value,
    index: Value,
    first: Value,
    lanes: Value,
    move: Callable[[Value], None],
) -> None:
    """Stores the dwords of a chunk, two or more a lane, at `base` plus each lane's `index`. `move`
    stores those of one lane."""
    count = access.dwords
    active = lanes.cast(f"i{CHUNK}", 0)
    together, apart, end = shortcut(h), f"apart{h.fresh()}", f"put{h.fresh()}"
    h.branch_if(active.compare("eq", EVERY), together, apart)
    h.block(together)
    block = interleaved([load_row(h.operand(0).at(n * ROW), first, CHUNK) for n in range(count)])
    for lane in range(CHUNK):
        order = ", ".join(f"i32 {lane * count + n}" for n in range(count))
        text = (
            f"shufflevector {block.type} {block.name}, {block.type} poison,"
            f" <{count} x i32> <{order}>"
        )
        _place(base, index, lane).store(h.value("i32", count, text), align=1)
    h.branch(end)
    h.block(apart)
    h.for_lanes(active.zext("i64"), lambda lane: move(lane + first))
    h.branch(end)
    h.block(end)


def _gather_dwords(h: Handler, pointers: Value, row: Value, first: Value, lanes: Value) -> Value:
    """Loads an i32 from each active lane's pointer; other lanes keep the row's value."""
    old = load_row(row, first, CHUNK)
    name = f"llvm.masked.gather.v{CHUNK}i32.v{CHUNK}p0"
    h.declarations.add(f"declare {old.type} @{name}({pointers.type}, {lanes.type}, {old.type})")
    text = (
        f"call {old.type} @{name}({pointers.type} align 1 {pointers.name},"
        f" {lanes.type} {lanes.name}, {old.type} {old.name})"
    )
    return h.value("i32", CHUNK, text)
