"""Finds code common to all handlers, which is not part of an instruction's semantics: the call of
the next handler, the count of executed instructions, the loop over parts of a row."""

from __future__ import annotations

import re

from fly_run.emulator import state

from mutation.ir_text import NAME, Line


def shared(lines: list[Line]) -> set[int]:
    """Returns the numbers of lines that belong to every handler's frame, not to the instruction."""
    counting = {state.OP, state.LANDING, state.QUANTUM, state.STATUS}
    found: set[int] = set()
    frame: set[str] = set()  # values that only the frame uses
    back_edges = set()
    for line in lines:
        if match := re.match(r"  br i1 (%\w+), label %loop", line.text):
            back_edges.add(match[1])
        if match := re.match(r"  musttail call void (%\w+)\(ptr %wave, ptr (%\w+)\)", line.text):
            frame |= {match[1]}
    for line in lines:
        used = set(NAME.findall(line.rest if line.name else line.text))
        offset = re.match(r"i8, ptr (%wave|%op), i64 (\d+)$", line.rest)
        if line.opcode == "getelementptr" and offset:
            place = int(offset[2])
            if (offset[1] == "%wave" and place in counting) or (
                offset[1] == "%op" and place in (state.OP_SIZE, state.OP_INDEX)
            ):
                frame.add(line.name)
                found.add(line.number)
        elif used & frame:
            found.add(line.number)
            if line.name:
                frame.add(line.name)
        if line.name in back_edges or line.opcode in ("phi", ""):
            found.add(line.number)
        # The step of the loop over parts of a row.
        if line.opcode == "add" and re.search(r"i64 %v\d+, (8|16|32|64)$", line.rest):
            following = [o.rest for o in lines if o.opcode == "icmp" and f" {line.name}," in o.rest]
            if any(rest.endswith(", 64") for rest in following):
                found.add(line.number)
    return found | _where_runs_begin(lines)


def _where_runs_begin(lines: list[Line]) -> set[int]:
    """Returns the lines that only compute the number stored in LANDING: that of the micro-op that a
    jump goes to."""
    landings = {line.name for line in lines if line.rest == f"i8, ptr %wave, i64 {state.LANDING}"}
    named = {line.name: line for line in lines if line.name}
    found: set[int] = set()
    for line in lines:
        store = re.match(r"  store i64 (%\w+), ptr (%\w+)", line.text)
        if not store or store[2] not in landings:
            continue
        value = named.get(store[1])
        while value and sum(value.name in NAME.findall(o.text) for o in lines) == 2:
            found.add(value.number)
            value = named.get(next(iter(NAME.findall(value.rest)), ""))
    return found
