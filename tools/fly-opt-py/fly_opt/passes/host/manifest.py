"""Converts the host function to a launch plan.

The host function is straight-line code: integers from its arguments' extents, strides and scalars,
arithmetic on them (`values`), and kernel launches.

FlyDSL's host functions are supported too: their arguments have no names, and become arg0, arg1, …;
the stream they launch on is ignored, because a plan's launches run in order.

The kernel's arguments follow fly-rewrite-func-signature: a tensor is a pointer and, if its layout
has dynamic leaves, a packed struct of them, shape before stride; a tuple or a layout is such a
struct alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fly_common.quoting import quoted
from fly_dialect.dialect import spec_of
from fly_dialect.layouts.int_tuple import leaves as leaves_of
from fly_dialect.types import IntTupleSpec, MemRefSpec, layout_spec
from fly_host.plan import Expression, Launch, Plan, Scalar, Tensor, Word

from fly_opt.ir.boundary import carriers, parts
from fly_opt.passes.base import refuse
from fly_opt.passes.host.arguments import Layout, Parameter, modes, scalar_size
from fly_opt.passes.host.values import MadeComposed, MadeLayout, Tree, Values, View, is_tree
from fly_opt.passes.target.set_target import target_of

if TYPE_CHECKING:
    from fly_dialect.bindings import ir


def entry(module: ir.Operation) -> ir.Operation | None:
    """Returns the host function of a module: the one `fly.entry` names, else the only one; None if
    there is none. InputError if there are several and `fly.entry` is missing."""
    functions = [
        child.operation
        for child in module.regions[0].blocks[0]
        if child.operation.name == "func.func"
    ]
    names = [function.attributes["sym_name"].value for function in functions]
    if not functions and "fly.plan" in module.attributes:
        return None  # already extracted
    if "fly.entry" in module.attributes:
        wanted = module.attributes["fly.entry"].value
        if wanted not in names:
            raise refuse(
                module, f"fly.entry names {quoted(wanted)}, but the module has no such function"
            )
        return functions[names.index(wanted)]
    if len(functions) > 1:
        raise refuse(
            functions[1],
            f"the module has {len(functions)} host functions: {', '.join(names)}",
            'the module\'s attribute fly.entry = "name" selects the one that launches the kernels',
        )
    return functions[0] if functions else None


def extract(module: ir.Operation, host: ir.Operation) -> Plan:
    """Returns the plan of a host function. InputError names an operation that a plan can't
    express."""
    target = target_of(module)
    if target is None:
        raise refuse(module, "the module has no target", "run fly-set-target{chip=…} first")
    values = Values()
    block = host.regions[0].blocks[0]
    attributes = host.attributes.get("arg_attrs")
    said = [attributes[index] if attributes else {} for index in range(len(block.arguments))]
    named = any("fly.name" in of for of in said)
    for argument, of in zip(block.arguments, said, strict=True):
        values.argument(host, argument, of, named)
    launches: list[Launch] = []
    for child in block:
        op = child.operation
        if op.name == "gpu.launch_func":
            launches.append(_launch(values, op))
        elif op.name != "func.return":
            values.compute(op)
        elif len(op.operands):
            raise refuse(op, "the host function returns values, but a launch plan can't")
    if not launches:
        raise refuse(host, "the host function launches no kernel")
    for launch in launches:
        _check_block(host, values.expressions, launch, target.max_workgroup)
    return Plan(
        entry=host.attributes["sym_name"].value,
        target=target.name,
        parameters=tuple(values.parameters),
        expressions=tuple(values.expressions),
        launches=tuple(launches),
    )


def _check_block(
    host: ir.Operation, expressions: list[Expression], launch: Launch, most: int
) -> None:
    sizes = [expressions[index] for index in launch.block]
    if all(size[0] == "const" for size in sizes):
        x, y, z = (size[1] for size in sizes)
        if not 0 < x * y * z <= most or min(x, y, z) < 1:
            raise refuse(
                host,
                f"{launch.kernel} is launched with a block of {x}×{y}×{z}, but the target has"
                f" room for 1 to {most} work items",
            )


def _launch(values: Values, op: ir.Operation) -> Launch:
    # Segments: async tokens, grid x y z, block x y z, cluster x y z, dynamic LDS, arguments.
    segments = list(op.attributes["operandSegmentSizes"])
    if any(segments[7:10]) or segments[12:] not in ([], [0]):
        raise refuse(
            op, "a launch with clusters, or on a stream object, can't be part of a launch plan"
        )
    # Tokens order launches; the launches of a plan are in order anyway.
    operands = list(op.operands)[segments[0] :]
    sizes = [values.integer(op, operand) for operand in operands[:6]]
    has_shared = segments[10]
    shared = values.integer(op, operands[6]) if has_shared else values.make("const", 0)
    arguments: list[tuple[Word, ...]] = []
    for operand in operands[6 + has_shared :]:
        arguments += _words(values, op, operand)
    return Launch(
        kernel=op.attributes["kernel"].value[-1],
        grid=(sizes[0], sizes[1], sizes[2]),
        block=(sizes[3], sizes[4], sizes[5]),
        lds=shared,
        arguments=tuple(arguments),
    )


def _words(values: Values, op: ir.Operation, operand: ir.Value) -> list[tuple[Word, ...]]:
    """Returns the kernel arguments for one operand of a launch."""
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
    if isinstance(held, Parameter) and isinstance(held.made, Tensor):
        tensor, spec = held.made, held.spec
        pointer = (Word("pointer", name=tensor.name),)
        dynamic = tuple(
            Word("integer", expression=values.make(kind, tensor.name, dimension), size=size)
            for kind, tree in (("extent", spec.layout.shape), ("stride", spec.layout.stride))
            for dimension, leaf in enumerate(modes(tree))
            if leaf.value is None
            for size in (leaf.width // 8,)
        )
        return [pointer, dynamic] if dynamic else [pointer]
    if isinstance(held, View) and held.layout is not None and isinstance(spec, MemRefSpec):
        pointer = (Word("pointer", name=held.of.name),)
        dynamic = tuple(_dynamic(layout_spec(spec.layout), held.layout))
        return [pointer, dynamic] if dynamic else [pointer]
    if isinstance(held, Layout):
        held = values.made(held)
    if isinstance(held, MadeLayout | MadeComposed) or is_tree(held):
        return [tuple(_dynamic(spec, held))]
    raise refuse(op, f"an argument of type {operand.type} can't be in a launch plan")


def _dynamic(spec: Any, held: Any) -> Iterator[Word]:
    """Yields the kernel arguments for a tuple or a layout that the host function builds: its
    dynamic leaves, in the order of its parts."""
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
