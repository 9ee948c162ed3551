"""Builders for the ops of MLIR's vector dialect that passes here make.

By name rather than through the bindings' module of the dialect, whose import takes longer than the
passes. Each builds before the operation `at`, with its location.
"""

from __future__ import annotations

from typing import Any

from fly_dialect.bindings import ir

Value = Any  # an ir.Value


def _build(
    name: str, result: Any, operands: list[Value], attributes: dict[str, Any], at: Any
) -> Value:
    return ir.Operation.create(
        name,
        results=[result],
        operands=operands,
        attributes=attributes,
        loc=at.location,
        ip=ir.InsertionPoint(at),
    ).results[0]


def poison(type_: Any, at: Any) -> Value:
    """A value of which nothing is known."""
    return _build("ub.poison", type_, [], {"value": ir.Attribute.parse("#ub.poison")}, at)


def extract(vector: Value, offset: int, count: int | None, at: Any) -> Value:
    """`count` elements from `offset` on as a vector; one as a scalar where count is None."""
    element = vector.type.element_type
    if count is None:
        position = {"static_position": ir.DenseI64ArrayAttr.get([offset])}
        return _build("vector.extract", element, [vector], position, at)
    slice_ = {"offsets": _integers(offset), "sizes": _integers(count), "strides": _integers(1)}
    type_ = ir.VectorType.get([count], element)
    return _build("vector.extract_strided_slice", type_, [vector], slice_, at)


def insert(value: Value, vector: Value, offset: int, at: Any) -> Value:
    """`vector` with the elements from `offset` on replaced by `value`, a vector or a scalar."""
    if not isinstance(value.type, ir.VectorType):
        position = {"static_position": ir.DenseI64ArrayAttr.get([offset])}
        return _build("vector.insert", vector.type, [value, vector], position, at)
    slice_ = {"offsets": _integers(offset), "strides": _integers(1)}
    return _build("vector.insert_strided_slice", vector.type, [value, vector], slice_, at)


def bitcast(value: Value, type_: Any, at: Any) -> Value:
    """The same bits as another type: both vectors, or both scalars."""
    if value.type == type_:
        return value
    if isinstance(type_, ir.VectorType):
        return _build("vector.bitcast", type_, [value], {}, at)
    single = _build("vector.from_elements", ir.VectorType.get([1], value.type), [value], {}, at)
    other = _build("vector.bitcast", ir.VectorType.get([1], type_), [single], {}, at)
    return extract(other, 0, None, at)


def _integers(*numbers: int) -> Any:
    i64 = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get([ir.IntegerAttr.get(i64, number) for number in numbers])
