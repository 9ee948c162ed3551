"""Host programs on symbolic shapes: what the tensors are like that a program returns.

Integers are torch's SymInts or Python's; a comparison that decides is a guard of the compiled
graph. What the graph's integers cannot be, the operators of Python say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from fly_common.errors import UsageError
from fly_host import program as steps
from fly_host.program import Operand, Program


class Layout(NamedTuple):
    """A tensor that a program returns: element type, shape and strides, maybe symbolic."""

    dtype: str
    shape: tuple[Any, ...]
    strides: tuple[Any, ...]


def results(
    program: Program, tensors: Mapping[str, torch.Tensor], scalars: Mapping[str, Any]
) -> list[Any]:
    """What each operand of the program's result is: a Layout, or an integer.

    UsageError for results whose layout only a run tells: those of loops and branches that choose
    between tensors.
    """
    integers = _Integers(program, tensors, scalars)
    return [_result(program, operand, integers) for operand in steps.leaves(program.results)]


def check(program: Program) -> None:
    """UsageError for a program whose results can't be those of an operator."""
    for operand in steps.leaves(program.results):
        if operand.kind not in ("tensor", "view"):
            continue
        name = operand.value.tensor if operand.kind == "view" else operand.value
        if program.parameter(name) is not None:
            raise UsageError(
                f"{program.entry} returns its parameter {name}: an operator's results are new"
                " tensors",
                hint="return what the function creates, and leave parameters out",
            )


def _result(program: Program, operand: Operand, integers: _Integers) -> Any:
    value = operand.value
    if operand.kind == "integer":
        return integers[value]
    if operand.kind == "scalar":
        return integers.scalars[value]
    if operand.kind == "constant":
        return value
    name = value.tensor if operand.kind == "view" else value
    made = next(tensor for tensor in program.tensors if tensor.name == name)
    shape: Sequence[int]
    strides: Sequence[int]
    if operand.kind == "view":
        shape, strides = value.shape, value.strides
    elif isinstance(made, steps.Buffer):
        shape, strides = made.shape, made.strides
    else:
        raise UsageError(
            f"{program.entry} returns {name}, which is one of several tensors: its layout is known"
            " only when it runs",
            hint="an operator returns tensors that the function creates outside loops and branches",
        )
    several = integers.several
    return Layout(made.dtype, several(shape), several(strides))


class _Integers:
    """The values of expressions, computed when they are asked for."""

    def __init__(
        self, program: Program, tensors: Mapping[str, torch.Tensor], scalars: Mapping[str, Any]
    ):
        self.program, self.tensors, self.scalars = program, tensors, scalars
        self.known: dict[int, Any] = {}

    def several(self, indices: Sequence[int]) -> tuple[Any, ...]:
        return tuple(self[index] for index in indices)

    def __getitem__(self, index: int) -> Any:
        """Operands come before their users, so a deep graph needs no deep stack."""
        waiting = [index]
        while waiting:
            current = waiting[-1]
            kind, *operands = self.program.expressions[current]
            inner = () if kind in steps.LEAVES else operands
            missing = [n for n in inner if n not in self.known]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            if current not in self.known:
                self.known[current] = self._value(kind, operands)
        return self.known[index]

    def _value(self, kind: str, operands: list[Any]) -> Any:
        if kind == "const":
            return operands[0]
        if kind == "scalar":
            return self.scalars[operands[0]]
        if kind in ("extent", "stride"):
            name, dimension = operands
            if name not in self.tensors:
                raise UsageError(
                    f"the shape of {name} is known only when {self.program.entry} runs"
                )
            tensor = self.tensors[name]
            return tensor.shape[dimension] if kind == "extent" else tensor.stride(dimension)
        if kind == "variable":
            raise UsageError(f"a loop or branch of {self.program.entry} decides about a shape")
        values = [self.known[operand] for operand in operands]
        if kind == "select":
            return values[1] if values[0] else values[2]
        return _OPERATORS[kind](*values)


def _truncdiv(a: Any, b: Any) -> Any:
    return a // b if (a < 0) == (b < 0) else -(-a // b)


_OPERATORS: dict[str, Any] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "ceildiv": lambda a, b: -(-a // b),
    "truncdiv": _truncdiv,
    "mod": lambda a, b: a % b,
    "rem": lambda a, b: a - b * _truncdiv(a, b),
    "min": torch.sym_min,
    "max": torch.sym_max,
    "and": lambda a, b: int(a) & int(b),
    "or": lambda a, b: int(a) | int(b),
    "xor": lambda a, b: int(a) ^ int(b),
    "shl": lambda a, b: a * 2**b,
    "shr": lambda a, b: a // 2**b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}
