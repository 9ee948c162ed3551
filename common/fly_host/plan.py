"""The launch plan: the computations of the host function, as data inside the code object.

The plan describes how to bind arguments by name, the size of each grid and block, and the bytes of
each kernel's argument segment. It is a graph of integer expressions over the arguments' extents,
strides and scalars. `fly-opt-py` writes it to the section `.fly.manifest`; `fly-run` and the
library read it. The text form is canonical JSON (sorted keys, no white space), so equal plans have
equal bytes.

An expression is a tuple `(op, …)`. Operands are indices of earlier expressions:

    ("const", 256)                 a 64-bit integer
    ("extent", "A", 0)             extent of dimension 0 of tensor A, in elements
    ("stride", "A", 0)             its stride, in elements
    ("scalar", "n")                an integer scalar argument
    ("add"|"sub"|"mul"|"floordiv"|"ceildiv"|"truncdiv"|"mod"|"rem"|"min"|"max"|"and"|"or"|"xor"|
     "shl"|"shr"|"eq"|"ne"|"lt"|"le", a, b)
    ("select", c, a, b)

floordiv and mod are Python's; truncdiv and rem are C's. Arithmetic is on 64-bit signed integers;
overflow is an error.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from fly_common.errors import InputError
from fly_common.quoting import quoted
from fly_numerics.element_types import ELEMENT_TYPES

SECTION = ".fly.manifest"
VERSION = 2

Expression = tuple[Any, ...]


@dataclass(frozen=True)
class Tensor:
    """A tensor parameter. An extent is a number, a symbol shared between parameters, or None
    (any). A stride is a number or None (any). `access` is "r", "w" or "rw". `multiples` holds the
    divisors that the kernel assumes, first of each extent, then of each stride; empty if it assumes
    none."""

    name: str
    dtype: str
    shape: tuple[int | str | None, ...]
    strides: tuple[int | None, ...]
    access: str = "rw"
    contiguous: bool = False  # strides must be those of a C-contiguous array of this shape
    multiples: tuple[int, ...] = ()


@dataclass(frozen=True)
class Scalar:
    """A scalar parameter. `default` is used if the caller passes no value."""

    name: str
    dtype: str
    default: int | float | bool | None = None


@dataclass(frozen=True)
class Word:
    """A part of a kernel argument: the address of a tensor parameter (`pointer`), the value of an
    integer expression in `size` bytes (`integer`), or the scalar parameter `name` in its dtype
    (`scalar`)."""

    kind: str
    name: str | None = None
    expression: int | None = None
    size: int = 8


@dataclass(frozen=True)
class Launch:
    """A kernel launch. `grid` is the number of workgroups in x, y and z, `block` the number of work
    items per workgroup, and `lds` the dynamic LDS in bytes. All are indices of expressions.
    `arguments` holds the words of each kernel argument, packed without gaps."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    lds: int
    arguments: tuple[tuple[Word, ...], ...]


@dataclass(frozen=True)
class Plan:
    entry: str
    target: str
    parameters: tuple[Tensor | Scalar, ...]
    expressions: tuple[Expression, ...]
    launches: tuple[Launch, ...]
    version: int = field(default=VERSION)

    def parameter(self, name: str) -> Tensor | Scalar | None:
        return next((p for p in self.parameters if p.name == name), None)


def to_text(plan: Plan) -> str:
    data = asdict(plan)
    for parameter, made in zip(plan.parameters, data["parameters"], strict=True):
        made["kind"] = "tensor" if isinstance(parameter, Tensor) else "scalar"
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def from_text(text: str | bytes) -> Plan:
    """Parses a plan. Raises InputError if it is malformed or has another version."""
    try:
        data = json.loads(text)
        if data["version"] != VERSION:
            raise InputError(
                f"the launch plan has version {data['version']}, but this tool reads version"
                f" {VERSION}",
                hint="compile the kernel again with this version's fly-opt-py",
            )
        plan = Plan(
            entry=str(data["entry"]),
            target=str(data["target"]),
            parameters=tuple(_parameter(item) for item in data["parameters"]),
            expressions=tuple(tuple(item) for item in data["expressions"]),
            launches=tuple(_launch(item) for item in data["launches"]),
        )
        _check(plan)
        return plan
    except KeyError as error:
        raise InputError(f"the launch plan is damaged: it has no field {error}") from None
    except RecursionError:
        raise InputError("the launch plan is damaged: it is nested too deeply") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(f"the launch plan is damaged: {error}") from None


def _parameter(data: dict[str, Any]) -> Tensor | Scalar:
    if data["kind"] == "scalar":
        return Scalar(str(data["name"]), str(data["dtype"]), data.get("default"))
    return Tensor(
        str(data["name"]),
        str(data["dtype"]),
        tuple(data["shape"]),
        tuple(data["strides"]),
        str(data["access"]),
        bool(data["contiguous"]),
        tuple(data.get("multiples", ())),
    )


def _launch(data: dict[str, Any]) -> Launch:
    x, y, z = data["grid"]
    bx, by, bz = data["block"]
    words = tuple(tuple(Word(**word) for word in argument) for argument in data["arguments"])
    return Launch(str(data["kernel"]), (x, y, z), (bx, by, bz), data["lds"], words)


# The operand types of leaves, then the operators by their number of operands.
_LEAVES = {"const": (int,), "extent": (str, int), "stride": (str, int), "scalar": (str,)}
_ARITHMETIC = ("add", "sub", "mul", "floordiv", "ceildiv", "truncdiv", "mod", "rem", "min", "max")
_BITS = ("and", "or", "xor", "shl", "shr")
_COMPARISONS = ("eq", "ne", "lt", "le")
_BINARY = frozenset((*_ARITHMETIC, *_BITS, *_COMPARISONS))
DTYPES = frozenset(name for name, row in ELEMENT_TYPES.items() if row.computes)
# Types of tensor elements only, without arithmetic.
TENSOR_DTYPES = frozenset(
    name for name, row in ELEMENT_TYPES.items() if row.numpy and not row.computes
)
_WORD_SIZES = (1, 2, 4, 8)


def _check(plan: Plan) -> None:
    """Raises ValueError if the plan refers to something that does not exist. A plan that passes can
    be evaluated and bound without further checks; only the arguments can still be wrong."""
    names = [parameter.name for parameter in plan.parameters]
    if len(set(names)) != len(names):
        raise ValueError("two parameters have the same name")
    for parameter in plan.parameters:
        _check_parameter(parameter)
    for index, expression in enumerate(plan.expressions):
        _check_expression(plan, index, expression)
    for launch in plan.launches:
        _check_launch(plan, launch)


def _is_number(value: object, low: int = -(2**63)) -> bool:
    """Returns whether `value` is an integer that fits 64 bits. JSON's true and false are not."""
    return type(value) is int and low <= value < 2**63


def _check_parameter(parameter: Tensor | Scalar) -> None:
    allowed = DTYPES | TENSOR_DTYPES if isinstance(parameter, Tensor) else DTYPES
    if parameter.dtype not in allowed:
        raise ValueError(f"parameter {parameter.name}: unknown dtype {quoted(parameter.dtype)}")
    if isinstance(parameter, Scalar):
        if not isinstance(parameter.default, int | float | None):
            raise ValueError(f"parameter {parameter.name}: its default is not a number")
        return
    extents = (e is None or isinstance(e, str) or _is_number(e, 0) for e in parameter.shape)
    strides = (stride is None or _is_number(stride) for stride in parameter.strides)
    if len(parameter.shape) != len(parameter.strides) or not (all(extents) and all(strides)):
        raise ValueError(f"parameter {parameter.name}: bad shape or strides")
    counted = len(parameter.multiples) in (0, 2 * len(parameter.shape))
    if not counted or not all(_is_number(n, 1) for n in parameter.multiples):
        raise ValueError(f"parameter {parameter.name}: bad multiples")
    if parameter.access not in ("r", "w", "rw"):
        raise ValueError(f"parameter {parameter.name}: unknown access {quoted(parameter.access)}")


def _check_expression(plan: Plan, index: int, expression: Expression) -> None:
    operator, *operands = expression
    bad = ValueError(f"expression {index}: bad operands of {operator}")
    if operator in _LEAVES:
        kinds = _LEAVES[operator]
        if len(operands) != len(kinds) or not all(map(isinstance, operands, kinds)):
            raise bad
        if operator == "const":
            if not _is_number(operands[0]):
                raise bad
            return
        parameter = plan.parameter(operands[0])
        if operator == "scalar":
            known = isinstance(parameter, Scalar)
        else:
            rank = len(parameter.shape) if isinstance(parameter, Tensor) else 0
            known = _is_number(operands[1], 0) and operands[1] < rank
        if not known:
            raise bad
        return
    arity = 3 if operator == "select" else 2 if operator in _BINARY else None
    if arity is None:
        raise ValueError(f"expression {index}: unknown operator {quoted(operator)}")
    if len(operands) != arity or not all(_is_number(n, 0) and n < index for n in operands):
        raise bad


def _check_launch(plan: Plan, launch: Launch) -> None:
    count = len(plan.expressions)
    words = [word for argument in launch.arguments for word in argument]
    used = [*launch.grid, *launch.block, launch.lds]
    used += [word.expression for word in words if word.kind == "integer"]
    if not all(_is_number(index, 0) and index in range(count) for index in used):
        raise ValueError(f"launch of {launch.kernel}: no such expression")
    wanted = {"pointer": Tensor, "scalar": Scalar}
    for word in words:
        if word.kind != "integer" and word.kind not in wanted:
            raise ValueError(f"launch of {launch.kernel}: unknown word {quoted(word.kind)}")
        if word.kind != "integer" and word.expression is not None:
            raise ValueError(f"launch of {launch.kernel}: a {word.kind} has no expression")
        if word.kind in wanted:
            named = plan.parameter(word.name) if isinstance(word.name, str) else None
            if not isinstance(named, wanted[word.kind]):
                raise ValueError(f"launch of {launch.kernel}: no {word.kind} {quoted(word.name)}")
        if type(word.size) is not int or word.size not in _WORD_SIZES:
            raise ValueError(f"launch of {launch.kernel}: a word of {quoted(word.size)} bytes")
