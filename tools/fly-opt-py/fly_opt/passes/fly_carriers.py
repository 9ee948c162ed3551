"""What carries a value of the fly dialect across a function boundary.

A tuple or layout is carried by a packed LLVM struct of its dynamic leaves, and by nothing where all
is static; a memref by its pointer and its layout's struct. The form is FlyDSL's, so its kernels and
ours can be called alike:

    !fly.int_tuple<(4,8)>                          –
    !fly.int_tuple<(?,?{i64})>                     !llvm.struct<packed (i32, i64)>
    !fly.layout<4:?>                               !llvm.struct<packed (struct<packed (i32)>)>
    !fly.memref<f32, global, ?{i64}:1>             !fly.ptr<f32, global>, a struct as above
"""

from __future__ import annotations

from typing import Any

from fly_dialect import ops
from fly_dialect.bindings import ir
from fly_dialect.dialect import type_of
from fly_dialect.layout import Basis, IntTuple, dynamic_leaves, is_static
from fly_dialect.types import (
    ComposedLayoutSpec,
    CoordTensorSpec,
    IntTupleSpec,
    LayoutSpec,
    MemRefSpec,
    Spec,
    layout_spec,
)

Value = Any  # an ir.Value

CARRIED = (IntTupleSpec, LayoutSpec, MemRefSpec, CoordTensorSpec)


def carriers(spec: Spec) -> list[Spec] | None:
    """The types that carry a value of type `spec`; None where it goes as it is."""
    if not isinstance(spec, CARRIED):
        return None
    found: list[Spec] = [spec.pointer] if isinstance(spec, MemRefSpec) else []
    if struct := _struct(spec):
        found.append(f"!llvm.{struct}")
    return found


def _struct(spec: Spec) -> str:
    """The struct of what is dynamic in `spec`, as nested in another; "" if all is static."""
    if isinstance(spec, IntTupleSpec):
        fields = [f"i{leaf.width}" for leaf in dynamic_leaves(spec.value)]
    elif isinstance(spec, MemRefSpec):
        return _struct(layout_spec(spec.layout))
    elif isinstance(spec, (LayoutSpec, ComposedLayoutSpec)) and spec.layout.is_static:
        return ""
    else:
        fields = [field for part in parts(spec) if (field := _struct(part))]
    return f"struct<packed ({', '.join(fields)})>" if fields else ""


def parts(spec: Spec) -> list[Spec]:
    """The two parts that make a layout (shape, stride) or a coord_tensor (base, layout)."""
    if isinstance(spec, LayoutSpec):
        return [IntTupleSpec(spec.layout.shape), IntTupleSpec(spec.layout.stride)]
    if isinstance(spec, CoordTensorSpec):
        return [IntTupleSpec(spec.base), layout_spec(spec.layout)]
    raise TypeError(f"{spec} has no parts")


# -- value → carriers -----------------------------------------------------------------------------
def pack(value: Value, spec: Spec, loc: Any) -> list[Value]:
    """Takes a value apart into its carriers, at the current insertion point."""
    if isinstance(spec, MemRefSpec):
        pointer = ops.get_iter(value, loc=loc)
        if spec.layout.is_static:
            return [pointer]
        layout = ops.get_layout(value, loc=loc)
        return [pointer, *pack(layout, layout_spec(spec.layout), loc)]
    struct = _struct(spec)
    return [_pack_struct(value, spec, f"!llvm.{struct}", loc)] if struct else []


def _pack_struct(value: Value, spec: Spec, struct: str, loc: Any) -> Value:
    type_ = type_of(struct)
    result = ir.Operation.create("llvm.mlir.undef", results=[type_], loc=loc).result
    for index, field in enumerate(_fields(value, spec, loc)):
        result = ir.Operation.create(
            "llvm.insertvalue",
            results=[type_],
            operands=[result, field],
            attributes={"position": ir.DenseI64ArrayAttr.get([index])},
            loc=loc,
        ).result
    return result


def _fields(value: Value, spec: Spec, loc: Any) -> list[Value]:
    if isinstance(spec, IntTupleSpec):
        paths = _dynamic_paths(spec.value, ())
        picked = [ops.get(value, *path, loc=loc) if path else value for path in paths]
        return [ops.get_scalar(leaf, loc=loc) for leaf in picked]
    if isinstance(spec, LayoutSpec):
        getters = (ops.get_shape, ops.get_stride)
    else:
        getters = (ops.get_iter, ops.get_layout)
    fields = []
    for part, getter in zip(parts(spec), getters, strict=True):
        if struct := _struct(part):
            fields.append(_pack_struct(getter(value, loc=loc), part, f"!llvm.{struct}", loc))
    return fields


def _dynamic_paths(value: IntTuple, path: tuple[int, ...]) -> list[tuple[int, ...]]:
    if isinstance(value, tuple):
        below = (_dynamic_paths(part, (*path, index)) for index, part in enumerate(value))
        return [found for paths in below for found in paths]
    if isinstance(value, Basis):
        if is_static(value):
            return []
        raise ValueError(f"{value} can't cross a function boundary: its scale is dynamic")
    return [path] if value is not None and value.value is None else []


# -- carriers → value -----------------------------------------------------------------------------
def unpack(values: list[Value], spec: Spec, loc: Any) -> Value:
    """Makes a value of type `spec` of its carriers, at the current insertion point."""
    if isinstance(spec, MemRefSpec):
        layout = unpack(values[1:], layout_spec(spec.layout), loc)
        return ops.make_view(values[0], layout, loc=loc)
    if not values:
        return _static(spec, loc)
    return _unpack_struct(values[0], spec, loc)


def _static(spec: Spec, loc: Any) -> Value:
    if isinstance(spec, CoordTensorSpec):
        base, layout = (ops.static(part, loc=loc) for part in parts(spec))
        return ops.make_view(base, layout, loc=loc)
    return ops.static(spec, loc=loc)


def _unpack_struct(struct: Value, spec: Spec, loc: Any) -> Value:
    if isinstance(spec, IntTupleSpec):
        types = [f"i{leaf.width}" for leaf in dynamic_leaves(spec.value)]
        found = [_extract(struct, index, type_, loc) for index, type_ in enumerate(types)]
        return ops.make_int_tuple(*found, spec=spec, loc=loc)
    made, index = [], 0
    for part in parts(spec):
        if field := _struct(part):
            inner = _extract(struct, index, f"!llvm.{field}", loc)
            made.append(_unpack_struct(inner, part, loc))
            index += 1
        elif isinstance(part, IntTupleSpec):
            made.append(ops.make_int_tuple(spec=part, loc=loc))
        else:
            made.append(_static(part, loc))
    build = ops.make_layout if isinstance(spec, LayoutSpec) else ops.make_view
    return build(made[0], made[1], loc=loc)


def _extract(struct: Value, index: int, type_: str, loc: Any) -> Value:
    return ir.Operation.create(
        "llvm.extractvalue",
        results=[type_of(type_)],
        operands=[struct],
        attributes={"position": ir.DenseI64ArrayAttr.get([index])},
        loc=loc,
    ).result
