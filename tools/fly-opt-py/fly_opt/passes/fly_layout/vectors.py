"""`memref.load_vec` and `memref.store_vec`: a whole view as one vector.

Element i of the vector is the element of the view at coordinate i, the first mode fastest. What
lies together in memory goes in one access: the first mode of stride 1, and the modes after it that
continue it. For each coordinate of the other modes there is one such run.

    (4,2):(1,8)      runs of 4 at 0 and 8
    (4,2):(1,4)      one run of 8
    (2,4):(4,1)      runs of 4 at 0 and 4, their elements interleaved in the vector
    (4,2):(2,8)      8 elements, one by one
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from fly_dialect import algebra, ops
from fly_dialect.bindings import ir
from fly_dialect.computation import View
from fly_dialect.dialect import pointer_of, spec_of, type_of
from fly_dialect.int_tuple import int_tuple, leaves, static_value
from fly_dialect.integers import Int
from fly_dialect.layout import Layout
from fly_dialect.types import MemRefSpec

from fly_opt.passes.fly_layout.lowering import Lower, Lowering
from fly_opt.passes.fly_scalars import Scalar

Value = Any  # an ir.Value


@dataclass(frozen=True, slots=True)
class Runs:
    """What is accessed: `width` elements from each of `offsets` on. `order[i]` is the place, among
    the elements of all runs one after another, of the vector's element i."""

    width: int
    offsets: list[Any]
    order: list[int]

    @property
    def in_order(self) -> bool:
        return self.order == list(range(len(self.order)))


def runs(layout: Layout) -> Runs:
    """The runs of a layout of static shape. ValueError for any other."""
    modes: list[tuple[int, Any]] = []
    for leaf, stride in zip(leaves(layout.shape), leaves(layout.stride), strict=True):
        extent = static_value(leaf)
        if extent is None:
            raise ValueError(f"a vector's length is known when compiling, that of {layout} is not")
        if extent != 1:
            modes.append((extent, stride))
    first, last, width = _longest(modes)
    before = prod(extent for extent, _ in modes[:first])
    rest = modes[:first] + modes[last:]
    offsets = [_offset(place, rest) for place in _coordinates(rest)]
    order = []
    for index in range(before * width * (len(offsets) // before)):
        low, high = index % before, index // before
        within, after = high % width, high // width
        order.append((low + before * after) * width + within)
    return Runs(width, offsets, order)


def _longest(modes: list[tuple[int, Any]]) -> tuple[int, int, int]:
    """The modes [first, last) that are one run, and its length; none and 1 if no stride is 1."""
    first = next((i for i, (_, stride) in enumerate(modes) if static_value(stride) == 1), None)
    if first is None:
        return 0, 0, 1
    last, width = first, 1
    while last < len(modes) and static_value(modes[last][1]) == width:
        width *= modes[last][0]
        last += 1
    return first, last, width


def _coordinates(modes: list[tuple[int, Any]]) -> list[tuple[int, ...]]:
    """All coordinates, the first mode fastest."""
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
def _load_vec(low: Lowering, op: Any) -> bool:
    view, result = low.view(op.operands[0]), op.results[0]
    if isinstance(spec_of(op.operands[0].type), MemRefSpec):
        value = _load(low, view, result.type)
    else:
        value = _coordinates_vector(low, view, result.type)
    result.replace_all_uses_with(value)
    return True


def _load(low: Lowering, view: View, type_: Any) -> Value:
    found = runs(_plain(view))
    builder, element = low.builder, pointer_of(view.base).element
    part = f"vector<{found.width}x{element}>" if found.width > 1 else element
    loaded = [
        ops.ptr_load(low.add_offset(view.base, offset), part, loc=builder.loc, ip=builder.ip)
        for offset in found.offsets
    ]
    if found.width == 1:
        return builder.value("vector.from_elements", type_, loaded)
    if len(loaded) == 1:
        return loaded[0]
    value = builder.constant_of(ir.DenseElementsAttr.get_splat(type_, _zero(type_.element_type)))
    for index, run in enumerate(loaded):
        attributes = _strided(index * found.width)
        value = builder.value("vector.insert_strided_slice", type_, [run, value], attributes)
    return value if found.in_order else _shuffled(low, value, found.order)


def _coordinates_vector(low: Lowering, view: View, type_: Any) -> Value:
    """A view of coordinates: nothing is loaded, each element is computed."""
    layout = _plain(view)
    count, width = type_.shape[0], type_.element_type.width
    numbers = [
        algebra.scalar(algebra.add(view.base, algebra.crd2idx(Int(index), layout)))
        for index in range(count)
    ]
    if all(number.type.is_static for number in numbers):
        elements = [ir.IntegerAttr.get(type_.element_type, n.type.value) for n in numbers]
        return low.builder.constant_of(ir.DenseElementsAttr.get(elements, type_))
    values = [
        number.read(width)
        if isinstance(number, Scalar)
        else low.builder.constant(number.value, width)
        for number in numbers
    ]
    return low.builder.value("vector.from_elements", type_, values)


# -- stores ---------------------------------------------------------------------------------------
def _store_vec(low: Lowering, op: Any) -> bool:
    value, view = op.operands[0], low.view(op.operands[1])
    found, builder = runs(_plain(view)), low.builder
    type_ = value.type
    if found.width > 1 and not found.in_order:
        inverse = sorted(range(len(found.order)), key=found.order.__getitem__)
        value = _shuffled(low, value, inverse)
    for index, offset in enumerate(found.offsets):
        part = value
        if found.width == 1:
            position = ir.DenseI64ArrayAttr.get([index])
            part = builder.value(
                "vector.extract", type_.element_type, [value], {"static_position": position}
            )
        elif len(found.offsets) > 1:
            run = type_of(f"vector<{found.width}x{type_.element_type}>")
            attributes = _strided(index * found.width, found.width)
            part = builder.value("vector.extract_strided_slice", run, [value], attributes)
        pointer = low.add_offset(view.base, offset)
        ops.ptr_store(part, pointer, loc=builder.loc, ip=builder.ip)
    return True


# -- vectors --------------------------------------------------------------------------------------
def _shuffled(low: Lowering, value: Value, order: list[int]) -> Value:
    """The vector whose element i is the element order[i] of `value`."""
    mask = {"mask": ir.DenseI64ArrayAttr.get(order)}
    return low.builder.value("vector.shuffle", value.type, [value, value], mask)


def _strided(start: int, size: int | None = None) -> dict[str, Any]:
    """The attributes of insert_strided_slice and, with `size`, of extract_strided_slice."""
    numbers = {"offsets": start, "strides": 1} | ({} if size is None else {"sizes": size})
    i64 = ir.IntegerType.get_signless(64)
    return {
        name: ir.ArrayAttr.get([ir.IntegerAttr.get(i64, number)])
        for name, number in numbers.items()
    }


def _zero(type_: Any) -> Any:
    if isinstance(type_, (ir.IntegerType, ir.IndexType)):
        return ir.IntegerAttr.get(type_, 0)
    return ir.FloatAttr.get(type_, 0.0)


TABLE: dict[str, Lower] = {"memref.load_vec": _load_vec, "memref.store_vec": _store_vec}
