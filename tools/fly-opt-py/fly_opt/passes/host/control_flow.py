"""Loops and branches of a host function as steps: scf.for, scf.while, scf.if.

They carry integers and tensors. An scf.if without steps whose results are integers is an expression
(`select`, which needs a value of the chosen side only, as the branch does).
"""

from __future__ import annotations

from typing import Any

from fly_host.program import (
    Branch,
    Carried,
    CarriedTensor,
    Chosen,
    ChosenTensor,
    Loop,
    Step,
)

from fly_opt.passes.base import refuse
from fly_opt.passes.host.arguments import Parameter
from fly_opt.passes.host.tensors import TensorValue
from fly_opt.passes.host.walk import Walk


class _Variables:
    """The variables of a loop, of which the SSA values are block arguments."""

    def __init__(self, walk: Walk, op: Any, initial: list[Any], arguments: list[Any]):
        self.walk, self.op = walk, op
        values = walk.values
        self.initial = [_carried(walk, op, value) for value in initial]
        self.inside: list[int | TensorValue] = []
        for start, argument in zip(self.initial, arguments, strict=True):
            variable = walk.assigned(start) if isinstance(start, TensorValue) else walk.variable()
            self.inside.append(variable)
            values.held[argument] = self.held(variable)

    def held(self, variable: int | TensorValue) -> Any:
        return self.walk.values.graph.variable(variable) if isinstance(variable, int) else variable

    def loop(
        self,
        following: list[Any],
        condition: int,
        body: tuple[Step, ...],
        counter: tuple[Carried, ...] = (),
    ) -> Loop:
        """The loop, and its results in the values of `op`; `following` are SSA values."""
        walk, op = self.walk, self.op
        integers, tensors = list(counter), []
        for number, (start, variable, after) in enumerate(
            zip(self.initial, self.inside, following, strict=True)
        ):
            value = _carried(walk, op, after)
            if isinstance(variable, int) and isinstance(start, int) and isinstance(value, int):
                result = walk.variable()
                integers.append(Carried(variable, start, value, result))
                walk.values.held[op.results[number]] = self.held(result)
            elif all(isinstance(one, TensorValue) for one in (start, variable, value)):
                made = walk.assigned(start)  # type: ignore[arg-type]
                names = (one.name for one in (variable, start, value, made))  # type: ignore[union-attr]
                tensors.append(CarriedTensor(*names))
                walk.values.held[op.results[number]] = made
            else:
                raise refuse(op, "a loop carries a tensor where it carried an integer")
        return Loop(tuple(integers), tuple(tensors), condition, body)


def for_(walk: Walk, op: Any) -> None:
    """scf.for, as the loop `while counter < upper`."""
    values, graph = walk.values, walk.values.graph
    lower, upper, step = (values.integer(op, operand) for operand in list(op.operands)[:3])
    positive = graph.lt(graph.const(0), step)
    if graph.constant(positive) == 0:
        raise refuse(op, f"the step of a loop is {graph.text(step)}, and has to be greater than 0")
    walk.check(positive, ("the step of a loop is ", step, ", and has to be greater than 0"))
    block = op.regions[0].blocks[0]
    counter_value, *arguments = block.arguments
    counter, result = walk.variable(), walk.variable()
    now = graph.variable(counter)
    values.held[counter_value] = now
    variables = _Variables(walk, op, list(op.operands)[3:], arguments)
    body, end = walk.block(block)
    counted = Carried(counter, lower, graph.add(now, step), result)
    walk.steps.append(variables.loop(list(end.operands), graph.lt(now, upper), body, (counted,)))


def while_(walk: Walk, op: Any) -> None:
    """scf.while. What its first region hands on has to be its variables as they are."""
    before, after = (region.blocks[0] for region in op.regions)
    variables = _Variables(walk, op, list(op.operands), list(before.arguments))
    steps, end = walk.block(before)
    if steps:
        raise refuse(op, "the condition of a `while` can only compute, and this one does more")
    condition, *handed = end.operands
    if [walk.values.held.get(one) for one in handed] != [
        variables.held(variable) for variable in variables.inside
    ]:
        raise refuse(op, "the first region of an scf.while hands on other values than its own")
    holds = walk.values.integer(op, condition)
    for argument, variable in zip(after.arguments, variables.inside, strict=True):
        walk.values.held[argument] = variables.held(variable)
    body, end = walk.block(after)
    walk.steps.append(variables.loop(list(end.operands), holds, body))


def if_(walk: Walk, op: Any) -> None:
    """scf.if."""
    graph, held = walk.values.graph, walk.values.held
    condition = walk.values.integer(op, op.operands[0])
    sides = [
        walk.block(region.blocks[0]) if len(region.blocks) else ((), None) for region in op.regions
    ]
    (then, then_end), (otherwise, other_end) = sides
    ends = [list(end.operands) if end is not None else [] for end in (then_end, other_end)]
    pure = not then and not otherwise
    integers: list[Chosen] = []
    tensors: list[ChosenTensor] = []
    for result, a, b in zip(op.results, *ends, strict=True):
        x, y = _carried(walk, op, a), _carried(walk, op, b)
        if isinstance(x, int) and isinstance(y, int):
            if pure:
                held[result] = graph.select(condition, x, y)
                continue
            variable = walk.variable()
            integers.append(Chosen(variable, x, y))
            held[result] = graph.variable(variable)
        elif isinstance(x, TensorValue) and isinstance(y, TensorValue):
            if x == y:
                held[result] = x
                continue
            made = walk.assigned(x)
            tensors.append(ChosenTensor(made.name, x.name, y.name))
            held[result] = made
        else:
            raise refuse(op, "a branch gives a tensor on one way and an integer on the other")
    if not pure or tensors:
        walk.steps.append(Branch(condition, then, otherwise, tuple(integers), tuple(tensors)))


def _carried(walk: Walk, op: Any, value: Any) -> int | TensorValue:
    """What a loop or branch carries: an integer, or a tensor."""
    held = walk.values.held.get(value)
    if isinstance(held, TensorValue):
        return held
    if isinstance(held, int | Parameter):
        return walk.values.integer(op, value)
    raise refuse(
        op,
        f"a loop or branch of the host function carries a value of type {value.type}",
        "it can carry integers and tensors",
    )
