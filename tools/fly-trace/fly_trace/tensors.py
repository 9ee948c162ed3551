"""Tensors: views of memory that a kernel indexes, in global memory or LDS."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any, NoReturn

from fly_trace import tracing
from fly_trace.conversion import convert
from fly_trace.dtypes import BOOL, I8, I32, I64, DType, PromotionError, promote, weak
from fly_trace.tracing import describe
from fly_trace.values import Scalar

__all__ = ["Tensor"]

INT32_MAX = 2**31 - 1


@dataclass
class Access:
    """What kernels do to a tensor: `text` is "r", "w", "rw"; nothing yet is "r"."""

    reads: bool = False
    writes: bool = False

    @property
    def text(self) -> str:
        return "rw" if self.reads and self.writes else "w" if self.writes else "r"


@dataclass(frozen=True)
class TensorAnnotation:
    """`fx.Tensor[fx.Float32, "n", 4]`: an element type and extents: numbers, names, or None.

    `fx.Tensor[fx.Float32]` says nothing of the extents (`shape` is None); the rank 0 of a tensor
    that holds one element is `fx.Tensor[fx.Float32, ()]`.
    """

    dtype: DType
    shape: tuple[int | str | None, ...] | None


@dataclass(eq=False)
class Tensor:
    """A tensor of `shape` and `stride` (in elements), indexed by as many integers.

    A static extent or stride is a Python int; a dynamic one is read where it is used. `memref` is
    the SSA value; `space` is "global" or "shared".
    """

    name: str
    dtype: DType
    memref: Any
    extents: tuple[int | None, ...]
    strides: tuple[int | None, ...]
    space: str = "global"
    access: Access = field(default_factory=Access)
    parts: dict[tuple[str, int], Scalar] = field(default_factory=dict)  # leaves read so far

    def __class_getitem__(cls, items: Any) -> TensorAnnotation:
        dtype, *shape = items if isinstance(items, tuple) else (items,)
        if not isinstance(dtype, DType):
            raise TypeError(f"fx.Tensor[…] begins with an element type, not {dtype!r}")
        if not shape:
            return TensorAnnotation(dtype, None)
        if shape == [()]:
            return TensorAnnotation(dtype, ())
        extents = tuple(None if extent == "?" else extent for extent in shape)
        for extent in extents:
            named = isinstance(extent, str) and extent.isidentifier()
            counted = isinstance(extent, int) and not isinstance(extent, bool) and extent > 0
            if not (extent is None or named or counted):
                raise TypeError(
                    f"an extent of fx.Tensor[…] is a positive number, a name or None, not {extent}"
                )
        return TensorAnnotation(dtype, extents)

    @property
    def rank(self) -> int:
        return len(self.extents)

    @property
    def shape(self) -> Parts:
        """The extents: Python ints where static, 64-bit integers where dynamic."""
        return Parts(self, "shape")

    @property
    def stride(self) -> Parts:
        """The strides in elements, likewise."""
        return Parts(self, "stride")

    def describe(self) -> str:
        return f"{self.dtype.name}[{','.join('?' if e is None else str(e) for e in self.extents)}]"

    @property
    def described(self) -> str:
        return f"a tensor ({self.describe()})"

    def __repr__(self) -> str:
        return f"<tensor {self.name}: {self.describe()}>"

    def __getitem__(self, index: Any) -> Scalar:
        builder = tracing.kernel(f"an element of {self.name}")
        from fly_dialect import ops

        coordinate = self.coordinate(builder, index)
        self.access.reads = True
        value = builder.fly(ops.memref_load, self.memref, coordinate)
        if self.dtype is BOOL:
            return Scalar(I8, value).to(BOOL)
        return Scalar(self.dtype, value)

    def __setitem__(self, index: Any, value: Any) -> None:
        builder = tracing.kernel(f"an element of {self.name}")
        from fly_dialect import ops

        coordinate = self.coordinate(builder, index)
        stored = builder.ssa(self.converted(value))
        if self.dtype is BOOL:
            stored = builder.one("arith.extui", "i8", stored)
        self.access.writes = True
        builder.fly(ops.memref_store, stored, self.memref, coordinate)

    def converted(self, value: Any) -> Scalar:
        """A value as an element. Only conversions that keep the value happen by themselves."""
        if isinstance(value, Scalar) and value.dtype is self.dtype:
            return value
        if not isinstance(value, (Scalar, bool, int, float)):
            tracing.refuse(f"an element of {self.name} must be a number, not {describe(value)}")
        try:
            if isinstance(value, Scalar):
                fits = promote(value.dtype, self.dtype) is self.dtype
            else:
                fits = isinstance(value, bool) or weak(value, self.dtype) is self.dtype
        except PromotionError as error:
            if not isinstance(value, Scalar):
                tracing.refuse(f"{self.name} holds {self.dtype.name}: {error}")
            fits = False
        if not fits:
            tracing.refuse(
                f"{self.name} holds {self.dtype.name}, and the value is {describe(value)}",
                f"convert it: fx.{self.dtype.title}(…)",
            )
        return convert(value, self.dtype)

    def coordinate(self, builder: Any, index: Any) -> Any:
        """The int_tuple of an index; InputError for a wrong rank, a slice, a static index that is
        out of bounds."""
        from fly_dialect import ops

        items = index if isinstance(index, tuple) else (index,)
        for item in items:
            if isinstance(item, slice) or item is None or item is Ellipsis:
                tracing.refuse(
                    f"{self.name} is indexed by integers only, one a dimension",
                    "slices and new axes are not part of the language; loop over the elements",
                )
        if len(items) != self.rank:
            tracing.refuse(
                f"{self.name} has {self.rank} dimension{'s' if self.rank != 1 else ''}"
                f" ({self.describe()}), and is indexed by {len(items)}",
                f"its one element is {self.name}[()]" if self.rank == 0 else None,
            )
        if self.rank == 0:
            return builder.fly(ops.make_int_tuple, 0)
        leaves = [self._leaf(builder, mode, item) for mode, item in enumerate(items)]
        return builder.fly(ops.make_int_tuple, *leaves)

    def _leaf(self, builder: Any, mode: int, item: Any) -> Any:
        extent = self.extents[mode]
        if isinstance(item, Scalar) and item.number is not None and item.dtype.is_integer:
            item = item.number
        if not isinstance(item, Scalar):
            try:
                number = operator.index(item)
            except TypeError:
                tracing.refuse(f"an index of {self.name} must be an integer, not {describe(item)}")
            if isinstance(item, bool):
                tracing.refuse(f"an index of {self.name} must be an integer, not a bool")
            if number < 0:
                last = f"{self.name}.shape[{mode}] - {-number}"
                tracing.refuse(
                    f"index {number} of {self.name} is negative", f"count from the end: {last}"
                )
            if extent is not None and number >= extent:
                tracing.refuse(
                    f"index {number} is out of bounds: dimension {mode} of {self.name} has"
                    f" {extent} element{'s' if extent != 1 else ''}"
                )
            return number
        if not item.dtype.is_integer:
            tracing.refuse(
                f"an index of {self.name} must be an integer, not {describe(item)}",
                "convert it, as in fx.Int32(x)",
            )
        wide = self.space == "global" and (
            item.dtype.bits == 64 or item.dtype.name == "u32" or self._needs_64_bits(mode)
        )
        return builder.ssa(item.to(I64 if wide else I32))

    def _needs_64_bits(self, mode: int) -> bool:
        """Whether an index times this stride, which is known, can exceed 32 bits. A stride that is
        not known is a 64-bit leaf, and makes the product one by itself."""
        stride = self.strides[mode]
        if stride is None or stride == 1:
            return False
        reach = 1
        for extent, step in zip(self.extents, self.strides, strict=True):
            if extent is None or step is None:
                return True
            reach += (extent - 1) * step
        return reach > INT32_MAX

    def part(self, what: str, mode: int) -> int | Scalar:
        """Extent or stride `mode`."""
        from fly_dialect import ops

        known = (self.extents if what == "shape" else self.strides)[mode]
        if known is not None:
            return known
        if (what, mode) not in self.parts:
            builder = tracing.current(f"{self.name}.{what}[{mode}]")
            get = ops.get_shape if what == "shape" else ops.get_stride
            # At the function's start, so that it is there wherever the part is used again.
            scalar = builder.at_start(lambda: self._read(builder, get, mode))
            self.parts[what, mode] = scalar
        return self.parts[what, mode]

    def _read(self, builder: Any, get: Any, mode: int) -> Scalar:
        from fly_dialect import ops

        leaves = builder.fly(get, self.memref)
        if self.rank > 1:
            leaves = builder.fly(ops.get, leaves, mode)
        return Scalar(I64, builder.fly(ops.get_scalar, leaves))

    def __len__(self) -> NoReturn:
        tracing.refuse("a tensor has no length", f"use {self.name}.shape[0]")

    def __iter__(self) -> NoReturn:
        tracing.refuse("a tensor can't be iterated or unpacked", f"loop over {self.name}.shape[0]")

    def __bool__(self) -> NoReturn:
        tracing.refuse("a tensor has no truth value")

    def __contains__(self, _: Any) -> NoReturn:
        tracing.refuse("a tensor can't be searched with `in`")


@dataclass(frozen=True)
class Parts:
    """The extents or strides of a tensor: a sequence of static length."""

    tensor: Tensor
    what: str

    def __len__(self) -> int:
        return self.tensor.rank

    def __getitem__(self, mode: Any) -> Any:
        modes = range(self.tensor.rank)
        if isinstance(mode, slice):
            return tuple(self.tensor.part(self.what, index) for index in modes[mode])
        try:
            number = modes[operator.index(mode)]
        except IndexError:
            tracing.refuse(
                f"{self.what}[{mode}] of {self.tensor.name}, which is {self.tensor.describe()},"
                " does not exist"
            )
        return self.tensor.part(self.what, number)

    def __iter__(self) -> Any:
        return iter(self[:])

    def unpack(self) -> tuple[Any, ...]:
        return self[:]

    def __repr__(self) -> str:
        return f"{self.tensor.name}.{self.what}"


def c_strides(shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """The strides of a C-contiguous tensor as far as the extents tell: None is not known."""
    strides: list[int | None] = []
    step: int | None = 1
    for extent in reversed(shape):
        strides.insert(0, step)
        step = None if step is None or extent is None else step * extent
    return tuple(strides)
