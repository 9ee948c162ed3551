"""Type inference for construction and extraction, and helpers for the other rules.

Types are specs (`fly_dialect.types`), so this package does not import MLIR. An `infer_…` function
takes the operand specs and the attributes and returns the result specs, or raises a ValueError that
says what is wrong. If the result type is not determined by the operands, a `check_…` function
validates it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fly_dialect import algebra
from fly_dialect.layouts.int_tuple import dynamic_leaves, is_static
from fly_dialect.layouts.layout import AnyLayout, Layout
from fly_dialect.types import (
    ComposedLayoutSpec,
    CoordSwizzleSpec,
    CoordTensorSpec,
    IntTupleSpec,
    LayoutSpec,
    MemRefSpec,
    OtherSpec,
    PtrSpec,
    Spec,
    SwizzleSpec,
    TileSpec,
)

Attributes = Mapping[str, Any]  # array<i32: …> is a list of int, an integer is an int
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


def layout_of(spec: Spec) -> AnyLayout | None:
    """The layout of a layout, composed_layout, memref or coord_tensor type."""
    if isinstance(spec, (LayoutSpec, ComposedLayoutSpec, MemRefSpec, CoordTensorSpec)):
        return spec.layout
    return None


def any_layout_operand(operands: list[Spec], index: int) -> AnyLayout:
    """The layout of an operand with a layout, composed or not."""
    layout = layout_of(operands[index])
    if layout is None:
        raise wrong(index, "a layout, memref or coord_tensor", operands[index])
    return layout


def layout_operand(operands: list[Spec], index: int) -> Layout:
    """The layout of an operand, which must not be composed."""
    layout = any_layout_operand(operands, index)
    if not isinstance(layout, Layout):
        raise wrong(index, "without a composed layout", operands[index])
    return layout


# -- construction ---------------------------------------------------------------------------------
def check_make_int_tuple(operands: list[Spec], results: list[Spec], _: Attributes) -> None:
    if not isinstance(results[0], IntTupleSpec):
        raise ValueError(f"the result must be an int_tuple, but is {results[0]}")
    needed = [f"i{leaf.width}" for leaf in dynamic_leaves(results[0].value)]
    given = [str(operand) for operand in operands]
    # An integer of the other width is truncated or sign-extended to the type's width.
    if len(needed) != len(given) or any(integer not in ("i32", "i64") for integer in given):
        raise ValueError(
            f"{results[0]} has the dynamic leaves ({', '.join(needed)}), "
            f"but the operands are ({', '.join(given)})"
        )


def check_static(_: list[Spec], results: list[Spec], __: Attributes) -> None:
    spec = results[0]
    value = spec.value if isinstance(spec, IntTupleSpec) else None
    layout = spec.layout if isinstance(spec, (LayoutSpec, ComposedLayoutSpec)) else None
    static = (
        (value is not None and is_static(value))
        or (layout is not None and layout.is_static)
        or isinstance(spec, (SwizzleSpec, CoordSwizzleSpec, TileSpec))
        or (isinstance(spec, CoordTensorSpec) and is_static(spec.base) and spec.layout.is_static)
        # An atom, or a tiled op, whose instruction has no state.
        or getattr(spec, "is_static", False)
        or isinstance(spec, OtherSpec)
    )
    if isinstance(spec, (PtrSpec, MemRefSpec, str)) or not static:
        raise ValueError(f"{spec} is not fully determined by its type")


def infer_make_view(operands: list[Spec], _: Attributes) -> list[Spec]:
    iterator, layout = operands
    if not isinstance(layout, (LayoutSpec, ComposedLayoutSpec)):
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


def infer_get_scalar(operands: list[Spec], _: Attributes) -> list[Spec]:
    return [f"i{algebra.scalar(int_tuple_operand(operands, 0)).width}"]


def infer_get_leaves(operands: list[Spec], attributes: Attributes) -> list[Spec]:
    found = algebra.integers(int_tuple_operand(operands, 0))
    if attributes.get("dynamicOnly"):
        found = [leaf for leaf in found if leaf.value is None]
    return [f"i{leaf.width}" for leaf in found]
