"""fly-flatten-arguments: passes each integer of a struct as a kernel argument of its own.

The packed structs of fly-rewrite-func-signature have an alignment of one byte, and LLVM's NVPTX
backend loads such a parameter byte by byte. Scalars have their natural alignment.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from fly_common.record import record, replace
from fly_dialect.bindings import ir, module
from fly_host import text
from fly_host.program import Branch, Launch, Loop, Step

from fly_opt.ir.builder import operations
from fly_opt.passes.base import Pass, refuse

_PROGRAM = "fly.host_program"
# A type, or what a struct's fields are made of.
Tree = ir.Value | tuple["Tree", ...]


@record
class FlattenArguments(Pass):
    """Splits struct arguments of kernels into scalars, in the kernels and in the host program.

    Runs after fly-extract-host-program and fly-rewrite-func-signature.
    """

    name: ClassVar[str] = "fly-flatten-arguments"

    def run(self, op: ir.Operation) -> None:
        # A list: ops are erased in between.
        for function in [inner for inner in operations(op) if inner.name == "gpu.func"]:
            _flatten(function)
        if _PROGRAM in op.attributes:
            program = text.read(ir.StringAttr(op.attributes[_PROGRAM]).value)
            program = replace(program, steps=tuple(map(_step, program.steps)))
            op.attributes[_PROGRAM] = ir.StringAttr.get(text.write(program))


def _step(step: Step) -> Step:
    """Returns the step with one word per kernel argument."""
    if isinstance(step, Launch):
        return replace(step, arguments=tuple((word,) for words in step.arguments for word in words))
    if isinstance(step, Loop):
        return replace(step, body=tuple(map(_step, step.body)))
    if isinstance(step, Branch):
        then, otherwise = (tuple(map(_step, side)) for side in (step.then, step.otherwise))
        return replace(step, then=then, otherwise=otherwise)
    return step


def _flatten(function: ir.Operation) -> None:
    if not len(function.regions[0].blocks):
        return
    block = function.regions[0].blocks[0]
    signature = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    count = len(signature.inputs)
    if not any(map(_is_struct, signature.inputs)):
        return
    arguments = list(block.arguments)
    if len(arguments) > count:
        raise refuse(function, "a kernel with workgroup or private buffers can't take a struct")
    types: list[ir.Type] = []
    attributes: list[ir.Attribute] = []
    old = list(function.attributes["arg_attrs"]) if "arg_attrs" in function.attributes else []
    for number, argument in enumerate(arguments):
        leaves = list(_leaves(argument.type))
        types += leaves
        own = old[number] if old else ir.DictAttr.get({})
        attributes += [own, *[ir.DictAttr.get({})] * (len(leaves) - 1)][: len(leaves)]
    for argument in arguments:
        leaves = _leaves(argument.type)
        made = [block.add_argument(leaf, argument.location) for leaf in leaves]
        _replace(argument, _tree(argument.type, iter(made)), block)
    for _ in range(count):
        block.erase_argument(0)
    if old:
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)
    new = ir.FunctionType.get(types, list(signature.results))
    function.attributes["function_type"] = ir.TypeAttr.get(new)


def _is_struct(type_: ir.Type) -> bool:
    return str(type_).startswith("!llvm.struct<")


def _fields(type_: ir.Type) -> list[ir.Type]:
    # Not through dialects.llvm, whose 1,500 classes take 30 ms to import.
    return list(module("_mlir_libs._mlirDialectsLLVM").StructType(type_).body)


def _leaves(type_: ir.Type) -> Iterator[ir.Type]:
    if not _is_struct(type_):
        yield type_
        return
    for field in _fields(type_):
        yield from _leaves(field)


def _tree(type_: ir.Type, values: Iterator[ir.Value]) -> Tree:
    if not _is_struct(type_):
        return next(values)
    return tuple(_tree(field, values) for field in _fields(type_))


def _replace(value: ir.Value, tree: Tree, block: ir.Block) -> None:
    """Replaces a value by the parts it is made of: fields taken out of it by themselves, other uses
    by a struct built at the start of the block."""
    if isinstance(tree, ir.Value):
        value.replace_all_uses_with(tree)
        return
    for use in list(value.uses):
        op = use.owner.operation
        if op.name != "llvm.extractvalue":
            continue
        part: Tree = tree
        for index in ir.DenseI64ArrayAttr(op.attributes["position"]):
            assert isinstance(part, tuple), "the verifier has seen to it"
            part = part[index]
        _replace(op.results[0], part, block)
        op.erase()
    if list(value.uses):
        with ir.InsertionPoint.at_block_begin(block), value.location:
            value.replace_all_uses_with(_struct(value.type, tree))


def _struct(type_: ir.Type, tree: Tree) -> ir.Value:
    if isinstance(tree, ir.Value):
        return tree
    made = ir.Operation.create("llvm.mlir.undef", [type_]).results[0]
    for index, (field, part) in enumerate(zip(_fields(type_), tree, strict=True)):
        position = {"position": ir.DenseI64ArrayAttr.get([index])}
        operands = [made, _struct(field, part)]
        made = ir.Operation.create("llvm.insertvalue", [type_], operands, position).results[0]
    return made
