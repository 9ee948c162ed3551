"""The base class of tensors and coordinate tensors: an iterator and a layout."""

from __future__ import annotations

from typing import Any, NoReturn

from fly_dialect.layouts.layout import ComposedLayout as ComposedLayoutData
from fly_dialect.types import IntTupleSpec

from fly_trace.core import tracing
from fly_trace.core.dialect_value import apply, says_all
from fly_trace.layouts.int_tuples import IntTuple, int_tuple
from fly_trace.layouts.layouts import Moded, get_layout, get_shape, get_stride


class View(Moded):
    """`view[i, j]` is an element. None leaves a mode free, which gives a view of that part."""

    __slots__ = ()
    noun = "a tensor"

    @property
    def layout(self) -> Any:
        """The layout, in elements."""
        return get_layout(self)

    @property
    def shape(self) -> Any:
        """The extents: Python ints if they are static, otherwise scalars."""
        return get_shape(self)

    @property
    def stride(self) -> Any:
        """The strides in elements: Python ints if they are static, otherwise scalars."""
        return get_stride(self)

    def part(self, index: Any) -> Any:
        """The view of the modes that `index` leaves free."""
        return apply("slice", self, int_tuple(index, "a coordinate"))

    def __iter__(self) -> NoReturn:
        tracing.refuse(f"{self.noun} can't be iterated or unpacked", "loop over its shape")


def linear(spec: Any) -> Any:
    """The layout of a view that is applied to its coordinate."""
    layout = spec.layout
    return layout.linear if isinstance(layout, ComposedLayoutData) else layout


def static_shape(view: View, what: str) -> Any:
    """The shape as Python ints. Refuses a dynamic shape."""
    shape = linear(view.spec).shape
    spec = IntTupleSpec(shape)
    if not says_all(spec):
        tracing.refuse(f"{what} needs a shape that is known while tracing, not {spec.value}")
    unpacked = IntTuple(spec).unpack()
    return unpacked if isinstance(unpacked, tuple) else (unpacked,)
