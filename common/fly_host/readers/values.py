"""The values of a program's expressions while it runs.

values = Values(program, {"A": Extents((1000,), (1,))}, {"n": 1000})
values[3]                                          computed when it is first asked for
"""

from __future__ import annotations

from collections.abc import Mapping

from fly_common.errors import InputError
from fly_common.quoting import quoted
from fly_common.record import field, record

from fly_host import refusals
from fly_host.integers import Undefined, binary, checked, show
from fly_host.program import LEAVES, Expression, Program


@record
class Extents:
    """What a program may ask about a tensor: extents and strides in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]


@record(frozen=False)
class Values:
    """The values of expressions, each computed once. `tensors` and `variables` grow as steps make
    them; `assign` and `see` drop what depends on what they change."""

    program: Program
    tensors: dict[str, Extents]
    scalars: Mapping[str, int]
    variables: dict[int, int] = field(default_factory=dict)
    _known: dict[int, int | Undefined] = field(default_factory=dict)
    _users: dict[int | str, list[int]] | None = None

    def __getitem__(self, index: int) -> int:
        """The value of an expression that is needed. InputError where it has none."""
        value = self._value(index)
        if isinstance(value, Undefined):
            program = self.program
            raise InputError(
                self._reason(index),
                hint=f"it is needed for {show(program.expressions, index)}",
            )
        return value

    def triple(self, indices: tuple[int, int, int]) -> tuple[int, int, int]:
        x, y, z = (self[index] for index in indices)
        return x, y, z

    def several(self, indices: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self[index] for index in indices)

    def assign(self, variables: Mapping[int, int]) -> None:
        """Gives variables their values, all at once."""
        self.variables.update(variables)
        for number in variables:
            self._drop(number)

    def see(self, name: str, extents: Extents) -> None:
        """Says what a tensor that a step has made is like."""
        self.tensors[name] = extents
        self._drop(name)

    def _value(self, index: int) -> int | Undefined:
        """Operands come before their users, so the missing ones below `index` are computed from the
        lowest on: a deep graph needs no deep stack."""
        known, expressions = self._known, self.program.expressions
        waiting = [index]
        while waiting:
            current = waiting[-1]
            kind, *operands = expressions[current]
            inner = () if kind in LEAVES else operands
            missing = [operand for operand in inner if operand not in known]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            if current in known:
                continue
            try:
                known[current] = self._compute(expressions[current])
            except Undefined as why:
                known[current] = why
        return known[index]

    def _compute(self, expression: Expression) -> int:
        kind, *operands = expression
        if kind == "const":
            return checked(operands[0])
        if kind in ("extent", "stride"):
            name, dimension = operands
            found = self.tensors.get(name)
            if found is None or not 0 <= dimension < len(found.shape):
                raise Undefined(f"there is no {kind} {dimension} of {quoted(name)}")
            return checked((found.shape if kind == "extent" else found.strides)[dimension])
        if kind == "scalar":
            value = self.scalars.get(operands[0])
            if not isinstance(value, int):
                raise Undefined(f"{quoted(operands[0])} is not an integer scalar")
            return checked(int(value))
        if kind == "variable":
            if operands[0] not in self.variables:
                raise Undefined(f"variable {operands[0]} has no value yet")
            return self.variables[operands[0]]
        if kind == "select":
            condition = self._operand(operands[0])
            return self._operand(operands[1] if condition else operands[2])
        a, b = (self._operand(operand) for operand in operands)
        return binary(kind, a, b)

    def _operand(self, index: int) -> int:
        value = self._known[index]
        if isinstance(value, Undefined):
            raise Undefined
        return value

    def _reason(self, index: int) -> str:
        """Says which expression has no value, the innermost one that `index` uses, and why."""
        expressions = self.program.expressions
        while not str(self._known[index]):
            kind, *operands = expressions[index]
            if kind == "select" and isinstance(condition := self._known[operands[0]], int):
                operands = [operands[1 if condition else 2]]
            index = next(n for n in operands if isinstance(self._known.get(n), Undefined))
        return refusals.value(show(expressions, index), self._known[index])

    def _drop(self, changed: int | str) -> None:
        """Forgets the values that depend on a variable or on a tensor."""
        if self._users is None:
            self._users = users(self.program.expressions)
        for index in self._users.get(changed, ()):
            self._known.pop(index, None)


def users(expressions: tuple[Expression, ...]) -> dict[int | str, list[int]]:
    """The expressions that depend on each variable and on each tensor."""
    depends = dependencies(expressions)
    found: dict[int | str, list[int]] = {}
    for index, names in enumerate(depends):
        for name in names:
            found.setdefault(name, []).append(index)
    return found


def dependencies(expressions: tuple[Expression, ...]) -> list[frozenset[int | str]]:
    """What each expression depends on: variables by number, tensors by name."""
    depends: list[frozenset[int | str]] = []
    for kind, *operands in expressions:
        if kind == "variable" or kind in ("extent", "stride"):
            depends.append(frozenset(operands[:1]))
        elif kind in ("const", "scalar"):
            depends.append(frozenset())
        else:
            depends.append(frozenset().union(*(depends[operand] for operand in operands)))
    return depends
