"""The lowering: a pair is a vector of two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fly_dialect.bindings import ir
from fly_dialect.dialect import spec_of
from fly_opt.passes.base import Pass

from plugin_pairs.dialect import Pair

PIPELINE = "gpu.module(pairs-lower)"
NAMES = {"make": "vector.from_elements", "take": "vector.extract", "swap": "vector.shuffle"}


@dataclass(frozen=True)
class Lower(Pass):
    """Makes pairs vectors, and their operations those of vectors."""

    name: ClassVar[str] = "pairs-lower"
    anchor: ClassVar[str] = "gpu.module"

    def run(self, op):
        found = []

        def visit(one):
            found.append(one.operation)
            return ir.WalkResult.ADVANCE

        op.walk(visit, ir.WalkOrder.PRE_ORDER)
        for one in found:
            blocks = [block for region in one.regions for block in region]
            for value in (*one.results, *(value for block in blocks for value in block.arguments)):
                if isinstance(spec := spec_of(value.type), Pair):
                    value.set_type(ir.VectorType.get([2], ir.Type.parse(spec.element)))
        for one in found:
            if one.name.startswith("pairs."):
                lower(one, one.name.removeprefix("pairs."))


def lower(one, name: str) -> None:
    operands, attributes = list(one.operands), {}
    if name == "take":
        at = ir.IntegerAttr(one.attributes["at"]).value
        attributes["static_position"] = ir.DenseI64ArrayAttr.get([at])
    if name == "swap":
        operands, attributes = operands * 2, {"mask": ir.DenseI64ArrayAttr.get([1, 0])}
    made = ir.Operation.create(
        NAMES[name],
        [one.results[0].type],
        operands,
        attributes,
        loc=one.location,
        ip=ir.InsertionPoint(one),
    )
    one.results[0].replace_all_uses_with(made.results[0])
    one.erase()
