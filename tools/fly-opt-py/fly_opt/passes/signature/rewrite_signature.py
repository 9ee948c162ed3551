"""`fly-rewrite-func-signature`: removes fly types from function boundaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from fly_common.record import record
from fly_dialect.bindings import ir
from fly_dialect.dialect import spec_of, type_of
from fly_dialect.types import Spec

from fly_opt.ir import boundary as fly_carriers
from fly_opt.ir.builder import operations, unused
from fly_opt.passes.base import Pass, refuse

FUNCTIONS = ("func.func", "gpu.func")
# Ops whose operands, results and entry arguments form one boundary.
BOUNDARIES = frozenset(
    (
        "func.call",
        "func.return",
        "gpu.launch_func",
        "scf.if",
        "scf.for",
        "scf.while",
        "scf.execute_region",
        "scf.index_switch",
        "scf.yield",
        "scf.condition",
    )
)


@record
class RewriteFuncSignature(Pass):
    """Passes tuples, layouts and memrefs as pointers and packed structs of their dynamic leaves.

    Arguments and results of functions, calls, launches and scf control flow are rewritten alike. A
    static value is not passed, but rebuilt by fly.static; a memref becomes a pointer and, if its
    layout is dynamic, a struct of the layout's dynamic leaves. Unused arguments are not rebuilt. An
    argument's attributes go to its first carrier.
    """

    name: ClassVar[str] = "fly-rewrite-func-signature"

    def run(self, op: ir.Operation) -> None:
        rewrite = _Rewrite()
        # In textual order: a block's arguments have their carriers before an op passes them on, so
        # they are not packed and unpacked again.
        for inner in operations(op):
            if inner.name in FUNCTIONS:
                rewrite.function(inner)
            elif inner.name in BOUNDARIES:
                rewrite.boundary(inner)
        rewrite.finish()


@record(frozen=False)
class _Old:
    """A value to be replaced: its spec, its carriers, and the op whose results they are (None for a
    block's arguments)."""

    value: ir.Value
    spec: Spec
    carriers: Sequence[ir.Value]
    op: ir.Operation | None
    loc: ir.Location | None


class _Rewrite:
    def __init__(self) -> None:
        self.carriers: dict[ir.Value, Sequence[ir.Value]] = {}
        self.old: list[_Old] = []
        self.blocks: list[tuple[ir.Block, int]] = []  # (block, how many old arguments lead it)
        self.ops: list[ir.Operation] = []  # replaced, to be erased when their results are unused

    # -- functions

    def function(self, op: ir.Operation) -> None:
        signature = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
        inputs = [spec_of(type_) for type_ in signature.inputs]
        results = [spec_of(type_) for type_ in signature.results]
        if all(fly_carriers.carriers(spec) is None for spec in [*inputs, *results]):
            return
        for attribute, specs in (("arg_attrs", inputs), ("res_attrs", results)):
            if attribute in op.attributes:
                op.attributes[attribute] = _spread_attributes(op.attributes[attribute], specs)
        op.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get(_types(inputs), _types(results))
        )
        if len(op.regions[0].blocks):
            self.block(op.regions[0].blocks[0])
            for block in list(op.regions[0].blocks)[1:]:
                if any(_carried(argument) for argument in block.arguments):
                    raise refuse(op, "a branch passes a fly value; use scf control flow instead")

    def block(self, block: ir.Block) -> None:
        """Adds carriers to the block's arguments. The old arguments stay in front until
        `finish`."""
        arguments = list(block.arguments)
        if not any(_carried(argument) for argument in arguments):
            return
        for argument in arguments:
            spec, loc = spec_of(argument.type), argument.location
            kinds = fly_carriers.carriers(spec)
            if kinds is None:
                argument.replace_all_uses_with(block.add_argument(argument.type, loc))
                continue
            new = [block.add_argument(type_of(kind), loc) for kind in kinds]
            self.retire(argument, spec, new, None, loc)
        self.blocks.append((block, len(arguments)))

    # -- ops that pass values

    def boundary(self, op: ir.Operation) -> None:
        entries = [region.blocks[0] for region in op.regions if len(region.blocks)]
        touched = [*op.operands, *op.results, *(arg for b in entries for arg in b.arguments)]
        if not any(_carried(value) for value in touched):
            return
        try:
            groups = [self.pack(operand, op.location) for operand in op.operands]
        except ValueError as error:
            raise refuse(op, f"{op.name}: {error}") from None
        attributes = {name: op.attributes[name] for name in op.attributes}
        if "operandSegmentSizes" in attributes:
            attributes["operandSegmentSizes"] = _segments(attributes["operandSegmentSizes"], groups)
        specs = [spec_of(result.type) for result in op.results]
        new = ir.Operation.create(
            op.name,
            results=_types(specs),
            operands=[value for group in groups for value in group],
            attributes=attributes,
            regions=len(op.regions),
            loc=op.location,
            ip=ir.InsertionPoint(op),
        )
        for source, target in zip(op.regions, new.regions, strict=True):
            for block in list(source.blocks):
                block.append_to(target)
        # Read again: a block refers to the op it was read from, which will be erased.
        for region in new.regions:
            if len(region.blocks):
                self.block(region.blocks[0])
        index = 0
        for result, spec in zip(op.results, specs, strict=True):
            kinds = fly_carriers.carriers(spec)
            count = 1 if kinds is None else len(kinds)
            values = list(new.results)[index : index + count]
            index += count
            if kinds is None:
                result.replace_all_uses_with(values[0])
            else:
                self.retire(result, spec, values, new, op.location)
        self.ops.append(op)

    def pack(self, value: ir.Value, loc: ir.Location | None) -> Sequence[ir.Value]:
        """Returns the carriers of a value, which is unpacked once, at its definition."""
        if not _carried(value):
            return [value]
        if value not in self.carriers:
            owner = value.owner
            if isinstance(owner, ir.Block):
                at = ir.InsertionPoint.at_block_begin(owner)
            else:
                at = ir.InsertionPoint.after(owner)
            with at:
                self.carriers[value] = fly_carriers.pack(value, spec_of(value.type), loc)
        return self.carriers[value]

    def retire(
        self,
        value: ir.Value,
        spec: Spec,
        new: Sequence[ir.Value],
        op: ir.Operation | None,
        loc: ir.Location | None,
    ) -> None:
        self.carriers[value] = new
        self.old.append(_Old(value, spec, new, op, loc))

    def finish(self) -> None:
        """Rebuilds the old values that still have uses, and erases the replaced ops.

        In reverse: values used only by replaced ops are then unused, and not rebuilt. And of two
        values rebuilt at the same place, the first ends up before the second.
        """
        results = {old.value: old for old in self.old}
        for op in reversed(self.ops):
            for result in reversed(list(op.results)):
                old = results.get(result)
                if old is not None and old.op is not None:
                    _make_again(old, ir.InsertionPoint.after(old.op))
            op.erase()
        for old in reversed(self.old):
            if old.op is None:
                block = old.value.owner
                assert isinstance(block, ir.Block), "only a block's argument has no op"
                _make_again(old, ir.InsertionPoint.at_block_begin(block))
        for block, count in self.blocks:
            for _ in range(count):
                block.erase_argument(0)


def _make_again(old: _Old, at: ir.InsertionPoint) -> None:
    if unused(old.value):
        return
    with at:
        made = fly_carriers.unpack(old.carriers, old.spec, old.loc)
    old.value.replace_all_uses_with(made)


def _carried(value: ir.Value) -> bool:
    type_ = value.type
    return isinstance(type_, ir.OpaqueType) and fly_carriers.carriers(spec_of(type_)) is not None


def _types(specs: list[Spec]) -> list[ir.Type]:
    types = []
    for spec in specs:
        kinds = fly_carriers.carriers(spec)
        types.extend(type_of(kind) for kind in ([spec] if kinds is None else kinds))
    return types


def _spread_attributes(attributes: ir.Attribute, specs: list[Spec]) -> ir.ArrayAttr:
    """Distributes the attributes of arguments to carriers: the first gets them, the others none."""
    spread = []
    for attribute, spec in zip(ir.ArrayAttr(attributes), specs, strict=True):
        kinds = fly_carriers.carriers(spec)
        count = 1 if kinds is None else len(kinds)
        spread.extend([attribute, *[ir.DictAttr.get({})] * (count - 1)][:count])
    return ir.ArrayAttr.get(spread)


def _segments(sizes: ir.Attribute, groups: list[Sequence[ir.Value]]) -> ir.Attribute:
    """Returns operandSegmentSizes after each operand has become a group."""
    result, index = [], 0
    for size in ir.DenseI32ArrayAttr(sizes):
        result.append(sum(len(group) for group in groups[index : index + size]))
        index += size
    return ir.DenseI32ArrayAttr.get(result)
