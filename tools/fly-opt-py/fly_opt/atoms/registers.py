"""Loads and stores of register memrefs as single values.

Contiguous registers are one vector, or a scalar if there is one element; others are gathered from
and scattered to their contiguous runs, in the order of the layout's index.
"""

from __future__ import annotations

from fly_dialect.bindings import ir
from fly_dialect.layouts.int_tuple import IntTuple
from fly_dialect.layouts.integers import Int
from fly_dialect.layouts.layout import AnyLayout, Layout
from fly_dialect.types import MemRefSpec, element_bytes

from fly_opt.ir import pointers, vectors
from fly_opt.ir.builder import Builder
from fly_opt.ir.storage import storage_type


def value_type(spec: MemRefSpec) -> ir.Type:
    """Returns the type of all of a memref's elements as one value. ValueError if their number is
    dynamic."""
    count, element = len(_offsets(spec.layout)), storage_type(spec.element)
    return element if count == 1 else ir.VectorType.get([count], element)


def load(
    builder: Builder, spec: MemRefSpec, pointer: ir.Value, type_: ir.Type | None = None
) -> ir.Value:
    """Loads the elements of a memref, as `type_` of the same number of bits if given."""
    whole = value_type(spec)
    wanted = type_ or whole
    # Registers have a byte for each element, even for packed ones that need less; FlyDSL's programs
    # let an instruction take all of them.
    held = len(_offsets(spec.layout)) * element_bytes(spec.element) * 8
    if pointers.width(wanted) not in (pointers.width(whole), held):
        raise ValueError(f"the instruction takes {wanted}, but {spec} is {whole}")
    runs = _runs(spec.layout)
    if len(runs) == 1:
        return pointers.load(builder, wanted, _at(builder, spec, pointer, *runs[0]))
    value, done = vectors.poison(builder, whole), 0
    for offset, count in runs:
        run = ir.VectorType.get([count], ir.VectorType(whole).element_type)
        part = pointers.load(builder, run, _at(builder, spec, pointer, offset, count))
        value = vectors.insert(builder, part, value, done)
        done += count
    return pointers.bitcast(builder, value, wanted)


def store(builder: Builder, value: ir.Value, spec: MemRefSpec, pointer: ir.Value) -> None:
    """Stores a value of the same number of bits to the elements of a memref."""
    whole = value_type(spec)
    if pointers.width(value.type) != pointers.width(whole):
        raise ValueError(f"the instruction returns {value.type}, but {spec} takes {whole}")
    runs = _runs(spec.layout)
    if len(runs) == 1:
        pointers.store(builder, value, _at(builder, spec, pointer, *runs[0]))
        return
    value, done = pointers.bitcast(builder, value, whole), 0
    for offset, count in runs:
        part = vectors.extract(builder, value, done, count)
        pointers.store(builder, part, _at(builder, spec, pointer, offset, count))
        done += count


def _at(builder: Builder, spec: MemRefSpec, pointer: ir.Value, offset: int, count: int) -> ir.Value:
    """Returns the address of the `count` elements that start at `offset`."""
    if offset:
        pointers.check_whole(spec.element, Int(offset))
        index = builder.constant(offset, 32)
        pointer = pointers.element_pointer(builder, pointer, index, spec)
    size = count * pointers.width(storage_type(spec.element))
    return pointers.swizzled(builder, pointer, spec, size)


def _offsets(layout: AnyLayout) -> list[int]:
    """Returns the offset of each index, in elements."""
    if not isinstance(layout, Layout) or not layout.is_static:
        raise ValueError(f"registers need a static layout, but it is {layout}")
    offsets = [0]
    _extend(offsets, layout.shape, layout.stride)
    return offsets


def _extend(offsets: list[int], shape: IntTuple, stride: IntTuple) -> None:
    """Appends a mode to the offsets; it varies slower than those before it."""
    if isinstance(shape, tuple) and isinstance(stride, tuple):
        for inner_shape, inner_stride in zip(shape, stride, strict=True):
            _extend(offsets, inner_shape, inner_stride)
        return
    if not isinstance(shape, Int) or not isinstance(stride, Int):
        raise ValueError(f"registers need a layout of integers, not {shape}:{stride}")
    first = list(offsets)
    for step in range(1, shape.value or 1):
        offsets.extend(offset + step * (stride.value or 0) for offset in first)


def _runs(layout: AnyLayout) -> list[tuple[int, int]]:
    """Returns (offset, length) of each contiguous run, in the order of the index."""
    runs: list[tuple[int, int]] = []
    for offset in _offsets(layout):
        if runs and runs[-1][0] + runs[-1][1] == offset:
            runs[-1] = runs[-1][0], runs[-1][1] + 1
        else:
            runs.append((offset, 1))
    return runs
