"""Calls of library functions as steps: fly.call."""

from __future__ import annotations

from typing import Any

from fly_dialect.bindings import ir
from fly_host.program import Call, Operand, Scalar

from fly_opt.passes.base import refuse
from fly_opt.passes.host import allocation
from fly_opt.passes.host.arguments import Parameter
from fly_opt.passes.host.tensors import TensorValue
from fly_opt.passes.host.walk import Walk


def call(walk: Walk, op: Any) -> None:
    """fly.call: `unit` in its lists stands for the next operand, `{}` for None."""
    attributes = op.attributes
    operands = list(op.operands)
    arguments = tuple(_operand(walk, op, entry, operands) for entry in attributes["arguments"])
    keywords = tuple(
        (item.name, _operand(walk, op, item.attr, operands)) for item in attributes["keywords"]
    )
    sizes = [walk.values.integer(op, operand) for operand in operands]
    name = attributes["name"].value if "name" in attributes else "result"
    results = tuple(
        allocation.result(walk, op, value, name, said, sizes)
        for value, said in zip(op.results, attributes["results"], strict=True)
    )
    walk.steps.append(Call(attributes["function"].value, arguments, keywords, results))


def _operand(walk: Walk, op: Any, entry: Any, operands: list[Any]) -> Operand:
    if not isinstance(entry, ir.UnitAttr):
        return Operand("constant", _constant(op, entry))
    if not operands:
        raise refuse(op, "fly.call has fewer operands than its lists want")
    return operand_of(walk, op, operands.pop(0))


def operand_of(walk: Walk, op: Any, value: Any) -> Operand:
    """A value of the host function that leaves the program."""
    held = walk.values.held.get(value)
    if isinstance(held, TensorValue):
        return Operand("tensor", held.name)
    if isinstance(held, int):
        return Operand("integer", held)
    if isinstance(held, Parameter) and isinstance(held.made, Scalar):
        return Operand("scalar", held.made.name)
    raise refuse(
        op,
        f"a value of type {value.type} can't leave the host program",
        "tensors, integers and scalar parameters can",
    )


def _constant(op: Any, entry: Any) -> Any:
    if isinstance(entry, ir.ArrayAttr):
        return tuple(_constant(op, one) for one in entry)
    if isinstance(entry, ir.DictAttr) and not len(entry):
        return None
    if isinstance(entry, ir.BoolAttr | ir.IntegerAttr | ir.FloatAttr | ir.StringAttr):
        return entry.value
    raise refuse(op, f"{entry} can't be an argument of a library call")
