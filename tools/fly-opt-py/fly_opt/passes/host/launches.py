"""Kernel launches of a host function as steps.

What a kernel argument is made of follows fly-rewrite-func-signature: a tensor is a pointer and,
where its layout has dynamic leaves, a packed struct of them, shape before stride; a tuple or a
layout is such a struct alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fly_dialect.dialect import spec_of
from fly_dialect.layouts.int_tuple import leaves as leaves_of
from fly_dialect.types import IntTupleSpec, MemRefSpec, PtrSpec, layout_spec
from fly_host.program import Launch, Scalar, Stream, Word

from fly_opt.ir.boundary import carriers, parts
from fly_opt.passes.base import refuse
from fly_opt.passes.host.arguments import Parameter, scalar_size
from fly_opt.passes.host.made import (
    MadeComposed,
    MadeCoordinates,
    MadeLayout,
    Tree,
    View,
    is_tree,
)
from fly_opt.passes.host.tensors import Layout, TensorValue
from fly_opt.passes.host.values import Values
from fly_opt.passes.host.walk import Walk


def launch(walk: Walk, op: Any) -> None:
    """gpu.launch_func."""
    values = walk.values
    # Segments: async tokens, grid x y z, block x y z, cluster x y z, dynamic LDS, arguments,
    # stream object.
    segments = [*op.attributes["operandSegmentSizes"], 0][:13]
    # Tokens say that one launch follows another: launches of a program do, in their order.
    operands = list(op.operands)[segments[0] :]
    sizes = [values.integer(op, operand) for operand in operands[:6]]
    clustered = sum(segments[7:10])
    walk.clusters.launch(values, op, operands[6 : 6 + clustered])
    has_shared, count = segments[10], segments[11]
    del operands[6 : 6 + clustered]
    shared = values.integer(op, operands[6]) if has_shared else values.make("const", 0)
    arguments: list[tuple[Word, ...]] = []
    for operand in operands[6 + has_shared :][:count]:
        arguments += _words(values, op, operand)
    walk.steps.append(
        Launch(
            kernel=op.attributes["kernel"].value[-1],
            grid=(sizes[0], sizes[1], sizes[2]),
            block=(sizes[3], sizes[4], sizes[5]),
            shared=shared,
            arguments=tuple(arguments),
            stream=_stream(values, op, operands[-1]) if segments[12] else None,
        )
    )


def _stream(values: Values, op: Any, operand: Any) -> str:
    held = values.held.get(operand)
    if not isinstance(held, Parameter) or not isinstance(held.made, Stream):
        raise refuse(op, "a launch is on a stream that the host function has no parameter for")
    return held.made.name


def _words(values: Values, op: Any, operand: Any) -> list[tuple[Word, ...]]:
    """The kernel arguments that one operand of a launch becomes."""
    held, spec = values.held.get(operand), spec_of(operand.type)
    if carriers(spec) == []:
        return []
    if isinstance(held, Word):
        return [(held,)]
    if isinstance(held, Parameter) and isinstance(held.made, Scalar):
        return [(Word("scalar", name=held.made.name, size=scalar_size(op, held.spec)),)]
    if isinstance(held, int) and not isinstance(spec, IntTupleSpec):
        size = scalar_size(op, str(operand.type))
        return [(Word("integer", expression=held, size=size),)]
    if isinstance(held, TensorValue):
        pointer = (Word("pointer", name=held.name),)
        dynamic = tuple(
            Word(
                "integer", expression=held.expression(values.graph, kind, at), size=leaf.width // 8
            )
            for kind, leaves in zip(("extent", "stride"), held.leaves, strict=True)
            for at, leaf in enumerate(leaves)
            if leaf.value is None
        )
        return [pointer, dynamic] if dynamic else [pointer]
    if isinstance(held, View) and (isinstance(spec, PtrSpec) or spec == "i64"):
        return [(Word("pointer", name=held.of.name),)]
    if isinstance(held, View) and held.layout is not None and isinstance(spec, MemRefSpec):
        pointer = (Word("pointer", name=held.of.name),)
        dynamic = tuple(_dynamic(layout_spec(spec.layout), held.layout))
        return [pointer, dynamic] if dynamic else [pointer]
    if isinstance(held, Layout):
        held = values.made(held)
    if isinstance(held, MadeLayout | MadeComposed | MadeCoordinates) or is_tree(held):
        return [tuple(_dynamic(spec, held))]
    raise refuse(op, f"an argument of type {operand.type} can't be in a host program")


def _dynamic(spec: Any, held: Any) -> Iterator[Word]:
    """What the kernel is passed of a tuple or a layout that the host function makes: its dynamic
    leaves, in the order of its parts."""
    if isinstance(spec, IntTupleSpec):
        for leaf, expression in zip(leaves_of(spec.value), _flat(held), strict=True):
            if leaf.value is None:
                yield Word("integer", expression=expression, size=leaf.width // 8)
        return
    for part, of in zip(parts(spec), held.parts, strict=True):
        if carriers(part):
            yield from _dynamic(part, of)


def _flat(tree: Tree) -> list[int]:
    return [leaf for part in tree for leaf in _flat(part)] if isinstance(tree, tuple) else [tree]
