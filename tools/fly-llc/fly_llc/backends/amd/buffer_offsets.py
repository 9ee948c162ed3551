"""Offsets into buffers that LLVM would divide into a negative number and a constant.

Loop strength reduction lets a loop that runs a known number of times count from a negative number
up to 0, and adds what is missing where the counter is used:

        %i = phi i32 [ -320, %entry ], [ %next, %loop ]        offset = (%i + %row) + 384

Instruction selection puts such a constant into the instruction (`splitBufferOffsets`). In a
register the sum of both parts wraps at 32 bits, but the range check of a buffer does not let it
wrap: where %i + %row is negative, the access is out of range, a load gives 0 and a store is
dropped. LLVM says there that a negative offset in a register is illegal, but does not see that a
register may hold one.

An assembly instruction without text, whose result is its operand, stands for the whole sum, which
is then computed in registers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from fly_llc.codegen import ir_text
from fly_llc.codegen.ir_text import NAME

_CALL = re.compile(
    r"^ .*\bcall .*@llvm\.amdgcn\.(?:raw|struct)\.(?:ptr\.)?(t?)buffer\.([\w.]+)\((.*)\).*$",
    re.MULTILINE,
)
_DEFINITION = re.compile(rf"^ +({NAME}) = (\w+) (.*)$", re.MULTILINE)
_ANY_NAME = re.compile(NAME)
_SUMMAND = re.compile(r", (-?\d+)(?:,|$)")
_START = re.compile(r"\[ (-?\d+), ")
_NUMBER = r"i(?:32|64)"
# A loop that runs a known number of times begins and ends with constants, or ends with the sum of
# what it begins with and a constant.
_COUNTER = re.compile(rf"^ +{NAME} = phi {_NUMBER} .*\[ -?\d+, ", re.MULTILINE)
_BOUND = re.compile(rf"^ +{NAME} = icmp (?:samesign )?\w+ i\d+ {NAME}, -?\d+", re.MULTILINE)
_PHI = re.compile(rf"^ +{NAME} = phi {_NUMBER} (.*)$", re.MULTILINE)
_SUM = re.compile(rf"^ +({NAME}) = (?:add|or) .*?{_NUMBER} ({NAME}), -?\d+", re.MULTILINE)
_COMPARISON = re.compile(rf"^ +{NAME} = icmp (.*)$", re.MULTILINE)
_NEGATIVE = re.compile(rf"^ +{NAME} = phi {_NUMBER} .*\[ -\d+, ", re.MULTILINE)
# What leaves a constant that is added to its operand a constant that is added to its result.
_SUMS = ("add", "sub", "or", "shl", "mul", "trunc", "zext", "sext", "freeze")


def may_occur(ir: str) -> bool:
    """Returns whether such offsets can be in a module after loop strength reduction: whether it
    accesses buffers, and has a counter that may begin with a negative constant."""
    if not _CALL.search(ir):
        return False
    if _NEGATIVE.search(ir) or (_COUNTER.search(ir) and _BOUND.search(ir)):
        return True
    first = {name for phi in _PHI.findall(ir) for name in _ANY_NAME.findall(phi)}
    compared = {name for one in _COMPARISON.findall(ir) for name in _ANY_NAME.findall(one)}
    return any(made in compared and start in first for made, start in _SUM.findall(ir))


def whole(ir: str) -> str | None:
    """Returns the module, after loop strength reduction, with these offsets computed in registers.
    None if there is none."""
    return ir_text.rewritten(ir, _whole)


def _whole(function: str) -> str | None:
    if not _NEGATIVE.search(function) and not _COUNTER.search(function):
        return None
    rows = {row[1]: (row[2], row[3]) for row in _DEFINITION.finditer(function)}
    count = 0

    def computed(call: re.Match[str]) -> str:
        nonlocal count
        # The offset is followed by a scalar one and the cache policy, or by one more constant.
        more = 4 if call[1] or ".lds" in call[2] else 3
        before, offset, *after = call[3].rsplit(", ", more)
        name = offset.rpartition(" ")[2]
        if not name.startswith("%") or not _is_divided(name, rows):
            return call[0]
        made = f"%fly.offset.{count}"
        count += 1
        arguments = ", ".join([before, f"i32 {made}", *after])
        line = call[0][: call.start(3) - call.start()] + arguments
        line += call[0][call.end(3) - call.start() :]
        return f'  {made} = call i32 asm "", "=v,0"(i32 {name})\n{line}'

    made = _CALL.sub(computed, function)
    return made if count else None


def _is_divided(offset: str, rows: Mapping[str, tuple[str, str]]) -> bool:
    """Whether an offset is the sum of a positive constant and of what may be negative, by a counter
    that begins with a negative constant, or with a constant and counts down."""
    has_constant = may_be_negative = False
    waiting, seen = [(offset, True)], {offset}
    while waiting:
        name, is_summand = waiting.pop()
        operation, rest = rows.get(name, ("", ""))
        if operation == "phi":
            starts = [int(one) for one in _START.findall(rest)]
            down = any(_step(one, name, rows) < 0 for one in _ANY_NAME.findall(rest))
            may_be_negative |= any(one < 0 or down for one in starts)
        elif operation in _SUMS:
            number = _SUMMAND.search(rest)
            has_constant |= bool(
                is_summand and operation == "add" and number and int(number[1]) > 0
            )
        else:
            continue
        for one in _ANY_NAME.findall(rest):
            if one not in seen:
                seen.add(one)
                waiting.append((one, is_summand and operation != "phi"))
    return has_constant and may_be_negative


def _step(name: str, counter: str, rows: Mapping[str, tuple[str, str]]) -> int:
    """What a value is more than a counter. 0 if it is not the counter plus a constant."""
    operation, rest = rows.get(name, ("", ""))
    number = _SUMMAND.search(rest)
    if operation != "add" or not number or counter not in _ANY_NAME.findall(rest):
        return 0
    return int(number[1])
