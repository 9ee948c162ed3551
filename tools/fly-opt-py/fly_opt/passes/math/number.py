"""Formulas written with Python's operators: a `Number` wraps an SSA value, and its operators build
ops at the current insertion point.

fly-select-math writes its functions with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fly_opt.ir.intrinsics import call
from fly_opt.lowering import interface

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

# Ordered comparisons, false if an operand is NaN (arith's CmpFPredicate).
_PREDICATES = {"==": 1, ">": 2, ">=": 3, "<": 4}


class Number:
    """A float, or the i1 of a comparison. A Python number in a formula takes the other's type."""

    __slots__ = ("value",)

    def __init__(self, value: ir.Value):
        self.value = value

    def __add__(self, other: Operand) -> Number:
        return self._with("arith.addf", other)

    def __sub__(self, other: Operand) -> Number:
        return self._with("arith.subf", other)

    def __rsub__(self, other: float) -> Number:
        return self.like(other)._with("arith.subf", self)

    def __mul__(self, other: Operand) -> Number:
        return self._with("arith.mulf", other)

    def __truediv__(self, other: Operand) -> Number:
        return self._with("arith.divf", other)

    def __rtruediv__(self, other: float) -> Number:
        return self.like(other)._with("arith.divf", self)

    def __neg__(self) -> Number:
        return _made("arith.negf", self.value.type, self)

    def __abs__(self) -> Number:
        return self._called("llvm.fabs")

    def __lt__(self, other: Operand) -> Number:
        return self._compared("<", other)

    def __gt__(self, other: Operand) -> Number:
        return self._compared(">", other)

    def __ge__(self, other: Operand) -> Number:
        return self._compared(">=", other)

    def equals(self, other: Operand) -> Number:
        return self._compared("==", other)

    def __and__(self, other: Number) -> Number:
        return _made("arith.andi", self.value.type, self, other)

    def __or__(self, other: Number) -> Number:
        return _made("arith.ori", self.value.type, self, other)

    def __invert__(self) -> Number:
        """Negates a comparison."""
        from fly_dialect.bindings import ir

        true = ir.IntegerAttr.get(self.value.type, -1)
        one = _made("arith.constant", self.value.type, value=true)
        return _made("arith.xori", self.value.type, self, one)

    def floor(self) -> Number:
        return self._called("llvm.floor")

    def rounded(self) -> Number:
        """Rounds to the nearest integer, ties to even."""
        return self._called("llvm.roundeven")

    def sqrt(self) -> Number:
        return self._called("llvm.sqrt")

    def exp(self) -> Number:
        """For an f32, by the backend's own means."""
        return Number(interface.current().exponential(self.value))

    def with_sign_of(self, other: Number) -> Number:
        return self._called("llvm.copysign", other)

    def widened(self) -> Number:
        """Converts an f32, or an integer of up to 32 bits, to f64, exactly."""
        from fly_dialect.bindings import ir

        op = "arith.sitofp" if isinstance(self.value.type, ir.IntegerType) else "arith.extf"
        return _made(op, ir.F64Type.get(), self)

    def narrowed(self) -> Number:
        """Rounds an f64 to f32."""
        from fly_dialect.bindings import ir

        return _made("arith.truncf", ir.F32Type.get(), self)

    def mantissa(self) -> Number:
        """Returns m of ±m·2^k, with 1/2 <= m < 1."""
        return Number(interface.current().significand(self.value))

    def exponent(self) -> Number:
        """Returns k of ±m·2^k, as a float."""
        found = interface.current().exponent(self.value)
        return _made("arith.sitofp", self.value.type, Number(found))

    def times_power_of_two(self, exponent: Number) -> Number:
        """Computes self·2^exponent for an f64 and an integral float; the exponent of a NaN is
        ignored."""
        from fly_dialect.bindings import ir

        i32 = ir.IntegerType.get_signless(32)
        whole = call("llvm.fptosi.sat.i32.f64", i32, [exponent.value])
        return Number(call("llvm.ldexp.f64.i32", self.value.type, [self.value, whole]))

    def _called(self, name: str, *others: Number) -> Number:
        operands = [self.value, *(other.value for other in others)]
        return Number(call(f"{name}.{self.value.type}", self.value.type, operands))

    def _with(self, name: str, other: Operand) -> Number:
        return _made(name, self.value.type, self, self.like(other))

    def _compared(self, sign: str, other: Operand) -> Number:
        from fly_dialect.bindings import ir

        predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _PREDICATES[sign])
        i1 = ir.IntegerType.get_signless(1)
        return _made("arith.cmpf", i1, self, self.like(other), predicate=predicate)

    def like(self, other: Operand) -> Number:
        """Returns `other`, converted to a constant of this value's type if it is a Python
        number."""
        from fly_dialect.bindings import ir

        if isinstance(other, Number):
            return other
        kind = self.value.type
        return _made("arith.constant", kind, value=ir.FloatAttr.get(kind, float(other)))


Operand = Number | float


def _made(name: str, kind: ir.Type, *operands: Number, **attributes: ir.Attribute) -> Number:
    from fly_dialect.bindings import ir

    values = [operand.value for operand in operands]
    return Number(ir.Operation.create(name, [kind], values, attributes).results[0])


def fma(a: Number, b: Operand, c: Operand) -> Number:
    """Computes a·b + c, rounded once."""
    return a._called("llvm.fma", a.like(b), a.like(c))


def where(condition: Number, a: Operand, b: Operand) -> Number:
    """Selects `a` if the condition holds, otherwise `b`; one of them may be a Python number."""
    known = a if isinstance(a, Number) else b
    assert isinstance(known, Number)
    return _made("arith.select", known.value.type, condition, known.like(a), known.like(b))


def polynomial(x: Number, coefficients: Sequence[float]) -> Number:
    """Evaluates by Horner's scheme with fma; the lowest coefficient comes first."""
    result = x.like(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = fma(result, x, coefficient)
    return result


def either(
    condition: Number,
    like: Sequence[Number],
    first: Callable[[], Sequence[Number]],
    second: Callable[[], Sequence[Number]],
) -> list[Number]:
    """Builds a branch: the results of `first()` if the condition holds, otherwise of `second()`;
    only one of them is computed. The results have the types of `like`."""
    from fly_dialect.bindings import ir

    kinds = [number.value.type for number in like]
    op = ir.Operation.create("scf.if", kinds, [condition.value], regions=2)
    for region, function in zip(op.regions, (first, second), strict=True):
        with ir.InsertionPoint(region.blocks.append()):
            ir.Operation.create("scf.yield", [], [number.value for number in function()])
    return [Number(result) for result in op.results]


def repeated(
    condition: Callable[[Number], Number], body: Callable[[Number], Number], start: Number
) -> Number:
    """Builds a loop: applies `body` to the value while the condition holds for it."""
    from fly_dialect.bindings import ir

    kind = start.value.type
    op = ir.Operation.create("scf.while", [kind], [start.value], regions=2)
    before, after = (region.blocks.append(kind) for region in op.regions)
    (value,) = before.arguments
    with ir.InsertionPoint(before):
        ir.Operation.create("scf.condition", [], [condition(Number(value)).value, value])
    (value,) = after.arguments
    with ir.InsertionPoint(after):
        ir.Operation.create("scf.yield", [], [body(Number(value)).value])
    return Number(op.results[0])
