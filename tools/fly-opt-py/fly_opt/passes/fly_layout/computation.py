"""Ops that only compute: each is a function of `fly_dialect.algebra` on what its operands stand
for, called with the op's attributes by name.

An op of layouts that is given a view computes a view: of the same pointer or coordinate, with the
new layout. `slice` moves the view's base where its layout can't keep the slice's beginning.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fly_dialect import algebra
from fly_dialect.bindings import ir
from fly_dialect.layout import AnyLayout, ComposedLayout, Layout

from fly_opt.passes.fly_layout.meanings import Meaning, View

Compute = Callable[..., Meaning]


def _of_layout(function: Compute) -> Compute:
    """A function of a layout, for views too: what it computes does not tell of the base."""

    def compute(source: Meaning, *rest: Meaning, **attributes: Any) -> Meaning:
        layout = source.layout if isinstance(source, View) else source
        return function(layout, *rest, **attributes)

    return compute


def _as_view(function: Compute) -> Compute:
    """A function from layout to layout, from view to view too: the base stays."""

    def compute(source: Meaning, *rest: Meaning, **attributes: Any) -> Meaning:
        if isinstance(source, View):
            return View(source.base, function(source.layout, *rest, **attributes))
        return function(source, *rest, **attributes)

    return compute


def _stride(layout: AnyLayout) -> Meaning:
    return layout.linear.stride


def _get(source: Meaning, mode: list[int]) -> Meaning:
    """A part of a tree, layout or view; of a view of coordinates, of its base as well."""
    path = tuple(mode)
    if not isinstance(source, View):
        return algebra.at(source, path)
    base = source.base if isinstance(source.base, ir.Value) else algebra.at(source.base, path)
    return View(base, algebra.at(source.layout, path))


COMPUTE: dict[str, Compute] = {
    "make_layout": Layout,
    "make_composed_layout": ComposedLayout,
    "get_layout": lambda view: view.layout,
    "get_shape": _of_layout(lambda layout: layout.shape),
    "get_stride": _of_layout(_stride),
    "composed_get_inner": lambda layout: layout.inner,
    "composed_get_offset": lambda layout: layout.offset,
    "composed_get_outer": lambda layout: layout.outer,
    **{
        name: partial(algebra.elementwise, name)
        for name in (
            "int_tuple_add",
            "int_tuple_sub",
            "int_tuple_mul",
            "int_tuple_div",
            "int_tuple_mod",
        )
    },
    "int_tuple_product": algebra.product,
    "int_tuple_product_each": algebra.product_each,
    "int_tuple_product_like": algebra.product_like,
    "shape_div": algebra.shape_div,
    "ceil_div": algebra.ceil_div,
    "get": _get,
    "take": _as_view(algebra.take),
    "select": _as_view(algebra.select),
    "group": _as_view(algebra.group),
    "append": algebra.append,
    "prepend": algebra.prepend,
    "dice": algebra.dice,
    "size": _of_layout(algebra.size),
    "coprofile": _of_layout(algebra.coprofile),
    "coshape": _of_layout(algebra.coshape),
    "cosize": _of_layout(algebra.cosize),
    "crd2idx": algebra.crd2idx,
    "idx2crd": algebra.idx2crd,
    "get_flat_coord": algebra.get_flat_coord,
    "get_1d_coord": algebra.get_1d_coord,
}
