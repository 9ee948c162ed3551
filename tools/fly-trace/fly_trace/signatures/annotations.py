"""What parameters are annotated with besides element types and `fx.Tensor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fly_common.quoting import quoted

from fly_trace.values.dtypes import DType

if TYPE_CHECKING:
    from fly_trace.signatures.extents import Extent


@dataclass(frozen=True)
class Constexpr:
    """`fx.Constexpr[int]`: an argument known while tracing; each value is another kernel."""

    kind: Any = None

    def __class_getitem__(cls, kind: Any) -> Constexpr:
        return cls(kind)


@dataclass(frozen=True)
class Stream:
    """`fx.Stream`: accepted where FlyDSL has it. The order of launches is the program's."""

    value: Any = None


@dataclass(frozen=True)
class TensorAnnotation:
    """`fx.Tensor[fx.Float32, "n", 4]`: an element type and extents: numbers, names, None, or
    what `fx.sym_int32` makes.

    `fx.Tensor[fx.Float32]` says nothing of the extents (`shape` is None); the rank 0 of a tensor
    that holds one element is `fx.Tensor[fx.Float32, ()]`.
    """

    dtype: DType
    shape: tuple[Extent, ...] | None


class Tensor:
    """`fx.Tensor`, `fx.Tensor[fx.Float32, "n", 4]`: a tensor, as a parameter's annotation. The
    class of the values is `tensors.Tensor`, which is one; `fx.Tensor(view)` is the view."""

    __slots__ = ()

    def __new__(cls, view: Any, *_: Any, **__: Any) -> Any:
        if cls is not Tensor:
            return super().__new__(cls)
        if not isinstance(view, Tensor):
            raise TypeError(f"fx.Tensor takes a tensor, not {quoted(view)}")
        return view

    def __class_getitem__(cls, items: Any) -> TensorAnnotation:
        dtype, *shape = items if isinstance(items, tuple) else (items,)
        if not isinstance(dtype, DType):
            raise TypeError(f"fx.Tensor[…] must begin with an element type, not {quoted(dtype)}")
        if not shape:
            return TensorAnnotation(dtype, None)
        if shape == [()]:
            return TensorAnnotation(dtype, ())
        return TensorAnnotation(dtype, tuple(map(_extent, shape)))


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
