"""Tensors that a host function makes: fly.empty, and what a library call gives.

An `Allocate` stands where the host function says `fx.empty`; `lifetimes` moves it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fly_common.errors import InputError
from fly_dialect.dialect import plain, spec_of
from fly_dialect.types import MemRefSpec
from fly_host.domains.domain import parse
from fly_host.domains.dynamic_sizes import placed
from fly_host.domains.inference import Inferred, infer
from fly_host.program import Allocate, Buffer

from fly_opt.passes.base import refuse
from fly_opt.passes.host.walk import Walk


def empty(walk: Walk, op: Any) -> None:
    """fly.empty: a buffer, and the checks that its shape and allocation need."""
    said = {name: plain(op.attributes[name]) for name in ("dtype", "allocation", "view")}
    name = walk.name(op.attributes["name"].value if "name" in op.attributes else "tensor")
    operands = [walk.values.integer(op, operand) for operand in op.operands]
    shape = integers(walk, op, op.attributes["shape"], operands)
    inferred = _inferred(walk, op, said["allocation"], shape, operands)
    for condition, message in inferred.checks:
        walk.check(condition, (f"{name}: ", *message))
    if said["view"] == "allocation":
        axes, strides = inferred.axes, inferred.axis_strides
    else:
        axes, strides = inferred.shape, inferred.strides
        if strides is None:
            raise refuse(op, f"{name}: {inferred.reason}", 'take view = "allocation"')
    buffer = Buffer(name, said["dtype"], axes, strides, inferred.elements)
    walk.values.held[op.results[0]] = walk.buffer(buffer, _spec(op, op.results[0], len(axes)))
    walk.steps.append(Allocate(name))


def integers(walk: Walk, op: Any, listed: Any, operands: list[int]) -> list[int]:
    """The integers of a list in an attribute, in which `unit` is the next operand; these are used
    up."""
    found: list[int] = []
    for entry in listed:
        number = plain(entry)
        if isinstance(number, int):
            found.append(walk.values.make("const", number))
        elif not operands:
            raise refuse(op, f"{op.name} has fewer operands than its lists want")
        else:
            found.append(operands.pop(0))
    return found


def _inferred(walk: Walk, op: Any, allocation: str, shape: list[int], sizes: list[int]) -> Inferred:
    try:
        return infer(walk.values.graph, shape, placed(parse(allocation), sizes))
    except InputError as error:
        raise refuse(op, error.message, error.hint) from None


def result(walk: Walk, op: Any, value: Any, name: str, said: Any, operands: list[int]) -> str:
    """The buffer of a tensor that a library call makes, of a shape and maybe strides that `said`
    has; its name."""
    name, graph = walk.name(name), walk.values.graph
    shape = integers(walk, op, said["shape"], operands)
    contiguous = infer(graph, shape)
    assert contiguous.strides is not None
    strides, elements = contiguous.strides, contiguous.elements
    if "strides" in said:
        strides = tuple(integers(walk, op, said["strides"], operands))
        elements = reach(walk, shape, strides)
    buffer = Buffer(name, said["dtype"].value, tuple(shape), strides, elements)
    walk.values.held[value] = walk.buffer(buffer, _spec(op, value, len(shape)))
    return name


def reach(walk: Walk, shape: Sequence[int], strides: Sequence[int]) -> int:
    """How many elements lie from the first to the last one; none where an extent is 0."""
    graph = walk.values.graph
    one, found, empty = graph.const(1), graph.const(1), graph.const(0)
    for extent, stride in zip(shape, strides, strict=True):
        found = graph.add(found, graph.mul(graph.sub(extent, one), stride))
        empty = graph.logical_or(empty, graph.eq(extent, graph.const(0)))
    return graph.select(empty, graph.const(0), found)


def _spec(op: Any, value: Any, rank: int) -> MemRefSpec:
    """The type of the tensor, which has to be of this rank."""
    spec = spec_of(value.type)
    if isinstance(spec, MemRefSpec):
        shape = getattr(spec.layout, "shape", None)
        modes = shape if isinstance(shape, tuple) else (shape,)
        if len(modes) == max(rank, 1) and not any(isinstance(mode, tuple) for mode in modes):
            return spec
    raise refuse(op, f"{op.name} makes a tensor of {rank} dimensions, and its type is {spec}")
