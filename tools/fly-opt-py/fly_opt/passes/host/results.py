"""What a host function returns, and by which names callers ask for it."""

from __future__ import annotations

from typing import Any

from fly_dialect.bindings import ir
from fly_host.program import Operand, Result, View, leaves

from fly_opt.passes.base import refuse
from fly_opt.passes.host import allocation
from fly_opt.passes.host.library_calls import operand_of
from fly_opt.passes.host.made import MadeLayout, Tree
from fly_opt.passes.host.made import View as SeenTensor
from fly_opt.passes.host.walk import Walk


def results(walk: Walk, host: Any, end: Any) -> tuple[Result, tuple[str, ...]]:
    """The result and its names. The form is the attribute `fly.results` of the host function: `{}`
    is the next operand of the return, `unit` None, `{value = …}` a constant; `{name = "C"}` has the
    name that Python has for it. Without the attribute, the operands are a tuple."""
    operands = list(end.operands) if end is not None else []
    if "fly.results" not in host.attributes:
        made = [_returned(walk, end, value, "a result") for value in operands]
        result: Result = None if not made else made[0] if len(made) == 1 else tuple(made)
        return result, _unique(walk, [(None, operand) for operand in made])
    wanted: list[tuple[str | None, Operand]] = []
    form = host.attributes["fly.results"]
    result = _result(walk, end, form, operands, wanted)
    if operands and end is not None:
        raise refuse(end, f"fly.results says nothing of {len(operands)} values that are returned")
    assert len(wanted) == len(list(leaves(result)))
    return result, _unique(walk, wanted)


def _value_of(attribute: Any) -> Any:
    return attribute.value


def _result(
    walk: Walk, end: Any, form: Any, operands: list[Any], wanted: list[tuple[str | None, Operand]]
) -> Result:
    if isinstance(form, ir.ArrayAttr):
        return tuple(_result(walk, end, part, operands, wanted) for part in form)
    if isinstance(form, ir.UnitAttr):
        return None
    assert isinstance(form, ir.DictAttr)  # fly_dialect.attributes has checked it
    said = {item.name: _value_of(item.attr) for item in form}
    if "value" in said:
        operand = Operand("constant", said["value"])
    elif operands:
        operand = _returned(walk, end, operands.pop(0), said.get("name") or "a result")
    else:
        raise refuse(end, "fly.results asks for more values than are returned")
    wanted.append((said.get("name"), operand))
    return operand


def _returned(walk: Walk, end: Any, value: Any, name: str) -> Operand:
    held = walk.values.held.get(value)
    if isinstance(held, SeenTensor):
        return Operand("view", _view(walk, end, held, name))
    return operand_of(walk, end, value)


def _view(walk: Walk, end: Any, seen: SeenTensor, name: str) -> View:
    """A view of a tensor, and the checks that it lies in the tensor's memory."""
    layout, graph = seen.layout, walk.values.graph
    if not isinstance(layout, MadeLayout):
        raise refuse(end, f"{name} is a view whose layout is not one of extents and strides")
    shape, strides = _flat(end, layout.shape), _flat(end, layout.stride)
    for what, numbers in (("extent", shape), ("stride", strides)):
        for mode, number in enumerate(numbers):
            text = (f"{name}: {what} {mode} is ", number, ", less than 0")
            walk.check(graph.le(graph.const(0), number), text)
    tensor, modes = seen.of, range(seen.of.rank)
    extents = [tensor.expression(graph, "extent", mode) for mode in modes]
    steps = tuple(tensor.expression(graph, "stride", mode) for mode in modes)
    reach, room = (allocation.reach(walk, a, b) for a, b in ((shape, strides), (extents, steps)))
    text = (f"{name}: the view reaches over ", reach, f" elements, and {tensor.name} over ", room)
    walk.check(graph.le(reach, room), text)
    return View(tensor.name, tuple(shape), tuple(strides), graph.const(0))


def _flat(end: Any, tree: Tree) -> list[int]:
    leaves_of = tree if isinstance(tree, tuple) else (tree,)
    found = [leaf for leaf in leaves_of if isinstance(leaf, int)]
    if len(found) != len(leaves_of):
        raise refuse(end, "a view that is returned has one extent and one stride per dimension")
    return found


def _unique(walk: Walk, wanted: list[tuple[str | None, Operand]]) -> tuple[str, ...]:
    """A name for each operand: a parameter's own, that in Python, or result0, result1, …"""
    parameters = {p.name for p in walk.values.parameters}
    names: list[str] = []
    for number, (said, operand) in enumerate(wanted):
        is_parameter = operand.kind in ("tensor", "scalar") and operand.value in parameters
        name = operand.value if is_parameter else said
        if name is None or name in names or (name in parameters and not is_parameter):
            name = base = "result" if len(wanted) == 1 else f"result{number}"
            while name in names or name in parameters:
                name += "_"
                assert base
        names.append(name)
    return tuple(names)
