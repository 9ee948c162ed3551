"""Coordinate tensors: views without memory, whose elements are their coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fly_dialect.layouts.int_tuple import text
from fly_dialect.types import CoordTensorSpec, IntTupleSpec, LayoutSpec

from fly_trace.core import tracing
from fly_trace.core.dialect_value import apply, says_all, values_of
from fly_trace.layouts.int_tuples import IntTuple, has_none, int_tuple
from fly_trace.layouts.layouts import get_layout
from fly_trace.layouts.views import View, linear, static_shape
from fly_trace.values.dtypes import I32, I64
from fly_trace.values.vector.vectors import Vector

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

    from fly_trace.session.builder import Builder

__all__ = ["CoordTensor"]


def _is_static(spec: CoordTensorSpec) -> bool:
    return says_all(IntTupleSpec(spec.base)) and says_all(LayoutSpec(linear(spec)))


@values_of(CoordTensorSpec, _is_static)
class CoordTensor(View):
    """A coordinate tensor. An element is an int tuple: `base` plus the layout's offset."""

    __slots__ = ()
    noun = "a coordinate tensor"
    is_view = True  # `fx.Tensor(view)` takes it

    def made(self, builder: Builder) -> ir.Value:
        from fly_dialect.builders import ops

        base = IntTuple(IntTupleSpec(self.spec.base)).value(builder)
        return builder.fly(ops.make_view, base, get_layout(self).value(builder))

    def __getitem__(self, index: Any) -> Any:
        """A coordinate, or a coordinate tensor if the index contains None."""
        if has_none(index):
            return self.part(index)
        return apply("memref.load", self, int_tuple(index, "a coordinate"))

    def load(self) -> Vector:
        """The coordinates as a vector. Each must be a single integer."""
        shape = static_shape(self, "load")
        builder = tracing.kernel("load")
        value = builder.fly_op("memref.load_vec", [self.value(builder)], {})
        dtype = I64 if "i64" in str(value.type) else I32
        return Vector(value, shape, dtype, are_coordinates=True)


def along(view: CoordTensor, path: tuple[int, ...]) -> CoordTensor:
    """The coordinates along one mode, with the others 0. `fly.get` would also take that mode of the
    base, which is only correct for a base of zeros."""
    whole = linear(view.spec).shape

    def coordinate(shape: Any, path: tuple[int, ...]) -> Any:
        """A coordinate that is free at `path` and 0 elsewhere."""
        if not path:
            return None
        if not isinstance(shape, tuple) or not 0 <= path[0] < len(shape):
            tracing.refuse(f"a coordinate tensor of shape {text(whole)} has no such mode")
        return tuple(
            coordinate(extent, path[1:]) if number == path[0] else 0
            for number, extent in enumerate(shape)
        )

    return apply("slice", view, int_tuple(coordinate(whole, path)))
