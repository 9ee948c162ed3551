"""A hash-consed graph of integer expressions.

    graph = Graph()
    blocks = graph.ceildiv(graph.extent("A", 0), graph.const(256))
    graph.expressions[blocks]                    # ("ceildiv", 0, 1)

Expressions have the form described in `fly_host.program`. The leaf ("variable", k) is the
variable of a loop. Equal expressions have the same index, so values that outputs, grids and
arguments share are computed once.

Values are mathematical integers. An expression is *undefined* if its value does not fit 64 signed
bits, or if it divides by zero or shifts by less than 0 or more than 63. This is an error only if
the value is needed; the branch of a `select` that is not taken is not needed. Simplifications
preserve both the value and definedness: an operand that may be undefined is never dropped. Extents,
strides and variables are always defined, and extents are at least 0; a scalar of type u64 may be
undefined.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fly_common.errors import InputError
from fly_common.quoting import quoted

from fly_host.bounds import ANY, EXTENT, UNKNOWN, Bounds, bounds_of, of_select
from fly_host.integers import BINARY, DIVISIONS, HIGHEST, LOWEST, SHIFTS, show
from fly_host.program import Expression

LEAVES = {"extent": EXTENT, "stride": ANY, "scalar": UNKNOWN, "variable": ANY}
COMMUTATIVE = frozenset(("add", "mul", "min", "max", "and", "or", "xor", "eq", "ne"))
# x op e = x for every x, and for the commutative ones e op x = x.
_NEUTRAL = {
    "add": 0, "sub": 0, "or": 0, "xor": 0, "shl": 0, "shr": 0, "and": -1,
    "mul": 1, "floordiv": 1, "ceildiv": 1, "truncdiv": 1,
}  # fmt: skip
_SAME = {"min", "max", "and", "or"}  # x op x = x
_OF_ITSELF = {"sub": 0, "xor": 0, "eq": 1, "le": 1, "ne": 0, "lt": 0}  # x op x


class Graph:
    """`expressions[i]` is expression i; its operands come before it."""

    def __init__(self, expressions: Iterable[Expression] = ()):
        """Adds the given expressions unchanged; they keep their indices."""
        self.expressions: list[Expression] = []
        self._bounds: list[Bounds] = []
        self._known: dict[Expression, int] = {}
        for expression in expressions:
            self._append(tuple(expression))

    def make(self, op: str, *operands: Any) -> int:
        """Returns the index of the simplified expression, adding it if it does not exist."""
        if op == "const":
            return self.const(*operands)
        if op in LEAVES:
            return self._index((op, *operands))
        if op == "select":
            return self.select(*operands)
        a, b = operands
        if op in COMMUTATIVE:
            a, b = sorted((a, b), key=self._rank)
        simple = self._simplified(op, a, b)
        return self._index((op, a, b)) if simple is None else simple

    def _index(self, expression: Expression) -> int:
        found = self._known.get(expression)
        return self._append(expression) if found is None else found

    def _append(self, expression: Expression) -> int:
        index = len(self.expressions)
        bounds = self._bounds_of(expression)
        self.expressions.append(expression)
        self._bounds.append(bounds)
        self._known.setdefault(expression, index)
        return index

    def _bounds_of(self, expression: Expression) -> Bounds:
        op, *operands = expression
        if op == "const":
            return Bounds(operands[0], operands[0], True)
        if op in LEAVES:
            return LEAVES[op]
        of = [self._bounds[operand] for operand in operands]
        return of_select(*of) if op == "select" else bounds_of(op, *of)

    def _rank(self, index: int) -> tuple[bool, int]:
        """The sort key for operands of commutative operators: constants come last."""
        return self.expressions[index][0] == "const", index

    # -- leaves ----------------------------------------------------------------------------------

    def const(self, value: int) -> int:
        if not LOWEST <= value <= HIGHEST:
            raise InputError(f"{quoted(value)} does not fit 64 bits")
        return self._index(("const", int(value)))

    def extent(self, tensor: str, axis: int) -> int:
        return self._index(("extent", tensor, axis))

    def stride(self, tensor: str, axis: int) -> int:
        return self._index(("stride", tensor, axis))

    def scalar(self, name: str) -> int:
        return self._index(("scalar", name))

    def variable(self, number: int) -> int:
        return self._index(("variable", number))

    # -- arithmetic ------------------------------------------------------------------------------

    def add(self, a: int, b: int) -> int:
        return self.make("add", a, b)

    def sub(self, a: int, b: int) -> int:
        return self.make("sub", a, b)

    def mul(self, a: int, b: int) -> int:
        return self.make("mul", a, b)

    def floordiv(self, a: int, b: int) -> int:
        return self.make("floordiv", a, b)

    def ceildiv(self, a: int, b: int) -> int:
        return self.make("ceildiv", a, b)

    def mod(self, a: int, b: int) -> int:
        return self.make("mod", a, b)

    def maximum(self, a: int, b: int) -> int:
        return self.make("max", a, b)

    def product(self, factors: Iterable[int]) -> int:
        result = self.const(1)
        for factor in factors:
            result = self.mul(result, factor)
        return result

    # -- conditions: 1 or 0 ----------------------------------------------------------------------

    def eq(self, a: int, b: int) -> int:
        return self.make("eq", a, b)

    def ne(self, a: int, b: int) -> int:
        return self.make("ne", a, b)

    def lt(self, a: int, b: int) -> int:
        return self.make("lt", a, b)

    def le(self, a: int, b: int) -> int:
        return self.make("le", a, b)

    def truth(self, a: int) -> int:
        """1 where a is not 0."""
        low, high, _ = self._bounds[a]
        return a if low >= 0 and high <= 1 else self.ne(a, self.const(0))

    def logical_not(self, a: int) -> int:
        return self.eq(a, self.const(0))

    def logical_and(self, a: int, b: int) -> int:
        """Whether both hold. As with Python's `and`, b needs a value only where a holds."""
        a, b = self.truth(a), self.truth(b)
        if self._bounds[b].defined:
            return self.make("and", a, b)
        return self.select(a, b, self.const(0))

    def logical_or(self, a: int, b: int) -> int:
        """Whether one holds. As with Python's `or`, b needs a value only where a does not hold."""
        a, b = self.truth(a), self.truth(b)
        if self._bounds[b].defined:
            return self.make("or", a, b)
        return self.select(a, self.const(1), b)

    def select(self, condition: int, a: int, b: int) -> int:
        """a where the condition is not 0, b where it is; the other one needs no value."""
        known = self._bounds[condition]
        if known.constant == 0:
            return b
        if known.defined and (a == b or known.low > 0 or known.high < 0):
            return a
        return self._index(("select", condition, a, b))

    # -- what is known ---------------------------------------------------------------------------

    def constant(self, index: int) -> int | None:
        """The value of an expression that is a constant."""
        return self._bounds[index].constant

    def bounds(self, index: int) -> Bounds:
        return self._bounds[index]

    def text(self, index: int) -> str:
        """An expression as a person writes it: `ceildiv(A.shape[0], 256)`."""
        return show(self.expressions, index)

    def _simplified(self, op: str, a: int, b: int) -> int | None:
        """Returns an operand, a constant or a simpler expression that has the same value and is
        defined in the same cases as `op` of a and b; None if there is none."""
        known, first, second = bounds_of(op, self._bounds[a], self._bounds[b]), *self._both(a, b)
        if known.constant is not None:
            return self.const(known.constant)
        if first.constant is not None and second.constant is not None:
            return self._folded(op, first.constant, second.constant)
        if second.constant is not None and second.constant == _NEUTRAL.get(op):
            return a
        if a == b and op in _SAME:
            return a
        if a == b and op in _OF_ITSELF and first.defined:
            return self.const(_OF_ITSELF[op])
        if op in ("min", "max"):
            return self._extreme(op, a, b)
        if op == "mul" and second.constant is not None:
            return self._multiplied(a, second.constant)
        if op in ("mod", "rem") and second.defined and 0 <= first.low <= first.high < second.low:
            return a
        return self._divided(op, a, second.constant) if op in DIVISIONS else None

    def _both(self, a: int, b: int) -> tuple[Bounds, Bounds]:
        return self._bounds[a], self._bounds[b]

    def _folded(self, op: str, a: int, b: int) -> int | None:
        # A shift that has a value has but one, by its bounds.
        if op in SHIFTS or (op in DIVISIONS and b == 0):
            return None
        value = int(BINARY[op](a, b))
        return self.const(value) if LOWEST <= value <= HIGHEST else None

    def _extreme(self, op: str, a: int, b: int) -> int | None:
        """The operand that is always the minimum or maximum, if the other one is defined."""
        for one, other in ((a, b), (b, a)):
            x, y = self._both(one, other)
            if y.defined and (x.high <= y.low if op == "min" else x.low >= y.high):
                return one
        return None

    def _multiplied(self, a: int, factor: int) -> int | None:
        """Combines the constants of a product of products. A positive factor cannot bring a value
        that does not fit 64 bits back into range."""
        kind, *operands = self.expressions[a]
        constant = self.constant(operands[1]) if kind == "mul" else None
        if factor < 1 or constant is None or not LOWEST <= constant * factor <= HIGHEST:
            return None
        return self.mul(operands[0], self.const(constant * factor))

    def _divided(self, op: str, a: int, divisor: int | None) -> int | None:
        """Divides a product by a divisor of its constant, if the product is always defined."""
        kind, *operands = self.expressions[a]
        factor = self.constant(operands[1]) if kind == "mul" else None
        if not divisor or factor is None or factor % divisor or not self._bounds[a].defined:
            return None
        if op in ("mod", "rem"):
            return self.const(0)
        return self.mul(operands[0], self.const(factor // divisor))
