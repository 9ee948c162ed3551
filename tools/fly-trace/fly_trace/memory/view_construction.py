"""Construction of views: from pointers and layouts, in registers, like other views."""

from __future__ import annotations

from typing import Any

from fly_dialect.types import LayoutSpec, MemRefSpec

from fly_trace.core import tracing
from fly_trace.core.dialect_value import DialectValue, apply, inferred
from fly_trace.core.tracing import describe
from fly_trace.layouts import coord_tensors  # noqa: F401 (registers make_view's other result)
from fly_trace.layouts.int_tuples import IntTuple, int_tuple
from fly_trace.layouts.layouts import Layout, layout_of, make_ordered_layout
from fly_trace.layouts.views import View
from fly_trace.memory.pointers import Access, Pointer, dtype_of
from fly_trace.memory.tensors import Tensor
from fly_trace.values.dtypes import DType

__all__ = [
    "get_iter",
    "make_fragment_layout_like",
    "make_fragment_like",
    "make_rmem_tensor",
    "make_view",
    "memref_alloca",
    "memref_load",
    "memref_load_vec",
    "memref_store",
    "memref_store_vec",
]


def view_of(value: Any, what: str) -> View:
    if not isinstance(value, View):
        tracing.refuse(f"{what} takes a tensor, not {describe(value)}")
    return value


def tensor_of(value: Any, what: str) -> Tensor:
    if not isinstance(value, Tensor):
        tracing.refuse(f"{what} takes a tensor, not {describe(value)}")
    return value


def make_view(iter: Any, layout: Any) -> Any:
    """The tensor with `layout` at a pointer, or a coordinate tensor at a coordinate."""
    layout = layout_of(layout, "fx.make_view")
    if not isinstance(iter, Pointer):
        iter = int_tuple(iter, "fx.make_view")
    return apply("make_view", iter, layout)


def get_iter(memref: Any) -> Any:
    """The iterator of a tensor: a pointer, or the first coordinate of a coordinate tensor."""
    return apply("get_iter", view_of(memref, "fx.get_iter"))


def make_fragment_layout_like(tensor: Any) -> Any:
    """A compact register layout with the shape of `tensor`."""
    return apply("make_fragment_layout_like", layout_of(tensor, "fx.make_fragment_layout_like"))


def make_fragment_like(tensor: Any, dtype: DType | None = None) -> Tensor:
    """Allocates registers with a tensor's shape. `dtype` overrides its element type."""
    what = "fx.make_fragment_like"
    source = layout_of(tensor, what)
    chosen = dtype if dtype is not None else getattr(source, "dtype", None)
    if not isinstance(chosen, DType):
        tracing.refuse(f"{what} needs an element type here", f"as in {what}(t, fx.Float32)")
    builder = tracing.kernel(what)
    attributes = {"dtype": builder.type(chosen.ir)}
    spec = inferred("make_fragment_like", (source,), {"dtype": chosen.ir})
    ssa = builder.fly_op("make_fragment_like", [source.value(builder)], attributes, spec)
    return Tensor(spec, ssa, chosen, "the fragment")


def make_rmem_tensor(shape_or_layout: Any, dtype: DType) -> Tensor:
    """Allocates registers with a static layout, or with a shape (its first mode contiguous)."""
    if not isinstance(dtype, DType):
        tracing.refuse(f"fx.make_rmem_tensor takes an element type, not {describe(dtype)}")
    layout = shape_or_layout
    if not isinstance(layout, DialectValue) or isinstance(layout, IntTuple):
        layout = make_ordered_layout(layout, 0)
    if not isinstance(layout, Layout) or not layout.is_static:
        tracing.refuse("registers have a layout that is known while tracing")
    return memref_alloca(MemRefSpec(dtype.ir, "register", layout.spec.layout), layout, dtype)


def memref_alloca(memref_type: MemRefSpec, layout: Layout, dtype: DType | None = None) -> Tensor:
    """Allocates registers with a memref type, whose layout is also given as a value."""
    from fly_dialect.builders import ops

    builder = tracing.kernel("fx.memref_alloca")
    try:
        ssa = builder.fly(ops.memref_alloca, layout.value(builder), memref_type)
    except ValueError as error:
        tracing.refuse(str(error))
    chosen = dtype_of(memref_type.element, dtype)
    return Tensor(memref_type, ssa, chosen, "the register tensor", access=Access())


def memref_load(memref: Any, indices: Any) -> Any:
    """Loads an element: `memref[indices]`."""
    return view_of(memref, "fx.memref_load")[indices]  # type: ignore[index]


def memref_store(value: Any, memref: Any, indices: Any) -> None:
    """`memref[indices] = value`."""
    tensor_of(memref, "fx.memref_store")[indices] = value


def memref_load_vec(memref: Any) -> Any:
    """Loads all elements as a vector: `memref.load()`."""
    return view_of(memref, "fx.memref_load_vec").load()  # type: ignore[attr-defined]


def memref_store_vec(vector: Any, memref: Any) -> None:
    """`memref.store(vector)`."""
    tensor_of(memref, "fx.memref_store_vec").store(vector)


def static_layout(layout: Any) -> Layout:
    """Converts a layout of fly_dialect to a value of the language."""
    return Layout(LayoutSpec(layout))
