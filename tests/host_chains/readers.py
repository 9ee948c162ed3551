"""Readers of a graph's expressions, which must agree: `READERS` has one line for each.

A reader takes a graph, the indices of the expressions that are needed, and the values of leaves. It
gives their values, or raises InputError where one has none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fly_common.errors import InputError
from fly_host.graph import Graph
from fly_host.program import Launch, Program, Scalar, Tensor, Word
from fly_host.readers import python_code
from fly_host.readers.values import Extents, Values


@dataclass(frozen=True)
class Leaves:
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    strides: dict[str, tuple[int, ...]] = field(default_factory=dict)
    scalars: dict[str, int] = field(default_factory=dict)
    variables: tuple[int, ...] = ()


Reader = Callable[[Graph, Sequence[int], Leaves], list[int]]


def by_definition(graph: Graph, roots: Sequence[int], leaves: Leaves) -> list[int]:
    """What the expressions mean, as their docstrings say it, in plain Python."""
    known: dict[int, int] = {}

    def value(index: int) -> int:
        if index not in known:
            known[index] = result = meaning(*graph.expressions[index])
            if not -(2**63) <= result < 2**63:
                raise InputError("a value does not fit 64 bits")
        return known[index]

    def meaning(op: str, *operands) -> int:
        match op:
            case "const":
                return operands[0]
            case "extent":
                return leaves.shapes[operands[0]][operands[1]]
            case "stride":
                return leaves.strides[operands[0]][operands[1]]
            case "scalar":
                return leaves.scalars[operands[0]]
            case "variable":
                return leaves.variables[operands[0]]
            case "select":
                condition, yes, no = operands
                return value(yes) if value(condition) != 0 else value(no)
        a, b = (value(operand) for operand in operands)
        return binary(op, a, b)

    return [value(root) for root in roots]


def binary(op: str, a: int, b: int) -> int:
    if op in ("floordiv", "ceildiv", "truncdiv", "mod", "rem"):
        if b == 0:
            raise InputError("division by zero")
        whole, rest = divmod(a, b)
        toward_zero = whole + (1 if rest and whole < 0 else 0)
        return {
            "floordiv": whole,
            "ceildiv": whole + (1 if rest else 0),
            "truncdiv": toward_zero,
            "mod": rest,
            "rem": a - b * toward_zero,
        }[op]
    if op in ("shl", "shr"):
        if not 0 <= b <= 63:
            raise InputError("a shift by a strange amount")
        return a * 2**b if op == "shl" else a // 2**b
    return int(
        {
            "add": lambda: a + b,
            "sub": lambda: a - b,
            "mul": lambda: a * b,
            "min": lambda: b if b < a else a,
            "max": lambda: b if b > a else a,
            "and": lambda: a & b,
            "or": lambda: a | b,
            "xor": lambda: a ^ b,
            "eq": lambda: a == b,
            "ne": lambda: a != b,
            "lt": lambda: a < b,
            "le": lambda: a <= b,
        }[op]()
    )


def by_interpreter(graph: Graph, roots: Sequence[int], leaves: Leaves) -> list[int]:
    """The interpreter of host programs."""
    program = Program("chain", "any", (), tuple(graph.expressions), ())
    tensors = {
        name: Extents(shape, leaves.strides.get(name, (0,) * len(shape)))
        for name, shape in leaves.shapes.items()
    }
    values = Values(program, tensors, leaves.scalars, dict(enumerate(leaves.variables)))
    return [values[root] for root in roots]


def by_generated_python(graph: Graph, roots: Sequence[int], leaves: Leaves) -> list[int]:
    """Host programs as generated Python: the roots are the arguments of a launch."""
    scalars = dict(leaves.scalars) | {f"i{k}": v for k, v in enumerate(leaves.variables)}
    expressions = [
        ("scalar", f"i{one[1]}") if one[0] == "variable" else tuple(one)
        for one in graph.expressions
    ]
    at = len(expressions)
    expressions += [("const", 1), ("const", 0)]
    words = tuple((Word("integer", expression=root),) for root in roots)
    launch = Launch("k", (at, at, at), (at, at, at), at + 1, words)
    tensors = {
        name: Extents(shape, leaves.strides.get(name, (0,) * len(shape)))
        for name, shape in leaves.shapes.items()
    }
    parameters = (
        *(Tensor(name, "f32", (None,) * len(e.shape), (None,) * len(e.shape))
          for name, e in tensors.items()),
        *(Scalar(name, "i64") for name in scalars),
    )  # fmt: skip
    program = Program("chain", "any", parameters, tuple(expressions), (launch,))
    machine = _Arguments()
    python_code.run(program, machine, {**tensors, **scalars})  # type: ignore[arg-type]
    return [value for (value,) in machine.arguments]


class _Arguments:
    """A machine that keeps the arguments of the last launch; its tensors are their extents."""

    arguments: list[list[int]]

    def extents(self, tensor: Extents) -> Extents:
        return tensor

    def look_at(self, *_: object) -> None:
        pass

    def launch(self, *asked: Any) -> None:
        self.arguments = asked[4]


READERS: list[Reader] = [
    by_definition,
    by_interpreter,
    by_generated_python,
]
