"""Expressions of `--flops`: how many floating-point operations a program does.

    2*m*n*k        named extents and scalars of the program
    5*X[0]*X[1]    extents of a tensor by dimension

Numbers, + - * / // ** and parentheses are what else there is.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping
from typing import Any

from fly_common.errors import UsageError
from fly_common.quoting import quoted
from fly_host.program import Program, Tensor

_OPERATORS: dict[type, Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}
_MOST = 1e30  # of an operand of **
LONGEST = 1000


def evaluate(text: str, program: Program | None, values: Mapping[str, Any]) -> float:
    """The value of an expression for a call with these arguments. UsageError for what is none."""
    names: dict[str, Any] = {}
    for parameter in program.parameters if program is not None else ():
        value = values.get(parameter.name, getattr(parameter, "default", None))
        if isinstance(parameter, Tensor):
            names[parameter.name] = tuple(value.shape)
            for extent, size in zip(parameter.shape, value.shape, strict=True):
                if isinstance(extent, str):
                    names[extent] = size
        elif isinstance(value, int | float):
            names[parameter.name] = value
    try:
        if len(text) > LONGEST:
            raise ValueError("it is too long")
        found = _value(ast.parse(text, mode="eval").body, names)
        if isinstance(found, tuple) or not 0 <= found < _MOST:
            raise ValueError("it is not a number of operations")
        return float(found)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError) as error:
        reason: object = "it can't be parsed" if isinstance(error, SyntaxError) else error
        if isinstance(error, OverflowError | RecursionError):
            reason = "it is too large"
        known = ", ".join(names) or "none"
        raise UsageError(
            f"--flops {quoted(text)}: {reason}",
            hint=f"an expression like 2*m*n*k or 2*A[0]*A[1]; names: {known}",
        ) from None


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value
    if isinstance(node, ast.Name):
        if node.id not in names:
            raise ValueError(f"{node.id} is not known")
        return names[node.id]
    if isinstance(node, ast.Subscript):
        shape, index = _value(node.value, names), _value(node.slice, names)
        if not isinstance(shape, tuple) or type(index) is not int or not 0 <= index < len(shape):
            raise ValueError(f"{ast.unparse(node)} is not an extent")
        return shape[index]
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        a, b = _value(node.left, names), _value(node.right, names)
        if isinstance(a, tuple) or isinstance(b, tuple):
            raise ValueError("a tensor is not a number: an extent of it is A[0]")
        if isinstance(node.op, ast.Pow) and not (abs(a) < _MOST and 0 <= b <= 64):
            raise ValueError("the exponent is too large")
        return _OPERATORS[type(node.op)](a, b)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, names)
    raise ValueError(f"{ast.unparse(node)} is not allowed")
