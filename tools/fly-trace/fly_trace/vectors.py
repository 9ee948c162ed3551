"""Vectors: several numbers of one type in registers, computed with element by element.

A vector has the shape of the tensor it was loaded from. Its elements are counted as a layout counts
coordinates, with the first mode fastest: `v[i, j]` is the element that the tensor has at (i, j).

A Python number is weak, as beside a scalar. A scalar of the same kind takes the vector's element
type, as in PyTorch, and so do coordinates: an i64 extent that meets i32 offsets widens nothing.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fly_trace import arithmetic, conversion, functions, tracing
from fly_trace.arithmetic import BITS, PLAIN, PREDICATES, SIGNS
from fly_trace.dtypes import BOOL, F32, I32, DType, default, promote, weak
from fly_trace.tracing import describe
from fly_trace.values import Scalar

if TYPE_CHECKING:
    from fly_trace.builder import Builder

__all__ = [
    "ReductionOp",
    "Vector",
    "empty_like",
    "full",
    "full_like",
    "ones_like",
    "zeros_like",
]

Shape = tuple[Any, ...]  # of ints and nested shapes


class ReductionOp:
    """What `Vector.reduce` can do."""

    ADD, MUL, MAX, MIN = "add", "mul", "max", "min"


# Reduction → #vector.kind for floats, signed and unsigned integers. NaN goes through max and min.
REDUCTIONS = {
    "add": ("add", "add", "add"),
    "mul": ("mul", "mul", "mul"),
    "max": ("maximumf", "maxsi", "maxui"),
    "min": ("minimumf", "minsi", "minui"),
}


class Vector:
    """`value` is the SSA value, a flat MLIR vector; `shape` nests as layouts' shapes do."""

    __slots__ = ("are_coordinates", "dtype", "shape", "value")

    def __init__(
        self,
        value: Any,
        shape: Any = None,
        dtype: DType | None = None,
        *,
        are_coordinates: bool = False,
    ):
        if isinstance(value, Vector):
            shape, dtype, value = shape or value.shape, dtype or value.dtype, value.value
        assert dtype is not None
        self.value = value
        self.shape: Shape = _shape(shape)
        self.dtype: DType = dtype
        self.are_coordinates = are_coordinates

    # -- what it is

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

    # -- as a variable of a branch or loop

    @property
    def carried(self) -> Any:
        return Vector, self.shape, self.dtype

    @property
    def ssa(self) -> Any:
        return self.value

    @ssa.setter
    def ssa(self, value: Any) -> None:
        self.value = value

    def with_ssa(self, ssa: Any) -> Vector:
        return Vector(ssa, self.shape, self.dtype)

    # -- its elements

    def __getitem__(self, index: Any) -> Any:
        """An element, counted with the first mode fastest, or at a coordinate; with None in the
        coordinate the vector of that part."""
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
            tracing.refuse(f"element {number} of {self.described} does not exist")
        place = builder.attribute(f"array<i64: {number % self.numel}>")
        return Scalar(
            self.dtype,
            builder.one("vector.extract", self.dtype.ir, self.value, static_position=place),
        )

    def _at(self, coord: tuple[Any, ...]) -> Any:
        kept, mask = _select(self.shape, coord, self)
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

    # -- other vectors of the same elements

    def to(self, dtype: DType) -> Vector:
        """Each element converted, as `fx.Float16(x)` converts a scalar."""
        if dtype is self.dtype:
            return self
        builder = tracing.current("a conversion")
        if dtype.is_bool:
            return binary("ne", self, 0.0 if self.dtype.is_float else 0)
        value = self.value
        for name, kind in conversion.steps(self.dtype, dtype):
            value = builder.one(name, f"vector<{self.numel}x{kind}>", value)
        return Vector(value, self.shape, dtype)

    def bitcast(self, dtype: DType) -> Vector:
        """The same bits as elements of another type; their number changes with the width."""
        bits = self.numel * self.dtype.bits
        if bits % dtype.bits:
            tracing.refuse(f"{self.described} holds {bits} bits, which are not whole {dtype.name}")
        builder = tracing.current("a bitcast")
        number = bits // dtype.bits
        value = self.value
        if dtype.ir != self.dtype.ir:
            value = builder.one("vector.bitcast", vector_ir(dtype, number), value)
        return Vector(value, (number,), dtype)

    def reshape(self, shape: Any) -> Vector:
        """The same elements in the same order under another shape."""
        new = _shape(shape)
        if count(new) != self.numel:
            tracing.refuse(f"{self.described} can't have the shape {new} of {count(new)} elements")
        return Vector(self.value, new, self.dtype)

    def broadcast_to(self, target_shape: Any) -> Vector:
        """The vector repeated along the modes where it has one element, NumPy's rule."""
        target = _shape(target_shape)
        if target == self.shape:
            return self
        if self.numel == 1:
            return filled(target, self[0], self.dtype)
        own, wanted = _flat(self.shape), _flat(target)
        padded = [1] * (len(wanted) - len(own)) + own
        fits = all(a in (1, b) for a, b in zip(padded, wanted, strict=False))
        if len(padded) != len(wanted) or not fits:
            tracing.refuse(f"a vector of shape {self.shape} can't be broadcast to {target}")
        mask = []
        for index in range(count(target)):
            place, step = 0, 1
            for extent, full_extent in zip(padded, wanted, strict=True):
                index, at = divmod(index, full_extent)
                place += step * (at if extent > 1 else 0)
                step *= extent
            mask.append(place)
        return self._shuffled(mask, target)

    def shuffle(self, other: Vector, mask: Iterable[int]) -> Vector:
        """The elements `mask` of this vector and then the other, counted through."""
        places = [operator.index(place) for place in mask]
        if not isinstance(other, Vector) or other.dtype is not self.dtype:
            tracing.refuse(
                f"shuffle takes another vector of {self.dtype.name}, not {describe(other)}"
            )
        if not places or not all(0 <= place < self.numel + other.numel for place in places):
            tracing.refuse(f"the mask {places} is not of numbers below {self.numel + other.numel}")
        return self._shuffled(places, (len(places),), other)

    def select(self, true_value: Any, false_value: Any) -> Vector:
        """Element by element `true_value` where this vector holds, else `false_value`."""
        return select(self, true_value, false_value)

    def reduce(self, op: str, init_val: Any = None) -> Scalar:
        """All elements in one: "add", "mul", "max" or "min", in order; NaN goes through."""
        kinds = REDUCTIONS.get(op.lower()) if isinstance(op, str) else None
        if kinds is None:
            tracing.refuse(f"reduce takes {', '.join(REDUCTIONS)}, not {describe(op)}")
        if self.dtype.is_bool:
            tracing.refuse("a vector of bools can't be reduced", "convert it: v.to(fx.Int32)")
        builder = tracing.current("reduce")
        kind = kinds[0 if self.dtype.is_float else 1 if self.dtype.is_signed else 2]
        operands = [self.value]
        if init_val is not None:
            operands.append(builder.ssa(conversion.convert(init_val, self.dtype)))
        attribute = builder.attribute(f"#vector.kind<{kind}>")
        return Scalar(
            self.dtype, builder.one("vector.reduction", self.dtype.ir, *operands, kind=attribute)
        )

    # -- making them

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
        """A vector whose elements are all `fill_value`."""
        return filled(_shape(shape), fill_value, dtype)

    if TYPE_CHECKING:
        # Made below.
        def __add__(self, other: Any) -> Vector: ...
        def __radd__(self, other: Any) -> Vector: ...
        def __sub__(self, other: Any) -> Vector: ...
        def __mul__(self, other: Any) -> Vector: ...
        def __rmul__(self, other: Any) -> Vector: ...
        def __truediv__(self, other: Any) -> Vector: ...
        def __neg__(self) -> Vector: ...


@dataclass(frozen=True)
class VectorType:
    """`fx.Float32x4`: called, a vector of so many elements; `p.load(fx.Float32x4)` loads one."""

    dtype: DType
    lanes: int

    def __call__(self, value: Any) -> Vector:
        if isinstance(value, Vector):
            return value.reshape((self.lanes,)).to(self.dtype)
        if isinstance(value, (list, tuple)):
            return Vector.from_elements(value, self.dtype).reshape((self.lanes,))
        return Vector.filled((self.lanes,), value, self.dtype)


# -- shapes ----------------------------------------------------------------------------------------


def _shape(shape: Any) -> Shape:
    if isinstance(shape, (tuple, list)):
        return tuple(
            _shape(item) if isinstance(item, (tuple, list)) else int(item) for item in shape
        )
    return (int(shape),)


def _flat(shape: Any) -> list[int]:
    if isinstance(shape, tuple):
        return [extent for item in shape for extent in _flat(item)]
    return [shape]


def count(shape: Any) -> int:
    return math.prod(_flat(shape))


def vector_ir(dtype: DType, number: int) -> str:
    return f"vector<{number}x{dtype.ir}>"


def _select(shape: Any, coord: tuple[Any, ...], vector: Vector) -> tuple[list[Any], list[int]]:
    """The shape of the modes left free, and the places of their elements."""
    kept: list[Any] = []
    places, step = [0], 1

    def walk(extent: Any, item: Any, into: list[Any]) -> None:
        nonlocal places, step
        if isinstance(extent, tuple) and isinstance(item, tuple):
            if len(extent) != len(item):
                tracing.refuse(f"{coord} does not fit the shape {vector.shape}")
            inner: list[Any] = []
            for part, index in zip(extent, item, strict=True):
                walk(part, index, inner)
            if inner:
                into.append(tuple(inner))
            return
        size = count(extent)
        if item is None:
            places = [place + step * at for at in range(size) for place in places]
            into.append(extent)
        else:
            number = operator.index(item)
            if not 0 <= number < size:
                tracing.refuse(f"{coord} does not fit the shape {vector.shape}")
            places = [place + step * number for place in places]
        step *= size

    if len(coord) != len(shape):
        tracing.refuse(f"{coord} does not fit the shape {vector.shape}")
    for extent, item in zip(shape, coord, strict=True):
        walk(extent, item, kept)
    return kept, places


# -- arithmetic ------------------------------------------------------------------------------------


def element_dtype(a: Any, b: Any) -> DType:
    """The element type in which two operands meet, one of them a vector."""
    if isinstance(a, Vector) and isinstance(b, Vector):
        if a.are_coordinates != b.are_coordinates:
            vector, other = (b, a) if a.are_coordinates else (a, b)
            return _beside(vector, other.dtype)
        return conversion.checked(promote, a.dtype, b.dtype)
    vector, other = (a, b) if isinstance(a, Vector) else (b, a)
    if not isinstance(other, Scalar):
        return conversion.checked(weak, other, vector.dtype)
    return _beside(vector, other.dtype)


def _beside(vector: Vector, weak: DType) -> DType:
    """The element type where a vector meets what does not widen it: a scalar, coordinates."""
    if weak.is_bool or (weak.is_float == vector.dtype.is_float and not vector.dtype.is_bool):
        return vector.dtype
    return conversion.checked(promote, vector.dtype, weak)


def _broadcast(a: Any, b: Any) -> Shape:
    if not isinstance(a, Vector):
        return b.shape
    if not isinstance(b, Vector) or a.shape == b.shape or b.numel == 1:
        return a.shape
    if a.numel == 1:
        return b.shape
    if a.numel == b.numel and _flat(a.shape) == _flat(b.shape):
        return a.shape
    rank = max(len(_flat(a.shape)), len(_flat(b.shape)))
    padded = [[1] * (rank - len(_flat(v.shape))) + _flat(v.shape) for v in (a, b)]
    if not all(x == y or 1 in (x, y) for x, y in zip(*padded, strict=True)):
        tracing.refuse(f"vectors of shapes {a.shape} and {b.shape} can't be broadcast together")
    return tuple(max(x, y) for x, y in zip(*padded, strict=True))


def spread(value: Any, dtype: DType, shape: Shape) -> Any:
    """The SSA vector of an operand, converted and repeated."""
    if isinstance(value, Vector):
        if _flat(value.shape) != _flat(shape):
            value = value.broadcast_to(shape)
        return value.to(dtype).value
    return filled(shape, value, dtype).value


def filled(shape: Shape, value: Any, dtype: DType) -> Vector:
    """A vector of one number everywhere."""
    builder = tracing.current("a vector")
    number = conversion.convert(value, dtype)
    kind = vector_ir(dtype, count(shape))
    if number.value is None and number.number is not None:
        return Vector(builder.splat(number.number, dtype, kind), shape, dtype)
    return Vector(builder.one("vector.broadcast", kind, number.value), shape, dtype)


def binary(operation: str, a: Any, b: Any) -> Any:
    """`a operation b`, one of them a vector; NotImplemented where the other is no number."""
    for operand in (a, b):
        if not isinstance(operand, (Vector, Scalar, bool, int, float)):
            return NotImplemented
    builder = tracing.current(f"`{SIGNS[operation]}` on a vector")
    dtype, shape = element_dtype(a, b), _broadcast(a, b)
    if operation == "divmod":
        return binary("floordiv", a, b), binary("mod", a, b)
    if operation == "truediv" and not dtype.is_float:
        dtype = F32
    if operation in PREDICATES:
        return _compare(builder, operation, a, b, dtype, shape)
    if dtype.is_bool and operation not in BITS:
        tracing.refuse(f"`{SIGNS[operation]}` of bools", "convert them, as in v.to(fx.Int32)")
    if operation in PLAIN:
        name = PLAIN[operation][dtype.is_float]
    elif operation in BITS and not dtype.is_float:
        name = BITS[operation]
    elif operation == "truediv":
        name = "arith.divf"
    else:
        return _by_lanes(functools.partial(_scalar_binary, operation), shape, dtype, a, b)
    x, y = spread(a, dtype, shape), spread(b, dtype, shape)
    return Vector(builder.one(name, vector_ir(dtype, count(shape)), x, y), shape, dtype)


def _scalar_binary(operation: str, a: Any, b: Any) -> Any:
    return functions.power(a, b) if operation == "pow" else arithmetic.binary(operation, a, b)


def _compare(
    builder: Builder, operation: str, a: Any, b: Any, dtype: DType, shape: Shape
) -> Vector:
    signed, unsigned, ordered = PREDICATES[operation]
    if dtype.is_float:
        name, predicate = "arith.cmpf", ordered
    else:
        name, predicate = "arith.cmpi", signed if dtype.kind == "int" else unsigned
    x, y = spread(a, dtype, shape), spread(b, dtype, shape)
    number = builder.integer(predicate, "i64")
    kind = vector_ir(BOOL, count(shape))
    return Vector(builder.one(name, kind, x, y, predicate=number), shape, BOOL)


def unary(operation: str, a: Vector) -> Vector:
    if operation == "pos":
        return a
    if operation == "neg" and a.dtype.is_float:
        builder = tracing.current("`-` of a vector")
        return Vector(
            builder.one("arith.negf", vector_ir(a.dtype, a.numel), a.value), a.shape, a.dtype
        )
    return over_lanes(lambda x: arithmetic.unary(operation, x))(a)


def select(condition: Any, a: Any, b: Any) -> Vector:
    """Element by element `a` where the condition holds, else `b`."""
    builder = tracing.current("a selection")
    if isinstance(condition, Vector) and not condition.dtype.is_bool:
        tracing.refuse(f"the condition must be of bools, not {condition.described}")
    dtype = element_dtype(a, b) if isinstance(a, Vector) or isinstance(b, Vector) else None
    if dtype is None:
        dtype = functions.meet("where", a, b)
    shape = next(v.shape for v in (condition, a, b) if isinstance(v, Vector))
    x, y = spread(a, dtype, shape), spread(b, dtype, shape)
    test = (
        spread(condition, BOOL, shape) if isinstance(condition, Vector) else builder.ssa(condition)
    )
    kind = vector_ir(dtype, count(shape))
    return Vector(builder.one("arith.select", kind, test, x, y), shape, dtype)


def _by_lanes(function: Callable[..., Any], shape: Shape, dtype: DType, *operands: Any) -> Vector:
    """`function` of the scalars in each place."""
    spread_out = [
        operand.broadcast_to(shape) if isinstance(operand, Vector) else operand
        for operand in operands
    ]
    results = []
    for lane in range(count(shape)):
        given = [v[lane] if isinstance(v, Vector) else v for v in spread_out]
        results.append(function(*given))
    return Vector.from_elements(results).reshape(shape)


def over_lanes(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of scalars that takes vectors too, element by element."""

    @functools.wraps(function)
    def wide(*operands: Any, **named: Any) -> Any:
        vectors = [operand for operand in operands if isinstance(operand, Vector)]
        if not vectors:
            return function(*operands, **named)
        shape = functools.reduce(lambda s, v: _broadcast(Vector(None, s, I32), v), vectors, (1,))
        bound = functools.partial(function, **named)
        return _by_lanes(bound, shape, vectors[0].dtype, *operands)

    return wide


def _install() -> None:
    def method(name: str, function: Any) -> None:
        function.__name__ = function.__qualname__ = name
        setattr(Vector, name, function)

    for word in SIGNS:
        method(f"__{word}__", lambda self, other, word=word: binary(word, self, other))
        if word not in PREDICATES:
            method(f"__r{word}__", lambda self, other, word=word: binary(word, other, self))
    for word in ("neg", "pos", "invert", "abs"):
        method(f"__{word}__", lambda self, word=word: unary(word, self))


_install()


def full(shape: Any, fill_value: Any, dtype: DType) -> Vector:
    """A vector whose elements are all `fill_value`."""
    return Vector.filled(shape, fill_value, dtype)


def full_like(a: Vector, fill_value: Any, dtype: DType | None = None) -> Vector:
    """A vector of a's shape whose elements are all `fill_value`."""
    return Vector.filled(a.shape, fill_value, dtype or a.dtype)


def zeros_like(a: Vector, dtype: DType | None = None) -> Vector:
    """A vector of a's shape, all zero."""
    return full_like(a, 0, dtype)


def ones_like(a: Vector, dtype: DType | None = None) -> Vector:
    """A vector of a's shape, all one."""
    return full_like(a, 1, dtype)


def empty_like(a: Vector, dtype: DType | None = None) -> Vector:
    """A vector of a's shape; its elements are zero."""
    return zeros_like(a, dtype)
