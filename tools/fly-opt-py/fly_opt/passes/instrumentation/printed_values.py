"""FlyDSL's `fly.print`: a text with `{}` for each value, and values of any type.

    fly.print(%i, %x) {format = "{}: {}"} : (i32, f32) -> ()

A tuple is shown with its leaves, a layout as shape:stride, a vector as its elements. They become
the text of a site and values of 64 bits (`fly_image.reports`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from fly_dialect.bindings import ir
from fly_dialect.builders import ops
from fly_dialect.dialect import spec_of
from fly_dialect.layouts.int_tuple import IntTuple, dynamic_leaves
from fly_dialect.layouts.integers import Basis
from fly_dialect.types import IntTupleSpec, LayoutSpec

from fly_opt.passes.base import refuse
from fly_opt.passes.instrumentation.building import Arithmetic

_FIELD = re.compile(r"\{\d+(?::[^{}]*)?\}")  # of a site's text


def is_plain(text: str, values: Sequence[ir.Value]) -> bool:
    """Whether a text is FlyDSL's, whose fields are `{}`; that of a site has numbers in them, and
    `{{}` for a brace."""
    if values:
        return _FIELD.search(text) is None
    return "{" in text.replace("{{}", "")


def converted(
    op: ir.Operation, text: str, values: Sequence[ir.Value]
) -> tuple[str, list[ir.Value]]:
    """The text of a site, and its values. InputError for a value that can't be shown."""
    shown = _Shown(op)
    pieces, rest = [], list(values)
    for piece in re.split(r"(\{\})", text) if text else _spaced(len(values)):
        if piece == "{}" and rest:
            pieces.append(shown.value(rest.pop(0)))
        else:
            pieces.append(piece.replace("{", "{{}"))
    return "".join(pieces), shown.values


def _spaced(count: int) -> list[str]:
    """The pieces of a text of so many values."""
    return " ".join(["{}"] * count).replace(" ", "\0 \0").split("\0")


class _Shown:
    """The values that a line has so far."""

    def __init__(self, op: ir.Operation):
        self.op = op
        self.values: list[ir.Value] = []
        self.make = Arithmetic(ir.InsertionPoint(op), op.location)

    def value(self, value: ir.Value) -> str:
        spec = spec_of(value.type)
        if isinstance(spec, IntTupleSpec):
            return self.tree(spec.value, value)
        if isinstance(spec, LayoutSpec):
            parts = (
                (spec.layout.shape, ops.get_shape),
                (spec.layout.stride, ops.get_stride),
            )
            at = {"loc": self.make.loc, "ip": self.make.ip}
            return ":".join(self.tree(type_, part(value, **at)) for type_, part in parts)
        if isinstance(value.type, ir.VectorType) and ir.VectorType(value.type).rank == 1:
            vector = ir.VectorType(value.type)
            elements = (self.element(vector, value, index) for index in range(vector.shape[0]))
            return f"({', '.join(map(self.scalar, elements))})"
        return self.scalar(value)

    def element(self, vector: ir.VectorType, value: ir.Value, index: int) -> ir.Value:
        place = {"static_position": ir.DenseI64ArrayAttr.get([index])}
        return self.make.op("vector.extract", vector.element_type, [value], place)

    def tree(self, type_: IntTuple, value: ir.Value) -> str:
        """A tuple: its static leaves are in its type."""
        kinds = [ir.IntegerType.get_signless(leaf.width) for leaf in dynamic_leaves(type_)]
        leaves = ir.Operation.create(
            "fly.get_leaves", kinds, [value], {"dynamicOnly": ir.BoolAttr.get(True)},
            loc=self.make.loc, ip=self.make.ip,
        )  # fmt: skip
        dynamic = iter(leaves.results)

        def text(of: IntTuple) -> str:
            if isinstance(of, tuple):
                return f"({','.join(map(text, of))})"
            if isinstance(of, Basis):
                return text(of.scale) + "".join(f"E{mode}" for mode in of.modes)
            if of is None:
                return "*"
            return str(of.value) if of.is_static else self.scalar(next(dynamic))

        return text(type_)

    def scalar(self, value: ir.Value) -> str:
        kind, bits = self.bits(value)
        self.values.append(bits)
        return f"{{{len(self.values) - 1}:{kind}}}"

    def bits(self, value: ir.Value) -> tuple[str, ir.Value]:
        """The kind of a value in reports, and its bits as an i64."""
        make, type_ = self.make, value.type
        if isinstance(type_, ir.IndexType):
            return "i64", make.wide(value)
        if isinstance(type_, ir.IntegerType) and ir.IntegerType(type_).width <= 64:
            is_bool = ir.IntegerType(type_).width == 1
            return ("bool", make.wide(value, False)) if is_bool else ("i64", make.wide(value))
        if isinstance(type_, ir.F64Type):
            return "f64", make.op("arith.bitcast", make.i64, [value])
        if isinstance(type_, (ir.F16Type, ir.BF16Type, ir.F32Type)):
            f32, i32 = ir.F32Type.get(), ir.IntegerType.get_signless(32)
            wide = value if type_ == f32 else make.op("arith.extf", f32, [value])
            return "f32", make.wide(make.op("arith.bitcast", i32, [wide]), False)
        raise refuse(self.op, f"fly.print can't show a value of type {type_}")
