"""Type inference for vectors of views. See `fly_dialect.inference.rules`."""

from __future__ import annotations

import re

from fly_dialect import algebra
from fly_dialect.inference.rules import Attributes, layout_of, wrong
from fly_dialect.layouts.int_tuple import is_static, text
from fly_dialect.layouts.integers import Int
from fly_dialect.layouts.layout import Layout
from fly_dialect.types import CoordTensorSpec, MemRefSpec, Spec

_VECTOR = re.compile(r"vector<((?:\d+x)+)(.+)>")


def view_operand(operands: list[Spec], index: int) -> MemRefSpec | CoordTensorSpec:
    view = operands[index]
    if not isinstance(view, (MemRefSpec, CoordTensorSpec)):
        raise wrong(index, "a memref or coord_tensor", view)
    return view


def vector_of(spec: Spec) -> tuple[int, str] | None:
    """The number of elements of a vector type, and their type."""
    match = _VECTOR.fullmatch(spec) if isinstance(spec, str) else None
    if match is None:
        return None
    count = 1
    for extent in match[1].rstrip("x").split("x"):
        count *= int(extent)
    return count, match[2]


def _count(view: Spec) -> int:
    """The number of elements of a view, which must be static and not composed."""
    layout = layout_of(view)
    if not isinstance(layout, Layout):
        raise ValueError(f"can't make a vector of {view}: its layout is composed")
    if not is_static(layout.shape):
        raise ValueError(f"can't make a vector of {view}: its shape is {text(layout.shape)}")
    size = algebra.size(layout).value
    assert size is not None  # the shape is static
    return size


def infer_memref_load_vec(operands: list[Spec], _: Attributes) -> list[Spec]:
    view = view_operand(operands, 0)
    count = _count(view)
    if isinstance(view, MemRefSpec):
        return [f"vector<{count}x{view.element}>"]
    if not isinstance(view.base, Int):
        raise ValueError(
            f"a vector of coordinates must have integers, but the base is {text(view.base)}"
        )
    # An element is the base plus an offset, and has the width of their sum.
    element = algebra.add(view.base, algebra.crd2idx(Int(None), view.layout))
    return [f"vector<{count}xi{element.width}>"]


def check_memref_store_vec(operands: list[Spec], _: list[Spec], __: Attributes) -> None:
    value, view = operands
    if not isinstance(view, MemRefSpec):
        raise wrong(1, "a memref", view)
    if vector_of(value) != (_count(view), view.element):
        raise ValueError(f"{value} can't be stored to {view}")
