"""Recognises mutations that only affect time, or nothing, so that `damage` does not make them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fly_run.emulator import state

from mutation.ir_text import NAME, Line, split, type_of, value_of

_SHORTCUT = re.compile(r"  br i1 (%\w+), label %shortcut")


def deciding(lines: list[Line]) -> set[str]:
    """Returns the values that only decide whether a shortcut is taken (`transfer.shortcut`). The
    general path has the same results, so a shortcut that is taken too seldom can't be detected:
    `admitting` has the mutations that can."""
    users: dict[str, list[Line]] = {}
    for line in lines:
        for name in NAME.findall(line.rest if line.name else line.text):
            users.setdefault(name, []).append(line)
    found: set[str] = set()
    for line in reversed(lines):
        using = users.get(line.name, []) if line.name else []
        if using and all(u.name in found or _SHORTCUT.match(u.text) for u in using):
            found.add(line.name)
    return found


def admitting(line: Line) -> Iterator[str]:
    """Yields mutations of a line of `deciding` with which the shortcut is taken more often: a
    comparison that always holds, a bound that is one larger, one condition instead of two."""
    head = f"  {line.name} = "
    if line.opcode == "icmp":
        predicate, _, rest = line.rest.partition(" ")
        typed, other = split(rest)
        kind, value = type_of(typed), value_of(typed)
        yield head + f"icmp eq {kind} {value}, {value}"
        if predicate == "ule" and value.startswith("%") and other.startswith("%"):
            larger, one = f"{line.name}.larger", "splat (i32 1)" if "x i32>" in kind else "1"
            yield f"  {larger} = add {kind} {other}, {one}\n{head}icmp ule {typed}, {larger}"
    elif line.opcode == "and" and re.match(r"(i1|<\d+ x i1>) ", line.rest):
        kind = type_of(split(line.rest)[0])
        for value in line.operands:
            yield head + f"and {kind} {value}, {value}"


def sign_masks(lines: list[Line]) -> set[str]:
    """Returns the shifts that fill a word with its sign and whose first bit is then masked off
    (`float.order`): the sign and its neighbour, shifted by one less, give the same."""
    found = set()
    for line in lines:
        if line.opcode != "ashr":
            continue
        uses = [o for o in lines if line.name in NAME.findall(o.rest if o.name else o.text)]
        if uses and all(o.opcode == "lshr" and _shifts_by(o, 1) for o in uses):
            width = int(re.findall(r"i(\d+)", type_of(split(line.rest)[0]))[-1])
            if _shifts_by(line, width - 1):
                found.add(line.name)
    return found


def _shifts_by(line: Line, count: int) -> bool:
    return bool(re.search(rf", (splat \(i\d+ {count}\)|{count})$", line.rest))


def without_sign(lines: list[Line], short: bool) -> set[str]:
    """Returns the right shifts of which only bits of the original value are used: those that
    extract a part of a lane mask, by the first lane of a loop over parts of a row; and in a `short`
    wave's handler those of EXEC from part to part, as its upper half is 0."""
    steps = _first_lanes(lines)
    execs = _masks_in_turn(lines) if short else set()
    found = set()
    for line in lines:
        if line.opcode != "lshr" or not (match := re.match(r"i(32|64) (%\w+), (\S+)$", line.rest)):
            continue
        if match[2] in execs and _NUMBER.match(match[3]):
            found.add(line.name)
        width = steps.get(match[3])
        uses = [o for o in lines if line.name in NAME.findall(o.rest if o.name else o.text)]
        if width and all(o.rest == f"i{match[1]} {line.name} to i{width}" for o in uses):
            found.add(line.name)
    return found


def last_lanes(lines: list[Line]) -> set[str]:
    """Returns the counts of leading zeros of EXEC that only bound a loop over a wave of 32 lanes
    (`63 - ctlz`): with trailing zeros in their place the bound is 32 or more, and the loop goes on
    over lanes that are never active."""
    named = {line.name: line for line in lines if line.name}
    found = set()
    for line in lines:
        match = re.match(r"i64 63, (%\w+)$", line.rest)
        count = named.get(match[1]) if match and line.opcode == "sub" else None
        if count is None or "@llvm.ctlz.i64" not in count.rest:
            continue
        uses = [o for o in lines if line.name in NAME.findall(o.rest if o.name else o.text)]
        if uses and all(re.match(rf"ule i64 %\w+, {line.name}$", o.rest) for o in uses):
            found.add(count.name)
    return found


_NUMBER = re.compile(r"\d+$")


def _first_lanes(lines: list[Line]) -> dict[str, int]:
    """Returns the counters of loops over parts of a row, and the same as i32, with the number of
    lanes of a part."""
    counters = {line.name for line in lines if line.opcode == "phi" and "i64 [0, " in line.rest}
    steps = {}
    for line in lines:
        match = re.match(r"i64 (%\w+), (8|16|32)$", line.rest)
        if match and line.opcode == "add" and match[1] in counters:
            steps[match[1]] = int(match[2])
    for line in lines:
        match = re.match(r"i64 (%\w+) to i32$", line.rest)
        if match and line.opcode == "trunc" and match[1] in steps:
            steps[line.name] = steps[match[1]]
    return steps


def _masks_in_turn(lines: list[Line]) -> set[str]:
    """Returns what a loop over parts of a row has left of EXEC."""
    places = {line.name for line in lines if line.rest == f"i8, ptr %wave, i64 {state.EXEC}"}
    loads = {f"i64, ptr {place}" for place in places}
    whole = {line.name for line in lines if line.opcode == "load" and line.rest in loads}
    starts = ((line.name, re.match(r"i64 \[(%\w+), ", line.rest)) for line in lines)
    return whole | {name for name, match in starts if match and match[1] in whole}
