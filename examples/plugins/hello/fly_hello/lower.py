"""The pass `hello-lower`: hello.scale becomes a multiplication."""

from dataclasses import dataclass
from typing import ClassVar

from fly_opt.passes.base import Pass


@dataclass(frozen=True)
class Lower(Pass):
    """Replaces hello.scale by arith.mulf with a constant."""

    name: ClassVar[str] = "hello-lower"

    factor: int = 2

    def run(self, op):
        from fly_dialect.bindings import ir

        found = []

        def visit(one):
            if one.name == "hello.scale":
                found.append(one.operation)
            return ir.WalkResult.ADVANCE

        op.walk(visit)
        for scale in found:
            x = scale.operands[0]
            at = {"loc": scale.location, "ip": ir.InsertionPoint(scale)}
            vector = isinstance(x.type, ir.VectorType)
            element = x.type.element_type if vector else x.type
            factor = ir.FloatAttr.get(element, float(self.factor))
            value = ir.DenseElementsAttr.get_splat(x.type, factor) if vector else factor
            constant = ir.Operation.create(
                "arith.constant", [x.type], attributes={"value": value}, **at
            )
            product = ir.Operation.create("arith.mulf", [x.type], [x, constant.results[0]], **at)
            scale.results[0].replace_all_uses_with(product.results[0])
            scale.erase()
