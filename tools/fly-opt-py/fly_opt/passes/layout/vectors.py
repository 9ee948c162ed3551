"""`memref.load_vec` and `memref.store_vec`: accesses to a whole view as one vector.

Element i of the vector is the view's element at coordinate i, the first mode varying fastest.
Elements that are contiguous along one mode, the first of stride 1, are one access; there is one
such run for each coordinate of the other modes. (LLVM merges adjacent runs.)

    (4,2):(1,8)      runs of 4 at 0 and 8
    (2,4):(4,1)      runs of 4 at 0 and 4, their elements interleaved in the vector
    (4,2):(2,8)      8 elements, one by one
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

from fly_common.record import record
from fly_dialect import algebra
from fly_dialect.bindings import ir
from fly_dialect.builders import ops
from fly_dialect.dialect import pointer_of, spec_of
from fly_dialect.dialect import type_of as mlir_type
from fly_dialect.inference.computation import View
from fly_dialect.layouts.int_tuple import Tree, int_tuple, leaves, static_value, type_of
from fly_dialect.layouts.integers import Int
from fly_dialect.layouts.layout import Layout
from fly_dialect.types import MemRefSpec

from fly_opt.passes.layout.lowering import Lower, Lowering


@record
class Runs:
    """The accesses of a view: `width` elements at each of `offsets`. Modes with `before`
    coordinates in total precede the runs' own mode: `before` runs are interleaved in the vector."""

    width: int
    before: int
    offsets: list[Any]

    @property
    def interleaved(self) -> bool:
        return self.width > 1 and self.before > 1


def runs(layout: Layout) -> Runs:
    """Returns the runs of a layout of static shape. ValueError for any other."""
    modes: list[tuple[int, Any]] = []
    for leaf, stride in zip(leaves(layout.shape), leaves(layout.stride), strict=True):
        extent = static_value(leaf)
        if extent is None:
            raise ValueError(
                f"a vector's length must be known at compile time, but that of {layout} is not"
            )
        if extent != 1:
            modes.append((extent, stride))
    own = next((i for i, (_, stride) in enumerate(modes) if static_value(stride) == 1), None)
    rest = modes if own is None else modes[:own] + modes[own + 1 :]
    offsets = [_offset(place, rest) for place in _coordinates(rest)]
    if own is None:
        return Runs(1, 1, offsets)
    return Runs(modes[own][0], prod(extent for extent, _ in modes[:own]), offsets)


def _coordinates(modes: list[tuple[int, Any]]) -> list[tuple[int, ...]]:
    """Returns all coordinates, the first mode varying fastest."""
    backwards = product(*(range(extent) for extent, _ in reversed(modes)))
    return [tuple(reversed(place)) for place in backwards]


def _offset(place: tuple[int, ...], modes: list[tuple[int, Any]]) -> Any:
    if not modes:
        return Int(0)
    extents, strides = zip(*modes, strict=True)
    return algebra.crd2idx(int_tuple(place), Layout(extents, strides))


def _plain(view: View) -> Layout:
    if not isinstance(view.layout, Layout):
        raise ValueError(f"{view.layout} is composed: load its elements, or decompose the view")
    return view.layout


# -- loads ----------------------------------------------------------------------------------------
def _load_vec(low: Lowering, op: ir.Operation) -> bool:
    view, result = low.view(op.operands[0]), op.results[0]
    if isinstance(spec_of(op.operands[0].type), MemRefSpec):
        value = _load(low, view, ir.VectorType(result.type))
    else:
        value = _coordinates_vector(low, view, ir.VectorType(result.type))
    result.replace_all_uses_with(value)
    return True


def _load(low: Lowering, view: View, type_: ir.VectorType) -> ir.Value:
    found, builder = runs(_plain(view)), low.builder
    element = pointer_of(view.base).element
    part = f"vector<{found.width}x{element}>" if found.width > 1 else element
    if type_.shape[0] == found.width > 1:
        return ops.ptr_load(view.base, part, loc=builder.loc, ip=builder.ip)
    value = builder.constant_of(ir.DenseElementsAttr.get_splat(type_, _zero(type_.element_type)))
    for index, offset in enumerate(found.offsets):
        pointer = low.add_offset(view.base, offset)
        loaded = ops.ptr_load(pointer, part, loc=builder.loc, ip=builder.ip)
        if found.width == 1:
            value = builder.value("vector.insert", type_, [loaded, value], _position(index))
        else:
            attributes = _strided(index * found.width)
            operands = [loaded, value]
            value = builder.value("vector.insert_strided_slice", type_, operands, attributes)
    if not found.interleaved:
        return value
    after = len(found.offsets) // found.before
    return _transposed(low, value, (after, found.before, found.width))


def _coordinates_vector(low: Lowering, view: View, type_: ir.VectorType) -> ir.Value:
    """Loads a view of coordinates: no memory is read, each element is computed."""
    layout, builder = _plain(view), low.builder
    element = ir.IntegerType(type_.element_type)

    def number(index: int, base: Tree, layout: Layout) -> Any:
        return algebra.scalar(algebra.add(base, algebra.crd2idx(Int(index), layout)))

    known = [
        number(index, type_of(view.base), layout.type).value for index in range(type_.shape[0])
    ]
    numbers = [ir.IntegerAttr.get(element, value or 0) for value in known]
    result = builder.constant_of(ir.DenseElementsAttr.get(numbers, type_))
    # Constants are built before computed values; unused ones are swept.
    for index in range(len(known)):
        builder.constant(index, element.width)
    for index, value in enumerate(known):
        if value is None:
            operands = [number(index, view.base, layout).read(element.width), result]
            result = builder.value("vector.insert", type_, operands, _position(index))
    return result


# -- stores ---------------------------------------------------------------------------------------
def _store_vec(low: Lowering, op: ir.Operation) -> bool:
    value, view = op.operands[0], low.view(op.operands[1])
    found, builder = runs(_plain(view)), low.builder
    type_ = ir.VectorType(value.type)
    if found.interleaved:
        after = len(found.offsets) // found.before
        value = _transposed(low, value, (after, found.width, found.before))
    if type_.shape[0] == found.width > 1:
        ops.ptr_store(value, view.base, loc=builder.loc, ip=builder.ip)
        return True
    for index, offset in enumerate(found.offsets):
        pointer = low.add_offset(view.base, offset)
        if found.width == 1:
            element = type_.element_type
            part = builder.value("vector.extract", element, [value], _position(index))
        else:
            run = mlir_type(f"vector<{found.width}x{type_.element_type}>")
            attributes = _strided(index * found.width, found.width)
            part = builder.value("vector.extract_strided_slice", run, [value], attributes)
        ops.ptr_store(part, pointer, loc=builder.loc, ip=builder.ip)
    return True


# -- vectors --------------------------------------------------------------------------------------
def _transposed(low: Lowering, value: ir.Value, shape: tuple[int, int, int]) -> ir.Value:
    """Views the vector as three-dimensional and swaps the last two dimensions."""
    type_ = ir.VectorType(value.type)
    element = type_.element_type
    first, second, third = shape
    wide = mlir_type(f"vector<{first}x{second}x{third}x{element}>")
    turned = mlir_type(f"vector<{first}x{third}x{second}x{element}>")
    order = {"permutation": ir.DenseI64ArrayAttr.get([0, 2, 1])}
    value = low.builder.value("vector.shape_cast", wide, [value])
    value = low.builder.value("vector.transpose", turned, [value], order)
    return low.builder.value("vector.shape_cast", type_, [value])


def _position(index: int) -> dict[str, ir.Attribute]:
    """Returns the position attribute of vector.insert and vector.extract."""
    return {"static_position": ir.DenseI64ArrayAttr.get([index])}


def _strided(start: int, size: int | None = None) -> dict[str, ir.Attribute]:
    """Returns the attributes of insert_strided_slice and, with `size`, of extract_strided_slice."""
    numbers = {"offsets": start, "strides": 1} | ({} if size is None else {"sizes": size})
    i64 = ir.IntegerType.get_signless(64)
    return {
        name: ir.ArrayAttr.get([ir.IntegerAttr.get(i64, number)])
        for name, number in numbers.items()
    }


def _zero(type_: ir.Type) -> ir.Attribute:
    if isinstance(type_, (ir.IntegerType, ir.IndexType)):
        return ir.IntegerAttr.get(type_, 0)
    return ir.FloatAttr.get(type_, 0.0)


TABLE: dict[str, Lower] = {"memref.load_vec": _load_vec, "memref.store_vec": _store_vec}
