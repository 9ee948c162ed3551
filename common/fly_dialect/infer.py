"""How result types follow from operand types: tuples and layouts.

Types are specs (`fly_dialect.types`), so nothing here imports MLIR. An `infer_…` function takes the
operand specs and the attributes and gives the result specs, or raises a ValueError that says what
is wrong; where the result type is free, a `check_…` function judges it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fly_dialect import algebra
from fly_dialect.layout import Layout, dynamic_leaves, is_static
from fly_dialect.types import (
    CoordTensorSpec,
    IntTupleSpec,
    LayoutSpec,
    MemRefSpec,
    OtherSpec,
    PtrSpec,
    Spec,
)

Attributes = Mapping[str, Any]  # array<i32: …> as a list of int, integers as int
Infer = Callable[[list[Spec], Attributes], list[Spec]]
Check = Callable[[list[Spec], list[Spec], Attributes], None]


def wrong(index: int, expected: str, found: Spec) -> ValueError:
    return ValueError(f"operand #{index} must be {expected}, but is {found}")


def int_tuple_operand(operands: list[Spec], index: int):
    spec = operands[index]
    if not isinstance(spec, IntTupleSpec):
        raise wrong(index, "an int_tuple", spec)
    return spec.value


def ptr_operand(operands: list[Spec], index: int) -> PtrSpec:
    spec = operands[index]
    if not isinstance(spec, PtrSpec):
        raise wrong(index, "a ptr", spec)
    return spec


def memref_operand(operands: list[Spec], index: int) -> MemRefSpec:
    spec = operands[index]
    if not isinstance(spec, MemRefSpec):
        raise wrong(index, "a memref", spec)
    return spec


def layout_of(spec: Spec) -> Layout | None:
    """The layout of a layout, memref or coord_tensor type."""
    if isinstance(spec, (LayoutSpec, MemRefSpec, CoordTensorSpec)):
        return spec.layout
    return None


def layout_operand(operands: list[Spec], index: int) -> Layout:
    layout = layout_of(operands[index])
    if layout is None:
        raise wrong(index, "a layout, memref or coord_tensor", operands[index])
    return layout


# -- construction ---------------------------------------------------------------------------------
def check_make_int_tuple(operands: list[Spec], results: list[Spec], _: Attributes) -> None:
    if not isinstance(results[0], IntTupleSpec):
        raise ValueError(f"the result must be an int_tuple, but is {results[0]}")
    needed = [f"i{leaf.width}" for leaf in dynamic_leaves(results[0].value)]
    given = [str(operand) for operand in operands]
    # An integer of the other width is cut or sign-extended: the type's width is what counts.
    if len(needed) != len(given) or any(integer not in ("i32", "i64") for integer in given):
        raise ValueError(
            f"{results[0]} has the dynamic leaves ({', '.join(needed)}), "
            f"but the operands are ({', '.join(given)})"
        )


def check_static(_: list[Spec], results: list[Spec], __: Attributes) -> None:
    spec = results[0]
    value = spec.value if isinstance(spec, IntTupleSpec) else None
    layout = spec.layout if isinstance(spec, LayoutSpec) else None
    static = (
        (value is not None and is_static(value))
        or (layout is not None and layout.is_static)
        or (isinstance(spec, CoordTensorSpec) and is_static(spec.base) and spec.layout.is_static)
        or isinstance(spec, OtherSpec)
    )
    if isinstance(spec, (PtrSpec, MemRefSpec, str)) or not static:
        raise ValueError(f"{spec} is not wholly known from its type")


def infer_make_layout(operands: list[Spec], _: Attributes) -> list[Spec]:
    return [LayoutSpec(Layout(int_tuple_operand(operands, 0), int_tuple_operand(operands, 1)))]


def infer_make_view(operands: list[Spec], _: Attributes) -> list[Spec]:
    iterator, layout = operands
    if not isinstance(layout, LayoutSpec):
        raise wrong(1, "a layout", layout)
    if isinstance(iterator, PtrSpec):
        return [
            MemRefSpec(
                iterator.element, iterator.space, layout.layout, iterator.align, iterator.swizzle
            )
        ]
    if isinstance(iterator, IntTupleSpec):
        return [CoordTensorSpec(iterator.value, layout.layout)]
    raise wrong(0, "a ptr or an int_tuple", iterator)


# -- extraction -----------------------------------------------------------------------------------
def infer_get_iter(operands: list[Spec], _: Attributes) -> list[Spec]:
    view = operands[0]
    if isinstance(view, MemRefSpec):
        return [view.pointer]
    if isinstance(view, CoordTensorSpec):
        return [IntTupleSpec(view.base)]
    raise wrong(0, "a memref or coord_tensor", view)


def infer_get_layout(operands: list[Spec], _: Attributes) -> list[Spec]:
    if not isinstance(operands[0], (MemRefSpec, CoordTensorSpec)):
        raise wrong(0, "a memref or coord_tensor", operands[0])
    return [LayoutSpec(operands[0].layout)]


def infer_get_shape(operands: list[Spec], _: Attributes) -> list[Spec]:
    return [IntTupleSpec(layout_operand(operands, 0).shape)]


def infer_get_stride(operands: list[Spec], _: Attributes) -> list[Spec]:
    return [IntTupleSpec(layout_operand(operands, 0).stride)]


def infer_get(operands: list[Spec], attributes: Attributes) -> list[Spec]:
    mode = tuple(attributes.get("mode", ()))
    spec = operands[0]
    if isinstance(spec, IntTupleSpec):
        return [IntTupleSpec(algebra.at(spec.value, mode))]
    layout = layout_operand(operands, 0)
    part = Layout(algebra.at(layout.shape, mode), algebra.at(layout.stride, mode))
    if isinstance(spec, MemRefSpec):
        return [MemRefSpec(spec.element, spec.space, part, spec.align, spec.swizzle)]
    if isinstance(spec, CoordTensorSpec):
        return [CoordTensorSpec(algebra.at(spec.base, mode), part)]
    return [LayoutSpec(part)]


def infer_select(operands: list[Spec], attributes: Attributes) -> list[Spec]:
    value = int_tuple_operand(operands, 0)
    parts = tuple(algebra.at(value, (index,)) for index in attributes.get("indices", ()))
    return [IntTupleSpec(parts[0] if len(parts) == 1 else parts)]


def infer_get_scalar(operands: list[Spec], _: Attributes) -> list[Spec]:
    return [f"i{algebra.scalar(int_tuple_operand(operands, 0)).width}"]


def infer_get_leaves(operands: list[Spec], attributes: Attributes) -> list[Spec]:
    found = algebra.integers(int_tuple_operand(operands, 0))
    if attributes.get("dynamicOnly"):
        found = [leaf for leaf in found if leaf.value is None]
    return [f"i{leaf.width}" for leaf in found]


# -- integer tuples and layouts -------------------------------------------------------------------
def elementwise(name: str) -> Callable[[Any, Any], Any]:
    """The arithmetic of an int_tuple op on two leaves."""
    return {
        "int_tuple_add": lambda lhs, rhs: lhs + rhs,
        "int_tuple_sub": lambda lhs, rhs: lhs - rhs,
        "int_tuple_mul": lambda lhs, rhs: lhs * rhs,
        "int_tuple_div": lambda lhs, rhs: lhs // rhs,
        "int_tuple_mod": lambda lhs, rhs: lhs % rhs,
        "ceil_div": lambda lhs, rhs: lhs.ceildiv(rhs),
    }[name]


def infer_elementwise(name: str) -> Infer:
    def infer(operands: list[Spec], _: Attributes) -> list[Spec]:
        lhs, rhs = int_tuple_operand(operands, 0), int_tuple_operand(operands, 1)
        for side in (lhs, rhs):
            algebra.integers(side)
        return [IntTupleSpec(algebra.transform(elementwise(name), lhs, rhs))]

    return infer


def infer_product(operands: list[Spec], _: Attributes) -> list[Spec]:
    return [IntTupleSpec(algebra.product(int_tuple_operand(operands, 0)))]


def infer_product_each(operands: list[Spec], _: Attributes) -> list[Spec]:
    return [IntTupleSpec(algebra.product_each(int_tuple_operand(operands, 0)))]


def infer_size(operands: list[Spec], _: Attributes) -> list[Spec]:
    spec = operands[0]
    shape = spec.value if isinstance(spec, IntTupleSpec) else layout_operand(operands, 0).shape
    return [IntTupleSpec(algebra.product(shape))]


def infer_cosize(operands: list[Spec], _: Attributes) -> list[Spec]:
    layout = layout_operand(operands, 0)
    return [IntTupleSpec(algebra.cosize(layout.shape, layout.stride))]


def infer_crd2idx(operands: list[Spec], _: Attributes) -> list[Spec]:
    if not isinstance(operands[1], LayoutSpec):
        raise wrong(1, "a layout", operands[1])
    layout = operands[1].layout
    return [
        IntTupleSpec(algebra.crd2idx(int_tuple_operand(operands, 0), layout.shape, layout.stride))
    ]


def from_index(name: str) -> Callable[[Any, Any, Any], Any]:
    """The algebra of an op that takes an index and a layout: (index, shape, stride) → tuple."""
    return {
        "idx2crd": algebra.idx2crd,
        "get_1d_coord": algebra.get_1d_coord,
        "get_flat_coord": algebra.get_flat_coord,
    }[name]


def infer_from_index(name: str) -> Infer:
    def infer(operands: list[Spec], _: Attributes) -> list[Spec]:
        if not isinstance(operands[1], LayoutSpec):
            raise wrong(1, "a layout", operands[1])
        index, layout = int_tuple_operand(operands, 0), operands[1].layout
        return [IntTupleSpec(from_index(name)(index, layout.shape, layout.stride))]

    return infer
