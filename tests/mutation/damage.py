"""Mutants of a handler, made in its LLVM IR text, with one instruction changed in each.

    operands   two operands exchanged, one replaced by another, another register read or written
    mask       EXEC, a lane mask or SCC ignored or inverted
    constant   a constant or a bound off by one, another predicate, rounding, signedness or width

Code common to all handlers, which is not part of an instruction's semantics, is not mutated: the
call of the next handler, the count of executed instructions, the loop over parts of a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from fly_run.emulator import state
from fly_run.emulator.semantics.base.emit import Handler

from mutation import unseen
from mutation.frame import shared
from mutation.ir_text import CALL, Line, parsed, split, type_of, value_of

KINDS = ("operands", "mask", "constant")


@dataclass(frozen=True)
class Mutant:
    """`text`: the mutant's IR, under the handler's name. `what`: the line before and after."""

    operation: str
    handler: str
    kind: str
    what: str
    text: str


_ANY_LANE = re.compile(r"icmp (?:eq|ne) i64 (%\w+), 0$")
_NUMBER = re.compile(r"-?\d+$")
_SPLAT = re.compile(r"splat \((i\d+) (-?\d+)\)$")
_SPLAT_FLOAT = re.compile(r"splat \((half|float|double) (0xH?)([0-9A-F]+)\)$")

BINARY = (
    *("add", "sub", "mul", "shl", "lshr", "ashr", "and", "or", "xor"),
    *("udiv", "sdiv", "urem", "srem", "fadd", "fsub", "fmul", "fdiv"),
)
BITWISE = ("and", "or", "xor")
OTHER_OPCODE = {
    "lshr": "ashr",
    "ashr": "lshr",
    "zext": "sext",
    "sext": "zext",
    "sitofp": "uitofp",
    "uitofp": "sitofp",
    "fptosi": "fptoui",
    "fptoui": "fptosi",
    "udiv": "sdiv",
    "sdiv": "udiv",
}
SYMMETRIC = ("eq", "ne", "oeq", "une", "one", "ueq", "uno", "ord")
OTHER_PREDICATE = {
    "slt": "sle",
    "sle": "slt",
    "sgt": "sge",
    "sge": "sgt",
    "ult": "ule",
    "ule": "ult",
    "ugt": "uge",
    "uge": "ugt",
    "eq": "ne",
    "ne": "eq",
    "olt": "ole",
    "ole": "olt",
    "ogt": "oge",
    "oge": "ogt",
    "oeq": "une",
    "une": "oeq",
    "one": "ueq",
    "ueq": "one",
    "uno": "ord",
    "ord": "uno",
}
OTHER_FUNCTION = {
    "umin": "umax",
    "umax": "umin",
    "smin": "smax",
    "smax": "smin",
    "minnum": "maxnum",
    "maxnum": "minnum",
    "floor": "ceil",
    "ceil": "floor",
    "trunc": "floor",
    "rint": "trunc",
    "roundeven": "trunc",
    "ctlz": "cttz",
    "cttz": "ctlz",
    "fshl": "fshr",
    "fshr": "fshl",
}


def mutants(operation: str, handler: str, text: str) -> list[Mutant]:
    """Returns all mutants of every kind."""
    lines = parsed(text)
    outside = shared(lines)
    result = []
    short = Handler(handler).lanes < state.LANES
    for kind, number, changed in _changes(lines, short):
        if number in outside:
            continue
        before = lines[number].text
        body = [line.text for line in lines]
        body[number] = changed
        what = f"{before.strip()} → {' ; '.join(part.strip() for part in changed.splitlines())}"
        result.append(Mutant(operation, handler, kind, what, "\n".join(body)))
    return result


def _changes(lines: list[Line], short: bool) -> Iterator[tuple[str, int, str]]:
    """Yields (kind, line number, replacement). `short`: only waves of 32 lanes run the handler."""
    slots = sorted(
        {
            int(match[1])
            for line in lines
            if (match := re.match(r"i8, ptr %op, i64 (\d+)$", line.rest))
            and state.OP_OPERANDS <= int(match[1]) < state.OP_IMMEDIATE
        }
    )
    masks = _masks(lines)
    offsets = _operand_offsets(lines)
    conditions = _conditions(lines)
    deciding, without_sign = unseen.deciding(lines), unseen.without_sign(lines, short)
    sign_masks = unseen.sign_masks(lines)
    last_lanes = unseen.last_lanes(lines) if short else set()
    for line in lines:
        if line.name in deciding:
            for changed in unseen.admitting(line):
                yield "constant", line.number, changed
            continue
        for changed in _operand_changes(line, slots):
            yield "operands", line.number, changed
        if line.name in masks:
            width = line.rest.partition(",")[0]
            inside = f"{line.name}.old = {line.opcode} {line.rest}"
            yield (
                "mask",
                line.number,
                f"  {inside}\n  {line.name} = xor {width} {line.name}.old, {masks[line.name]}",
            )
            yield (
                "mask",
                line.number,
                f"  {inside}\n  {line.name} = or {width} {line.name}.old, {masks[line.name]}",
            )
        if line.name not in offsets | conditions:
            for changed in _constant_changes(line):
                if line.name in without_sign and " = ashr " in changed:
                    continue
                if line.name in last_lanes and "@llvm.cttz" in changed:
                    continue
                if line.name in sign_masks and " = ashr " in changed and _lowered(line, changed):
                    continue
                asked = _ANY_LANE.search(line.text)
                if asked and asked[1] in masks and changed.endswith(" -1"):
                    continue  # a wave of 32 never has all lanes of 64
                yield "constant", line.number, changed


def _lowered(line: Line, changed: str) -> bool:
    """Whether the constant at the end has decreased."""
    before, after = (int(re.findall(r"-?\d+", text)[-1]) for text in (line.text, changed))
    return after < before


def _masks(lines: list[Line]) -> dict[str, int]:
    """Returns the loads of EXEC, of a lane mask operand and of SCC: name → how to invert it."""
    pointers, result = {}, {}
    vectors = {
        match[1]
        for line in lines
        if line.opcode == "bitcast" and (match := re.match(r"i64 (%\w+) to <64 x i1>", line.rest))
    }
    for line in lines:
        if match := re.match(r"i8, ptr %wave, i64 (\d+)$", line.rest):
            pointers[line.name] = int(match[1])
        if match := re.match(r"(i32|i64), ptr (%\w+)$", line.rest):
            place = pointers.get(match[2])
            if line.opcode != "load":
                continue
            if match[1] == "i64" and (place == state.EXEC or line.name in vectors):
                result[line.name] = -1
            elif match[1] == "i32" and place == state.SCC:
                result[line.name] = 1
    return result


def _conditions(lines: list[Line]) -> set[str]:
    """Returns the values that SCC is set to: readers only compare it with 0, so 1 and -1 are
    equivalent."""
    pointers = {line.name for line in lines if line.rest == f"i8, ptr %wave, i64 {state.SCC}"}
    stores = (re.match(r"  store i32 (%\w+), ptr (%\w+)", line.text) for line in lines)
    return {match[1] for match in stores if match and match[2] in pointers}


def _operand_offsets(lines: list[Line]) -> set[str]:
    """Returns the values between a micro-op's operand field and the pointer to the register."""
    names, fields = set(), set()
    for line in lines:
        if re.match(r"i8, ptr %op, i64 \d+$", line.rest):
            fields.add(line.name)
        elif line.opcode == "load" and (match := re.match(r"i32, ptr (%\w+)$", line.rest)):
            if match[1] in fields:
                names.add(line.name)
        elif line.opcode == "zext" and (match := re.match(r"i32 (%\w+) to i64$", line.rest)):
            names |= {line.name} if match[1] in names else set()
    return names


def _operand_changes(line: Line, slots: list[int]) -> Iterator[str]:
    if match := re.match(r"i8, ptr %op, i64 (\d+)$", line.rest):
        for other in slots:
            if int(match[1]) in slots and other != int(match[1]):
                yield f"  {line.name} = getelementptr i8, ptr %op, i64 {other}"
    elif line.opcode in BINARY and len(line.operands) == 2:
        a, b = line.operands
        kind = type_of(split(line.rest)[0])
        if a != b and line.opcode in ("sub", "shl", "lshr", "ashr", "fsub", "fdiv", "udiv", "urem"):
            yield f"  {line.name} = {line.opcode} {kind} {b}, {a}"
        elif a != b and a.startswith("%") and b.startswith("%"):
            yield f"  {line.name} = {line.opcode} {kind} {a}, {a}"
            yield f"  {line.name} = {line.opcode} {kind} {b}, {b}"
    elif line.opcode in ("icmp", "fcmp"):
        predicate, _, rest = line.rest.partition(" ")
        parts = split(rest)
        a, b = value_of(parts[0]), parts[1]
        if a != b and predicate not in SYMMETRIC:
            yield f"  {line.name} = {line.opcode} {predicate} {type_of(parts[0])} {b}, {a}"
    elif line.opcode == "select":
        condition, yes, no = split(line.rest)
        if yes != no:
            yield f"  {line.name} = select {condition}, {no}, {yes}"
    elif line.opcode == "call" and (match := CALL.match(line.rest)):
        arguments = split(match[3])
        for k in range(len(arguments) - 1):
            a, b = arguments[k], arguments[k + 1]
            if a != b and type_of(a) == type_of(b) and not _commutes(match[2], k):
                swapped = [*arguments[:k], b, a, *arguments[k + 2 :]]
                yield f"  {line.name} = call {match[1]} @{_quoted(line.rest)}({', '.join(swapped)})"


def _quoted(rest: str) -> str:
    """Returns a called function's name as in the text, quoted or not."""
    return rest.partition("@")[2].partition("(")[0]


def _commutes(function: str, first: int) -> bool:
    return first == 0 and bool(re.match(r"llvm\.(fma|[us](min|max|add|mul)|(min|max))", function))


def _constant_changes(line: Line) -> Iterator[str]:
    head = f"  {line.name} = "
    if line.opcode in OTHER_OPCODE:
        yield head + f"{OTHER_OPCODE[line.opcode]} {line.rest}"
    if line.opcode in ("icmp", "fcmp"):
        predicate, _, rest = line.rest.partition(" ")
        if predicate in OTHER_PREDICATE:
            yield head + f"{line.opcode} {OTHER_PREDICATE[predicate]} {rest}"
    if line.opcode in (*BINARY, "icmp", "fcmp", "select"):
        start, _, last = line.rest.rpartition(", ")
        for other in _nearby_bits(last, start) if line.opcode in BITWISE else _nearby(last):
            yield head + f"{line.opcode} {start}, {other}"
    if line.opcode == "call" and (match := CALL.match(line.rest)):
        function = re.match(r"llvm\.(\w+)\.", match[2])
        if function and function[1] in OTHER_FUNCTION:
            name = match[2].replace(function[1], OTHER_FUNCTION[function[1]], 1)
            yield head + f"call {match[1]} @{name}({match[3]})"
        arguments = split(match[3])
        for k, argument in enumerate(arguments):
            kind, value = type_of(argument), value_of(argument)
            if kind != "i1" and not match[2].startswith("llvm.masked"):
                for other in _nearby(value):
                    changed = [*arguments[:k], f"{kind} {other}", *arguments[k + 1 :]]
                    listed = ", ".join(changed)
                    yield head + f"call {match[1]} @{_quoted(line.rest)}({listed})"
    if line.opcode == "getelementptr" and (
        match := re.match(rf"i8, ptr %op, i64 {state.OP_IMMEDIATE}$", line.rest)
    ):
        # The immediate, usually an offset, is replaced by another field of the micro-op.
        yield head + f"getelementptr i8, ptr %op, i64 {state.OP_PC}"


def _nearby_bits(value: str, typed: str) -> Iterator[str]:
    """Yields constants near one that is combined bitwise with `typed`: for a single bit its
    neighbours, for a mask of low bits one bit less and one more."""
    match = _SPLAT.match(value)
    if not (match or _NUMBER.match(value)):
        return
    width = int(re.findall(r"i(\d+)", type_of(typed))[-1])
    number = int(match[2] if match else value) % (1 << width)
    single, lowest = number & (number - 1) == 0, number & (number + 1) == 0
    if number <= 1 or not (single or lowest):
        yield from _nearby(value)
        return
    for other in (number >> 1, number << 1 | (0 if single else 1)):
        if other < 1 << width:
            yield f"splat (i{width} {other})" if match else str(other)


def _nearby(value: str) -> Iterator[str]:
    """Yields constants near a constant: plus and minus one; for a float another mantissa."""
    value = value.strip()
    if _NUMBER.match(value):
        yield str(int(value) + 1)
        yield str(int(value) - 1)
    elif match := _SPLAT.match(value):
        yield f"splat ({match[1]} {int(match[2]) + 1})"
        yield f"splat ({match[1]} {int(match[2]) - 1})"
    elif match := _SPLAT_FLOAT.match(value):
        digits = match[3]
        # A high bit of the mantissa: 2^-4 of the value or more.
        raw, bit = int(digits, 16), 1 << {"half": 6, "float": 49, "double": 49}[match[1]]
        one = {"half": 0x3C00, "float": 0x3FF << 52, "double": 0x3FF << 52}[match[1]]
        changed = f"{raw ^ bit if raw else one:0{len(digits)}X}"
        yield f"splat ({match[1]} {match[2]}{changed})"
