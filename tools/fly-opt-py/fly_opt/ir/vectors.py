"""Builders for the ops of MLIR's vector dialect that passes here create.

They create ops by name, because importing the bindings' module of the dialect takes longer than the
passes.
"""

from __future__ import annotations

from fly_dialect.bindings import ir

from fly_opt.ir.builder import Builder


def poison(builder: Builder, type_: ir.Type) -> ir.Value:
    """Returns ub.poison."""
    return builder.value("ub.poison", type_, [], {"value": ir.Attribute.parse("#ub.poison")})


def extract(builder: Builder, vector: ir.Value, offset: int, count: int | None) -> ir.Value:
    """Extracts `count` elements from `offset` as a vector; a scalar if `count` is None."""
    element = ir.VectorType(vector.type).element_type
    if count is None:
        position = {"static_position": ir.DenseI64ArrayAttr.get([offset])}
        return builder.value("vector.extract", element, [vector], position)
    slice_ = {"offsets": _integers(offset), "sizes": _integers(count), "strides": _integers(1)}
    type_ = ir.VectorType.get([count], element)
    return builder.value("vector.extract_strided_slice", type_, [vector], slice_)


def insert(builder: Builder, value: ir.Value, vector: ir.Value, offset: int) -> ir.Value:
    """Replaces the elements of `vector` from `offset` on by `value`, a vector or a scalar."""
    if not isinstance(value.type, ir.VectorType):
        position = {"static_position": ir.DenseI64ArrayAttr.get([offset])}
        return builder.value("vector.insert", vector.type, [value, vector], position)
    slice_ = {"offsets": _integers(offset), "strides": _integers(1)}
    return builder.value("vector.insert_strided_slice", vector.type, [value, vector], slice_)


def bitcast(builder: Builder, value: ir.Value, type_: ir.Type) -> ir.Value:
    """Reinterprets the bits as another type; both types are vectors, or both are scalars."""
    if value.type == type_:
        return value
    if isinstance(type_, ir.VectorType):
        return builder.value("vector.bitcast", type_, [value])
    single = builder.value("vector.from_elements", ir.VectorType.get([1], value.type), [value])
    other = builder.value("vector.bitcast", ir.VectorType.get([1], type_), [single])
    return extract(builder, other, 0, None)


def _integers(number: int) -> ir.ArrayAttr:
    return ir.ArrayAttr.get([ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)])
