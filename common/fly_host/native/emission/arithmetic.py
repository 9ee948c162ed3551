"""Integer expressions as LLVM IR: each has a value, and a condition under which it has one.

The integers of a program are mathematical (`fly_host.program`). Here they are `i64`, and whatever
leaves 64 bits, divides by zero or shifts too far makes `ok` false; the value is then anything, but
never poison, so that a `select` may compute both sides. `fly_host.integers` is the model:

    floordiv    sdiv, less one where there is a remainder and the signs differ
    ceildiv     sdiv, plus one where there is a remainder and the signs agree
    mod         srem, plus the divisor where there is a remainder and the signs differ

The one quotient that leaves 64 bits is -2^63 / -1. Its remainder is 0: LLVM's srem has no value for
it, so that remainders by -1 are computed as those by 1.
"""

from __future__ import annotations

from typing import NamedTuple

from fly_host.integers import DIVISIONS, LOWEST
from fly_host.native.emission.code import Code

OVERFLOWING = {"add": "sadd", "sub": "ssub", "mul": "smul"}
CHOOSING = {"min": "smin", "max": "smax"}
BITWISE = ("and", "or", "xor")
COMPARING = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle"}

DECLARATIONS = [
    *(f"declare {{i64, i1}} @llvm.{n}.with.overflow.i64(i64, i64)" for n in OVERFLOWING.values()),
    *(f"declare i64 @llvm.{name}.i64(i64, i64)" for name in CHOOSING.values()),
]


class Number(NamedTuple):
    """An integer: the text of its value, and of the `i1` that tells whether it has one. `ok` is
    None where it always has."""

    value: str
    ok: str | None = None

    @property
    def constant(self) -> int | None:
        """The value, where it is known when the code is made."""
        return None if self.value.startswith("%") else int(self.value)


NOTHING = Number("0", "false")


def select(code: Code, condition: Number, then: Number, otherwise: Number) -> Number:
    """`then` if the condition is not 0, else `otherwise`: the other one needs no value."""
    chosen = code.value(f"icmp ne i64 {condition.value}, 0")
    value = code.value(f"select i1 {chosen}, i64 {then.value}, i64 {otherwise.value}")
    ok = None
    if then.ok != otherwise.ok:
        sides = f"i1 {then.ok or 'true'}, i1 {otherwise.ok or 'true'}"
        ok = code.value(f"select i1 {chosen}, {sides}")
    else:
        ok = then.ok
    return Number(value, code.both(condition.ok, ok))


def binary(code: Code, op: str, a: Number, b: Number) -> Number:
    """The value of a binary operator."""
    ok = code.both(a.ok, b.ok)
    if op in OVERFLOWING:
        return _overflowing(code, op, a, b, ok)
    if op in CHOOSING:
        call = f"call i64 @llvm.{CHOOSING[op]}.i64(i64 {a.value}, i64 {b.value})"
        return Number(code.value(call), ok)
    if op in BITWISE:
        return Number(code.value(f"{op} i64 {a.value}, {b.value}"), ok)
    if op in COMPARING:
        holds = code.value(f"icmp {COMPARING[op]} i64 {a.value}, {b.value}")
        return Number(code.value(f"zext i1 {holds} to i64"), ok)
    if op in DIVISIONS:
        return _division(code, op, a, b, ok)
    return _shift(code, op, a, b, ok)


def _overflowing(code: Code, op: str, a: Number, b: Number, ok: str | None) -> Number:
    name = OVERFLOWING[op]
    pair = code.value(
        f"call {{i64, i1}} @llvm.{name}.with.overflow.i64(i64 {a.value}, i64 {b.value})"
    )
    value = code.value(f"extractvalue {{i64, i1}} {pair}, 0")
    left = code.value(f"extractvalue {{i64, i1}} {pair}, 1")
    return Number(value, code.both(ok, code.value(f"xor i1 {left}, true")))


def _division(code: Code, op: str, a: Number, b: Number, ok: str | None) -> Number:
    divisor, by = b.value, b.constant
    if by == 0:
        return NOTHING
    quotient = op not in ("mod", "rem")
    zero = "false"
    if by is None:
        zero = code.value(f"icmp eq i64 {b.value}, 0")
        ok = code.both(ok, code.value(f"xor i1 {zero}, true"))
    if by in (None, -1):
        minus = code.value(f"icmp eq i64 {b.value}, -1")
        if quotient:
            lowest = code.value(f"icmp eq i64 {a.value}, {LOWEST}")
            minus = code.value(f"and i1 {lowest}, {minus}")
            ok = code.both(ok, code.value(f"xor i1 {minus}, true"))
        bad = code.value(f"or i1 {zero}, {minus}")
        divisor = code.value(f"select i1 {bad}, i64 1, i64 {b.value}")
    if op == "truncdiv":
        return Number(code.value(f"sdiv i64 {a.value}, {divisor}"), ok)
    rest = code.value(f"srem i64 {a.value}, {divisor}")
    if op == "rem":
        return Number(rest, ok)
    uneven = code.value(f"icmp ne i64 {rest}, 0")
    signs = code.value(f"xor i64 {rest}, {divisor}")
    which = "sge" if op == "ceildiv" else "slt"
    moved = code.value(f"and i1 {uneven}, {code.value(f'icmp {which} i64 {signs}, 0')}")
    if op == "mod":
        more = code.value(f"select i1 {moved}, i64 {divisor}, i64 0")
        return Number(code.value(f"add i64 {rest}, {more}"), ok)
    down = code.value(f"sdiv i64 {a.value}, {divisor}")
    one = code.value(f"zext i1 {moved} to i64")
    return Number(code.value(f"{'add' if op == 'ceildiv' else 'sub'} i64 {down}, {one}"), ok)


def _shift(code: Code, op: str, a: Number, b: Number, ok: str | None) -> Number:
    by = b.value
    if b.constant is None or not 0 <= b.constant < 64:
        ok = code.both(ok, code.value(f"icmp ult i64 {by}, 64"))
        by = code.value(f"and i64 {by}, 63")
    if op == "shr":
        return Number(code.value(f"ashr i64 {a.value}, {by}"), ok)
    value = code.value(f"shl i64 {a.value}, {by}")
    back = code.value(f"ashr i64 {value}, {by}")
    return Number(value, code.both(ok, code.value(f"icmp eq i64 {back}, {a.value}")))
