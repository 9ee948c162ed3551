"""The class of vectors, without operators and conversions. Import it from `vectors`, which installs
them, like `operators` does for scalars.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from fly_common.quoting import quoted

from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.values import conversion
from fly_trace.values.dtypes import DType
from fly_trace.values.functions.fast_math import of_op
from fly_trace.values.promotion import check_computes, default
from fly_trace.values.scalars import Scalar
from fly_trace.values.vector_shapes import Shape, count, nested, selected, spread_places, vector_ir

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

# Reduction → #vector.kind for floats, signed and unsigned integers. max and min propagate NaN.
REDUCTIONS = {
    "add": ("add", "add", "add"),
    "mul": ("mul", "mul", "mul"),
    "max": ("maximumf", "maxsi", "maxui"),
    "min": ("minimumf", "minsi", "minui"),
}


class Vector:
    """`value` is the SSA value, a flat MLIR vector. `shape` may be nested, like layouts' shapes."""

    __slots__ = ("are_coordinates", "dtype", "shape", "value")

    def __init__(
        self,
        value: ir.Value | Vector,
        shape: Any = None,
        dtype: DType | None = None,
        *,
        are_coordinates: bool = False,
    ):
        if isinstance(value, Vector):
            shape, dtype, value = shape or value.shape, dtype or value.dtype, value.value
        assert dtype is not None
        self.value = value
        self.shape: Shape = nested(shape)
        self.dtype: DType = dtype
        self.are_coordinates = are_coordinates

    # -- properties

    @property
    def element_type(self) -> DType:
        return self.dtype

    @property
    def numel(self) -> int:
        return count(self.shape)

    @property
    def described(self) -> str:
        return f"a vector of {self.numel} {self.dtype.name}"

    def __repr__(self) -> str:
        return f"<vector {self.dtype.name}{list(self.shape)}>"

    def __len__(self) -> int:
        return self.numel

    def __iter__(self) -> Iterator[Scalar]:
        return (self[index] for index in range(self.numel))

    def __bool__(self) -> bool:
        return tracing.refuse("a vector has no truth value", "reduce it to one")

    __hash__ = None  # type: ignore[assignment]

    # -- carried by branches and loops

    @property
    def carried(self) -> Any:
        return Vector, self.shape, self.dtype

    @property
    def ssa(self) -> ir.Value:
        return self.value

    @ssa.setter
    def ssa(self, value: ir.Value) -> None:
        self.value = value

    def with_ssa(self, ssa: ir.Value) -> Vector:
        return Vector(ssa, self.shape, self.dtype)

    # -- elements

    def __getitem__(self, index: Any) -> Any:
        """An element, by its index with the first mode fastest, or by its coordinate. With None in
        the coordinate, the vector of that part."""
        if isinstance(index, tuple):
            return self._at(index)
        builder = tracing.current("an element of a vector")
        if isinstance(index, Scalar) and index.number is None:
            if not index.dtype.is_integer:
                tracing.refuse(f"a vector is indexed by integers, not {describe(index)}")
            where = builder.one("arith.index_cast", "index", builder.ssa(index))
            place = builder.attribute(f"array<i64: {-(2**63)}>")
            found = builder.one(
                "vector.extract", self.dtype.ir, self.value, where, static_position=place
            )
            return Scalar(self.dtype, found)
        given: Any = index.number if isinstance(index, Scalar) else index
        number = operator.index(given)
        if not -self.numel <= number < self.numel:
            tracing.refuse(f"element {quoted(number)} of {self.described} does not exist")
        place = builder.attribute(f"array<i64: {number % self.numel}>")
        return Scalar(
            self.dtype,
            builder.one("vector.extract", self.dtype.ir, self.value, static_position=place),
        )

    def _at(self, coord: tuple[Any, ...]) -> Any:
        kept, mask = selected(self.shape, coord)
        if not kept:
            return self[mask[0]]
        return self._shuffled(mask, tuple(kept))

    def _shuffled(self, mask: list[int], shape: Shape, other: Vector | None = None) -> Vector:
        builder = tracing.current("a vector")
        value = builder.one(
            "vector.shuffle",
            vector_ir(self.dtype, len(mask)),
            self.value,
            (self if other is None else other).value,
            mask=builder.attribute(f"array<i64: {', '.join(map(str, mask))}>"),
        )
        return Vector(value, shape, self.dtype)

    # -- reinterpretation and rearrangement

    def bitcast(self, dtype: DType) -> Vector:
        """The same bits as elements of another type. Their number changes with the width."""
        bits = self.numel * self.dtype.bits
        if bits % dtype.bits:
            tracing.refuse(
                f"{self.described} has {bits} bits, which is not a whole number of {dtype.name}"
            )
        builder = tracing.current("a bitcast")
        number = bits // dtype.bits
        value = self.value
        if dtype.ir != self.dtype.ir:
            value = builder.one("vector.bitcast", vector_ir(dtype, number), value)
        return Vector(value, (number,), dtype)

    def reshape(self, shape: Any) -> Vector:
        """The same elements in the same order with another shape."""
        new = nested(shape)
        if count(new) != self.numel:
            tracing.refuse(f"{self.described} can't have the shape {new} of {count(new)} elements")
        return Vector(self.value, new, self.dtype)

    def broadcast_to(self, target_shape: Any) -> Vector:
        """The vector repeated along its modes of size 1, by NumPy's rules."""
        target = nested(target_shape)
        if target == self.shape:
            return self
        if self.numel == 1:
            return Vector.filled(target, self[0], self.dtype)
        return self._shuffled(spread_places(self.shape, target), target)

    def shuffle(self, other: Vector, mask: Iterable[int]) -> Vector:
        """The elements at the indices `mask` of the concatenation of this vector and `other`."""
        places = [operator.index(place) for place in mask]
        if not isinstance(other, Vector) or other.dtype is not self.dtype:
            tracing.refuse(
                f"shuffle takes another vector of {self.dtype.name}, not {describe(other)}"
            )
        if not places or not all(0 <= place < self.numel + other.numel for place in places):
            tracing.refuse(
                f"the mask {places} must contain numbers below {self.numel + other.numel}"
            )
        return self._shuffled(places, (len(places),), other)

    def reduce(self, op: str, init_val: Any = None, *, fastmath: Any = None) -> Scalar:
        """Reduces all elements by "add", "mul", "max" or "min", in order. NaN is propagated.
        `fastmath`: LLVM's flags; with `reassoc` the order is open."""
        kinds = REDUCTIONS.get(op.lower()) if isinstance(op, str) else None
        if kinds is None:
            what = f"the unknown {quoted(op)}" if isinstance(op, str) else describe(op)
            tracing.refuse(f"reduce takes {', '.join(REDUCTIONS)}, not {what}")
        if self.dtype.is_bool:
            tracing.refuse("a vector of bools can't be reduced", "convert it: v.to(fx.Int32)")
        conversion.checked(check_computes, self.dtype)
        builder = tracing.current("reduce")
        kind = kinds[0 if self.dtype.is_float else 1 if self.dtype.is_signed else 2]
        operands = [self.value]
        if init_val is not None:
            operands.append(builder.ssa(conversion.convert(init_val, self.dtype)))
        attribute = builder.attribute(f"#vector.kind<{kind}>")
        flags = of_op(builder, fastmath) if self.dtype.is_float else {}
        made = builder.one("vector.reduction", self.dtype.ir, *operands, kind=attribute, **flags)
        return Scalar(self.dtype, made)

    # -- construction

    @classmethod
    def from_elements(cls, elements: Iterable[Any], dtype: DType | None = None) -> Vector:
        """A vector of numbers and scalars."""
        items = list(elements)
        if not items:
            tracing.refuse("Vector.from_elements takes at least one element")
        typed = next((item.dtype for item in items if isinstance(item, Scalar)), None)
        chosen = dtype or typed or default(items[0])
        builder = tracing.current("Vector.from_elements")
        values = [builder.ssa(conversion.convert(item, chosen)) for item in items]
        made = builder.one("vector.from_elements", vector_ir(chosen, len(items)), *values)
        return cls(made, (len(items),), chosen)

    @staticmethod
    def filled(shape: Any, fill_value: Any, dtype: DType) -> Vector:
        """A vector with all elements equal to `fill_value`."""
        builder = tracing.current("a vector")
        full_shape = nested(shape)
        number = conversion.convert(fill_value, dtype)
        kind = vector_ir(dtype, count(full_shape))
        if number.number is not None and number.ssa is None:
            return Vector(builder.splat(number.number, dtype, kind), full_shape, dtype)
        return Vector(builder.one("vector.broadcast", kind, builder.ssa(number)), full_shape, dtype)

    if TYPE_CHECKING:
        # Installed by `vectors`.
        def __add__(self, other: Any) -> Vector: ...
        def __radd__(self, other: Any) -> Vector: ...
        def __sub__(self, other: Any) -> Vector: ...
        def __mul__(self, other: Any) -> Vector: ...
        def __rmul__(self, other: Any) -> Vector: ...
        def __truediv__(self, other: Any) -> Vector: ...
        def __neg__(self) -> Vector: ...
        def to(
            self,
            dtype: DType,
            *,
            rounding: str | None = None,
            saturate: bool = False,
            rounding_mode: str | None = None,
        ) -> Vector: ...
        def select(self, true_value: Any, false_value: Any) -> Vector: ...
