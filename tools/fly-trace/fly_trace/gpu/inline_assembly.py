"""fx.inline_asm: instructions of the target, as text with constraints.

It is LLVM's inline assembly (LLVM Language Reference, "Inline Assembler Expressions"). The text and
the letters of constraints are the target's; code generation checks them. The number of outputs and
inputs is checked here.
"""

from __future__ import annotations

import re
from typing import Any

from fly_common.quoting import quoted
from fly_common.record import record

from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.values.conversion import scalar
from fly_trace.values.dtypes import DType
from fly_trace.values.scalars import Scalar
from fly_trace.values.vector.vector_values import Vector
from fly_trace.values.vector.vectors import VectorType
from fly_trace.values.vector_shapes import vector_ir

__all__ = ["inline_asm"]

_WHAT = "fx.inline_asm"
_NUMBER = re.compile(r"\$(?:\$|\{?(\d+))")


@record
class Constraints:
    """A constraint string, taken apart. outputs, inputs: in order; clobbers: as `~{memory}`."""

    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    clobbers: tuple[str, ...]


def inline_asm(
    template: str,
    constraints: str,
    *operands: Any,
    results: Any = None,
    side_effects: bool | None = None,
) -> Any:
    """The results of instructions of the target.

    template: their text, in which $0, $1, … are the results and then the operands, and $$ is a
    dollar sign; lines are separated by newlines. constraints: for each result and then for each
    operand where it is held, then what is changed besides, separated by commas, as in
    "=v,v,s,~{memory}". "=" begins a result, "=&" one that is written before the operands are read;
    a number is the place of the result whose register the operand has. Registers are on AMD "v"
    (vector), "s" (scalar, the same for all lanes) and "a" (accumulation), or one by name, "{v5}";
    on NVIDIA "h", "r", "l", "f", "d" (integers of 16, 32, 64 bits, floats of 32, 64); "i" is a
    constant. operands: numbers and vectors of integers and floats. results: the type of the result,
    fx.Uint32 or fx.Float32x4, or a tuple of types; None without any. side_effects: whether it does
    more than to compute its results; by default if it has none. Then it is kept, once for each
    time that it is reached, in order with others that have some.

    Returns the result, or a tuple of them. The compiler does not know what the text does: where a
    value of other lanes is read, an address is used, or a register is changed that no constraint
    names, the kernel must say so ("~{memory}", side_effects). It is compiled for the targets that
    have the instructions; others report an error with this line.
    """
    builder = tracing.kernel(_WHAT)
    if not isinstance(template, str) or not isinstance(constraints, str):
        other = constraints if isinstance(template, str) else template
        tracing.refuse(
            f"{_WHAT} takes a template and constraints, Python strings, not {describe(other)}"
        )
    given = Constraints(*_parsed(constraints))
    types = _types(results)
    values = [_operand(operand) for operand in operands]
    _check(given, len(types), len(values), constraints)
    _check_template(template, len(types) + len(values))
    if side_effects is None:
        side_effects = not types
    attributes = {
        "asm_string": builder.string(template),
        "constraints": builder.string(constraints),
        **({"has_side_effects": builder.attribute("unit")} if side_effects else {}),
    }
    texts = [_ir(one) for one in types]
    ssa = [one.value if isinstance(one, Vector) else builder.ssa(one) for one in values]
    if len(types) > 1:
        texts = [f"!llvm.struct<({', '.join(texts)})>"]
    made = builder.op("llvm.inline_asm", [builder.type(text) for text in texts], ssa, attributes)
    if not types:
        return None
    if len(types) == 1:
        found = _value(types[0], made.results[0])
        return (found,) if isinstance(results, (tuple, list)) else found
    return tuple(
        _value(
            one,
            builder.one(
                "llvm.extractvalue",
                _ir(one),
                made.results[0],
                position=builder.attribute(f"array<i64: {place}>"),
            ),
        )
        for place, one in enumerate(types)
    )


def _parsed(text: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The outputs, inputs and clobbers of a constraint string, which come in this order."""
    found: tuple[list[str], list[str], list[str]] = ([], [], [])
    kind = 0
    for one in text.split(",") if text else []:
        now = 0 if one.startswith("=") else 2 if one.startswith("~{") else 1
        if not one.strip("=&") or one != one.strip():
            tracing.refuse(f"{_WHAT}: {quoted(one)} is no constraint, in {quoted(text)}")
        if "*" in one:
            tracing.refuse(
                f"{_WHAT} has no indirect operands: {quoted(one)}, in {quoted(text)}",
                "return the value and store it, or pass an address (fx.ptrtoint)",
            )
        if now < kind:
            kinds = ("results (=…)", "operands", "clobbers (~{…})")
            tracing.refuse(
                f"{_WHAT}: {quoted(one)} is one of the {kinds[now]}, which come before the"
                f" {kinds[kind]}, in {quoted(text)}"
            )
        kind = now
        found[kind].append(one)
    outputs, inputs, clobbers = (tuple(items) for items in found)
    return outputs, inputs, clobbers


def _check(given: Constraints, results: int, operands: int, text: str) -> None:
    for name, wanted, have in (
        ("results", len(given.outputs), results),
        ("operands", len(given.inputs), operands),
    ):
        if wanted != have:
            names = name if wanted != 1 else name.removesuffix("s")
            are = "is" if have == 1 else "are"
            tracing.refuse(
                f"{_WHAT}: the constraints {quoted(text)} have {wanted} {names}, but {have} {are}"
                " given"
            )
    for one in given.inputs:
        if one.isdigit() and int(one) >= results:
            tracing.refuse(
                f"{_WHAT}: the constraint {quoted(one)} names a result that is not there, in"
                f" {quoted(text)}"
            )


def _check_template(template: str, count: int) -> None:
    """Refuses the number of an operand that is not there: LLVM would end the process."""
    for match in _NUMBER.finditer(template):
        if match[1] is not None and int(match[1]) >= count:
            tracing.refuse(
                f"{_WHAT}: there is no ${match[1]} in {quoted(template)}: results and operands are"
                f" {count}",
                "they are numbered from $0, results first; $$ is a dollar sign",
            )


def _types(results: Any) -> list[DType | VectorType]:
    if results is None:
        return []
    found = list(results) if isinstance(results, (tuple, list)) else [results]
    for one in found:
        dtype = one.dtype if isinstance(one, VectorType) else one
        if not isinstance(dtype, DType):
            tracing.refuse(
                f"the results of {_WHAT} are types, such as fx.Uint32 or fx.Float32x4, not"
                f" {describe(one)}"
            )
        _check_element(dtype, "a result")
    return found


def _operand(value: Any) -> Scalar | Vector:
    if not isinstance(value, Vector):
        if isinstance(value, (bool, int, float)):
            tracing.refuse(
                f"an operand of {_WHAT} needs a type, which {describe(value)} has not",
                "write fx.Int32(2), for example",
            )
        value = scalar(value, f"an operand of {_WHAT}")
    _check_element(value.dtype, "an operand")
    return value


def _check_element(dtype: DType, what: str) -> None:
    if dtype.bits < 16:
        tracing.refuse(
            f"{what} of {_WHAT} can't be {dtype.name}: registers hold integers and floats of 16"
            " bits and more",
            "use c.to(fx.Int32) for a bool, and fx.Uint32 for packed numbers",
        )


def _ir(kind: DType | VectorType) -> str:
    return vector_ir(kind.dtype, kind.lanes) if isinstance(kind, VectorType) else kind.ir


def _value(kind: DType | VectorType, value: Any) -> Scalar | Vector:
    if isinstance(kind, VectorType):
        return Vector(value, (kind.lanes,), kind.dtype)
    return Scalar(kind, value)
