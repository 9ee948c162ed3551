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


def _at(nested: Meaning, mode: list[int]) -> Meaning:
    return algebra.at(nested, tuple(mode))


COMPUTE: dict[str, Compute] = {
    "make_layout": Layout,
    "make_layout_like": algebra.make_layout_like,
    "make_ordered_layout": algebra.make_ordered_layout,
    "make_identity_layout": algebra.make_identity_layout,
    "make_fragment_layout_like": _of_layout(algebra.make_fragment_layout_like),
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
    "get": _as_view(_at),
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
    "coalesce": _as_view(algebra.coalesce),
    "composition": _as_view(algebra.composition),
    "complement": algebra.complement,
    "right_inverse": algebra.right_inverse,
    "left_inverse": algebra.left_inverse,
    "logical_divide": _as_view(algebra.logical_divide),
    "zipped_divide": _as_view(algebra.zipped_divide),
    "tiled_divide": _as_view(algebra.tiled_divide),
    "flat_divide": _as_view(algebra.flat_divide),
    "logical_product": algebra.logical_product,
    "zipped_product": algebra.zipped_product,
    "tiled_product": algebra.tiled_product,
    "flat_product": algebra.flat_product,
    "blocked_product": algebra.blocked_product,
    "raked_product": algebra.raked_product,
    "recast_layout": lambda layout, new_type_bits, old_type_bits: algebra.recast_layout(
        layout, old_type_bits, new_type_bits
    ),
    "tile_to_shape": algebra.tile_to_shape,
}
