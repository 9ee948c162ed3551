"""How a value of the fly dialect crosses a function boundary.

A tuple or layout is passed as a packed LLVM struct of its dynamic leaves; a static one, and a
swizzle, a tile or an atom without state, is not passed at all. A memref is passed as its pointer
and its layout's struct. The form is FlyDSL's, so its kernels and ours can be called alike:

    !fly.int_tuple<(4,8)>                          –
    !fly.int_tuple<(?,?{i64})>                     !llvm.struct<packed (i32, i64)>
    !fly.layout<4:?>                               !llvm.struct<packed (struct<packed (i32)>)>
    !fly.composed_layout<S<3,3,3> o ? o 8:1>       !llvm.struct<packed (struct<packed (i32)>)>
    !fly.memref<f32, global, ?{i64}:1>             !fly.ptr<f32, global>, a struct as above
"""

from __future__ import annotations

from collections.abc import Sequence

from fly_dialect.atoms import CopyAtomSpec, MmaAtomSpec, TiledCopySpec, TiledMmaSpec
from fly_dialect.bindings import ir
from fly_dialect.builders import ops
from fly_dialect.dialect import type_of
from fly_dialect.layouts.int_tuple import IntTuple, dynamic_leaves, is_static
from fly_dialect.layouts.integers import Basis
from fly_dialect.layouts.layout import AnyLayout, ComposedLayout, Layout
from fly_dialect.layouts.swizzle import CoordSwizzle, Swizzle
from fly_dialect.types import (
    ComposedLayoutSpec,
    CoordSwizzleSpec,
    CoordTensorSpec,
    IntTupleSpec,
    LayoutSpec,
    MemRefSpec,
    Spec,
    SwizzleSpec,
    TileSpec,
    layout_spec,
)

# What consists of parts: the op that takes each out, in the order of the struct's fields, and the
# the struct's fields, and the op that combines the parts, in the order of its operands.
_GETTERS = {
    LayoutSpec: ("get_shape", "get_stride"),
    ComposedLayoutSpec: ("composed_get_outer", "composed_get_offset", "composed_get_inner"),
    CoordTensorSpec: ("get_iter", "get_layout"),
}
MAKERS = {
    LayoutSpec: ("make_layout", (0, 1)),
    ComposedLayoutSpec: ("make_composed_layout", (2, 1, 0)),
    CoordTensorSpec: ("make_view", (0, 1)),
}
_ALWAYS_STATIC = (SwizzleSpec, CoordSwizzleSpec, TileSpec)
_ATOMS = (CopyAtomSpec, MmaAtomSpec, TiledCopySpec, TiledMmaSpec)


def carriers(spec: Spec) -> list[Spec] | None:
    """Returns the types that carry a value of type `spec`; None if it is passed unchanged."""
    if isinstance(spec, _ALWAYS_STATIC):
        return []
    if isinstance(spec, _ATOMS):
        return [] if spec.is_static else None
    if not isinstance(spec, (IntTupleSpec, MemRefSpec, *_GETTERS)):
        return None
    found: list[Spec] = [spec.pointer] if isinstance(spec, MemRefSpec) else []
    if struct := _struct(spec):
        found.append(f"!llvm.{struct}")
    return found


def _struct(spec: Spec) -> str:
    """Returns the struct of the dynamic leaves of `spec`, as nested in another; "" if all is
    static."""
    if isinstance(spec, IntTupleSpec):
        fields = [f"i{leaf.width}" for leaf in dynamic_leaves(spec.value)]
    elif isinstance(spec, MemRefSpec):
        return _struct(layout_spec(spec.layout))
    elif isinstance(spec, (*_ALWAYS_STATIC, *_ATOMS)):
        return ""  # only static atoms occur here
    else:
        fields = [field for part in parts(spec) if (field := _struct(part))]
    return f"struct<packed ({', '.join(fields)})>" if fields else ""


def parts(spec: Spec) -> list[Spec]:
    """Returns the types of the parts of a layout (shape, stride), a composed layout (outer, offset,
    inner) or a coord_tensor (base, layout)."""
    if isinstance(spec, LayoutSpec):
        return [IntTupleSpec(spec.layout.shape), IntTupleSpec(spec.layout.stride)]
    if isinstance(spec, ComposedLayoutSpec):
        layout = spec.layout
        offset = IntTupleSpec(layout.offset)
        return [layout_spec(layout.outer), offset, _inner_spec(layout.inner)]
    if isinstance(spec, CoordTensorSpec):
        return [IntTupleSpec(spec.base), layout_spec(spec.layout)]
    raise TypeError(f"{spec} has no parts")


def _inner_spec(inner: AnyLayout | Swizzle | CoordSwizzle) -> Spec:
    if isinstance(inner, (Layout, ComposedLayout)):
        return layout_spec(inner)
    return SwizzleSpec(inner) if isinstance(inner, Swizzle) else CoordSwizzleSpec(inner)


# -- value → carriers -----------------------------------------------------------------------------
def pack(value: ir.Value, spec: Spec, loc: ir.Location | None) -> list[ir.Value]:
    """Decomposes a value into its carriers, at the current insertion point."""
    if isinstance(spec, MemRefSpec):
        pointer = ops.get_iter(value, loc=loc)
        if spec.layout.is_static:
            return [pointer]
        layout = ops.get_layout(value, loc=loc)
        return [pointer, *pack(layout, layout_spec(spec.layout), loc)]
    struct = _struct(spec)
    return [_pack_struct(value, spec, f"!llvm.{struct}", loc)] if struct else []


def _pack_struct(value: ir.Value, spec: Spec, struct: str, loc: ir.Location | None) -> ir.Value:
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


def _fields(value: ir.Value, spec: Spec, loc: ir.Location | None) -> list[ir.Value]:
    if isinstance(spec, IntTupleSpec):
        paths = _dynamic_paths(spec.value, ())
        picked = [ops.get(value, *path, loc=loc) if path else value for path in paths]
        return [ops.get_scalar(leaf, loc=loc) for leaf in picked]
    fields = []
    for part, getter in zip(parts(spec), _GETTERS[type(spec)], strict=True):
        if struct := _struct(part):
            value_of_part = ops.build(getter, [value], loc=loc)
            fields.append(_pack_struct(value_of_part, part, f"!llvm.{struct}", loc))
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
def unpack(values: Sequence[ir.Value], spec: Spec, loc: ir.Location | None) -> ir.Value:
    """Builds a value of type `spec` from its carriers, at the current insertion point."""
    if isinstance(spec, MemRefSpec):
        layout = unpack(values[1:], layout_spec(spec.layout), loc)
        return ops.make_view(values[0], layout, loc=loc)
    if not values:
        return _static(spec, loc)
    return _unpack_struct(values[0], spec, loc)


def _static(spec: Spec, loc: ir.Location | None) -> ir.Value:
    if isinstance(spec, CoordTensorSpec):
        base, layout = (ops.static(part, loc=loc) for part in parts(spec))
        return ops.make_view(base, layout, loc=loc)
    return ops.static(spec, loc=loc)


def _unpack_struct(struct: ir.Value, spec: Spec, loc: ir.Location | None) -> ir.Value:
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
    name, order = MAKERS[type(spec)]
    return ops.build(name, [made[index] for index in order], loc=loc)


def _extract(struct: ir.Value, index: int, type_: str, loc: ir.Location | None) -> ir.Value:
    return ir.Operation.create(
        "llvm.extractvalue",
        results=[type_of(type_)],
        operands=[struct],
        attributes={"position": ir.DenseI64ArrayAttr.get([index])},
        loc=loc,
    ).result
