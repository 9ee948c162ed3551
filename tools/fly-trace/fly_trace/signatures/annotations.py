"""Annotations of parameters other than element types."""

from __future__ import annotations

import inspect
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

from fly_common.quoting import quoted
from fly_common.record import record

from fly_trace.values.dtypes import DType, Family

if TYPE_CHECKING:
    from fly_trace.signatures.extents import Extent


@record
class Constexpr:
    """`fx.Constexpr[int]`: a compile-time constant. The kernel is specialised for each value."""

    kind: Any = None

    def __class_getitem__(cls, kind: Any) -> Constexpr:
        return cls(kind)


@record
class Stream:
    """`fx.Stream`: a stream that launches may be ordered by; `fx.Stream(None)` is the current one,
    as a default value."""

    value: Any = None


@record
class Alignment:
    """`fx.aligned(16)`, last in `fx.Tensor[…]`: element zero is at a multiple of so many bytes."""

    nbytes: int


def aligned(nbytes: int) -> Alignment:
    """That a parameter's element zero is at a multiple of `nbytes` bytes, a power of two: write it
    last in `fx.Tensor[…]`. Launches check it. Copies of that many bytes at a time rely on it."""
    if type(nbytes) is not int or nbytes < 1 or nbytes & (nbytes - 1):
        raise ValueError(f"an alignment must be a power of two, not {quoted(nbytes)}")
    return Alignment(nbytes)


@record
class TensorAnnotation:
    """`fx.Tensor[fx.Float32, "n", 4]`: an element type, and extents: numbers, names, None, or
    results of `fx.sym_int32`.

    `fx.Tensor[fx.Float32]` does not specify the extents (`shape` is None). A tensor of rank 0, with
    one element, is `fx.Tensor[fx.Float32, ()]`. `align` is in bytes; None is the element type's.
    `dtype` may be a family of types, such as `fx.Float`: the argument's is one of them.
    """

    dtype: Family
    shape: tuple[Extent, ...] | None
    align: int | None = None

    def __or__(self, other: Any) -> OptionalAnnotation:
        return OptionalAnnotation(self) if other is None else NotImplemented

    __ror__ = __or__

    @property
    def element_type(self) -> DType | None:
        """The element type, or None for a family."""
        return self.dtype if isinstance(self.dtype, DType) else None

    def admits(self, dtype: DType) -> bool:
        """Whether a tensor's element type is the one that is named, or of the family."""
        return issubclass(dtype, self.dtype)

    def __str__(self) -> str:
        from fly_trace.signatures.extents import tensor_text

        name = self.element_type.name if self.element_type else self.dtype.__name__
        if self.shape is not None:
            return tensor_text(name, self.shape, None, self.align)
        aligned = f", aligned to {self.align} bytes" if self.align else ""
        return f"a tensor of {name}{aligned}"


@record
class OptionalAnnotation:
    """`fx.Tensor[…] | None`: a tensor, or None, for which there is another kernel."""

    inner: TensorAnnotation


class MaybeNone(inspect.Parameter):
    """A parameter annotated `T | None`. Its annotation is T."""

    __slots__ = ()

    @classmethod
    def of(cls, parameter: inspect.Parameter) -> inspect.Parameter:
        """The parameter as one of this class, if that is what it is."""
        found = parameter.annotation
        if isinstance(found, OptionalAnnotation):
            inner: Any = found.inner
        else:
            parts = get_args(found) if get_origin(found) in (Union, UnionType) else ()
            kinds = [part for part in parts if part is not type(None)]
            if len(parts) != 2 or len(kinds) != 1 or not _is_annotation(kinds[0]):
                return parameter
            inner = kinds[0]
        return cls(parameter.name, parameter.kind, default=parameter.default, annotation=inner)


def _is_annotation(kind: Any) -> bool:
    return kind is Tensor or isinstance(kind, (TensorAnnotation, DType))


class Tensor:
    """`fx.Tensor`, `fx.Tensor[fx.Float32, "n", 4]`: the annotation of a tensor parameter. The
    values are of the subclass `tensors.Tensor`; `fx.Tensor(view)` returns the view."""

    __slots__ = ()

    def __new__(cls, view: Any, *_: Any, **__: Any) -> Any:
        if cls is not Tensor:
            return super().__new__(cls)
        if not isinstance(view, Tensor) and not getattr(view, "is_view", False):
            raise TypeError(f"fx.Tensor takes a tensor, not {quoted(view)}")
        return view

    def __class_getitem__(cls, items: Any) -> TensorAnnotation:
        dtype, *shape = items if isinstance(items, tuple) else (items,)
        if not isinstance(dtype, Family):
            raise TypeError(f"fx.Tensor[…] must begin with an element type, not {quoted(dtype)}")
        align = None
        if shape and isinstance(shape[-1], Alignment):
            align = shape.pop().nbytes
            align = align if align > (dtype.bytes if isinstance(dtype, DType) else 1) else None
        if not shape:
            return TensorAnnotation(dtype, None, align)
        if shape == [()]:
            return TensorAnnotation(dtype, (), align)
        return TensorAnnotation(dtype, tuple(map(_extent, shape)), align)


def _extent(given: Any) -> Extent:
    counted = isinstance(given, int) and not isinstance(given, bool) and given > 0
    named = isinstance(given, str) and given.isidentifier()
    if given is None or counted or named:
        return given
    if given == "?":
        return None
    from fly_dialect.layouts.integers import Int

    from fly_trace.signatures.extents import Symbol

    if isinstance(given, Symbol | Int):
        return given
    raise TypeError(
        f"an extent of fx.Tensor[…] must be a positive number, a name or None, not {given}"
    )
