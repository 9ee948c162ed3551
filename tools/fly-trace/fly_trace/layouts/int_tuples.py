"""Integer tuples: shapes, strides, coordinates, and their elements.

A leaf is an integer: a Python int if it is static (an `Extent`), otherwise a scalar. `None` in a
coordinate leaves a mode free. A `Basis` is a stride along a coordinate.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from fly_common.quoting import quoted
from fly_common.record import record
from fly_dialect.layouts import layout as data
from fly_dialect.types import IntTupleSpec

from fly_trace.core import tracing
from fly_trace.core.dialect_value import DialectValue, apply, says_all, values_of
from fly_trace.core.tracing import describe
from fly_trace.values.conversion import convert
from fly_trace.values.dtypes import I32, I64
from fly_trace.values.scalars import Scalar

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

    from fly_trace.session.builder import Builder

__all__ = [
    "Basis",
    "E",
    "IntTuple",
    "depth",
    "get_leaves",
    "get_scalar",
    "has_none",
    "make_coord",
    "make_int_tuple",
    "make_shape",
    "make_stride",
    "rank",
]


class Extent(int):
    """A static integer of a shape, stride or coordinate."""

    __slots__ = ()

    def unpack(self) -> int:
        return int(self)

    to_py_value = unpack

    @property
    def described(self) -> str:
        return f"the number {int(self)}"


def scalar_of(leaf: data.Int, value: Any) -> Scalar:
    """A dynamic integer, with what its type says about it."""
    return Scalar(I64 if leaf.width == 64 else I32, value, leaf=leaf)


@record
class Basis:
    """A stride of `value` steps along mode `modes` of a coordinate, as in `2 * fx.E(0)`."""

    value: Any
    modes: tuple[int, ...]

    def __mul__(self, other: Any) -> Basis:
        return Basis(self.value * other, self.modes)

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"{self.value}{''.join(f'E{mode}' for mode in self.modes)}"


def E(*modes: Any) -> Any:
    """The unit stride along a mode: `E(0)`, or `E(1, 0)` for a nested one. `E()` is 1."""
    path = tuple(modes[0]) if len(modes) == 1 and isinstance(modes[0], (list, tuple)) else modes
    for mode in path:
        if not isinstance(mode, int) or isinstance(mode, bool) or mode < 0:
            tracing.refuse(f"fx.E takes the numbers of modes, not {describe(mode)}")
    return Basis(1, path) if path else 1


@values_of(IntTupleSpec, lambda spec: data.is_static(spec.value))
class IntTuple(DialectValue):
    """A possibly nested tuple of integers. `t[i]` is a mode: a tuple, an int or a scalar."""

    __slots__ = ()
    noun = "an int tuple"

    @classmethod
    def wrapped(cls, spec: IntTupleSpec, ssa: ir.Value | None, origin: Any) -> Any:
        if isinstance(spec.value, tuple):
            return cls(spec, ssa)
        if ssa is None:
            return _known(spec.value)
        from fly_dialect.builders import ops

        builder = tracing.current("an int tuple")
        value = builder.fly(ops.get_scalar, ssa)
        if isinstance(spec.value, data.Basis):
            return Basis(scalar_of(spec.value.scale, value), spec.value.modes)
        assert isinstance(spec.value, data.Int)
        return scalar_of(spec.value, value)

    def with_ssa(self, ssa: ir.Value | None) -> IntTuple:
        return IntTuple(self.spec, ssa)  # even if it is a single integer: `ssa` may be set later

    @property
    def rank(self) -> int:
        return len(self.spec.value) if self.is_tuple else 1

    @property
    def depth(self) -> int:
        return _depth(self.spec.value)

    @property
    def is_tuple(self) -> bool:
        return isinstance(self.spec.value, tuple)

    @property
    def is_leaf(self) -> bool:
        return not self.is_tuple

    def __len__(self) -> int:
        return self.rank

    def __iter__(self) -> Iterator[Any]:
        return (self.part((mode,)) for mode in range(self.rank))

    def __getitem__(self, mode: Any) -> Any:
        if isinstance(mode, slice):
            return tuple(self.part((index,)) for index in range(self.rank)[mode])
        path = tuple(mode) if isinstance(mode, (list, tuple)) else (mode,)
        path = tuple(map(operator.index, path))
        tree = self.spec.value
        for place, index in enumerate(path):
            count = len(tree) if isinstance(tree, tuple) else min(self.rank, 1)
            if not -count <= index < count:
                self.missing(path)
            path = (*path[:place], index % count, *path[place + 1 :])
            tree = tree[index] if isinstance(tree, tuple) else tree
        return self.part(path)

    def missing(self, path: tuple[int, ...]) -> NoReturn:
        tracing.refuse(f"{self} has no mode {', '.join(map(str, path))}")

    def part(self, path: tuple[int, ...]) -> Any:
        """The mode at a valid path."""
        tree = self.spec.value
        for index in path:
            tree = tree[index] if isinstance(tree, tuple) else tree
        spec = IntTupleSpec(tree)
        if says_all(spec):
            return IntTuple.wrapped(spec, None, None)
        if not self.is_tuple:
            return IntTuple.wrapped(spec, self.value(tracing.current("an int tuple")), None)
        return apply("get", self, mode=path)

    def unpack(self) -> Any:
        """The tuple as nested Python tuples of ints and scalars."""
        return self._unpacked(self.spec.value, ())

    to_py_value = unpack

    def _unpacked(self, tree: Any, path: tuple[int, ...]) -> Any:
        if isinstance(tree, tuple):
            return tuple(self._unpacked(part, (*path, i)) for i, part in enumerate(tree))
        return self.part(path)

    def made(self, builder: Builder) -> ir.Value:
        from fly_dialect.builders import ops

        return builder.fly(lambda **where: ops.make_int_tuple(spec=self.spec, **where))

    @property
    def compared_as(self) -> type:
        return IntTuple

    def __eq__(self, other: Any) -> Any:
        if isinstance(other, (tuple, list, int)):
            if self.is_static:
                return self.unpack() == (tuple(other) if isinstance(other, list) else other)
            other = int_tuple(tuple(other) if isinstance(other, list) else other)
        return super().__eq__(other)

    __hash__ = DialectValue.__hash__


def _known(leaf: Any) -> Any:
    """A static leaf as a Python object."""
    if isinstance(leaf, data.Basis):
        return Basis(leaf.scale.value, leaf.modes)
    return None if leaf is None else Extent(leaf.value)


def _depth(tree: Any) -> int:
    return 1 + max(map(_depth, tree)) if isinstance(tree, tuple) else 0


# -- construction ----------------------------------------------------------------------------------


def int_tuple(value: Any, what: str = "an int tuple") -> IntTuple:
    """Converts integers, scalars, None, and nested tuples of them to an int tuple."""
    if isinstance(value, IntTuple):
        return value
    operands: list[Any] = []
    spec = IntTupleSpec(_tree(value, operands, what))
    if not operands:
        return IntTuple(spec)
    builder = tracing.current(what)
    values = [builder.ssa(leaf) for leaf in operands]
    return IntTuple(spec, builder.fly_op("make_int_tuple", values, {}, spec))


def _tree(value: Any, operands: list[Any], what: str) -> Any:
    """The type of a tree. Its dynamic leaves are appended to `operands`, converted."""
    if value is None:
        return None
    if isinstance(value, IntTuple):
        return _tree(value.unpack(), operands, what)
    if isinstance(value, (tuple, list)):
        if not value:
            tracing.refuse(f"{what} must have at least one element")
        return tuple(_tree(item, operands, what) for item in value)
    if isinstance(value, Basis):
        return data.Basis(_tree(value.value, operands, what), value.modes)
    if isinstance(value, Scalar) and value.leaf is not None:
        operands.append(value)
        return value.leaf
    if isinstance(value, Scalar):
        if not value.dtype.is_integer:
            tracing.refuse(f"{what} needs integers, not {describe(value)}", "convert it: fx.Int32")
        if value.number is not None:
            return _static(int(value.number), what)
        # The upper half of u32 needs 64 bits; shorter integers fit 32.
        wide = value.dtype.bits == 64 or value.dtype.name == "u32"
        operands.append(convert(value, I64 if wide else I32))
        return data.Int(None, 64 if wide else 32)
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        tracing.refuse(f"{what} needs integers, not {describe(value)}")
    return _static(int(operator.index(value)), what)


def _static(number: int, what: str) -> data.Int:
    if not -(1 << 63) <= number < 1 << 63:
        tracing.refuse(f"{what} must contain 64-bit integers, and {quoted(number)} does not fit")
    return data.Int(number)


def make_int_tuple(elems: Any) -> Any:
    """An int tuple of integers, scalars and nested tuples: `make_int_tuple((m, (4, 8)))`."""
    return int_tuple(elems, "fx.make_int_tuple")


def make_shape(*shape: Any) -> Any:
    """A shape: `make_shape(9, (4, 8))` is (9, (4, 8))."""
    return int_tuple(_variadic(shape), "fx.make_shape")


def make_stride(*stride: Any) -> Any:
    """A stride, in elements for each mode, with the structure of its shape."""
    return int_tuple(_variadic(stride), "fx.make_stride")


def make_coord(*coord: Any) -> Any:
    """A coordinate. None leaves a mode free: `make_coord(None, 3)`."""
    return int_tuple(_variadic(coord), "fx.make_coord")


def _variadic(items: tuple[Any, ...]) -> Any:
    return items[0] if len(items) == 1 else items


# -- access ----------------------------------------------------------------------------------------


def get_scalar(int_tuple: Any) -> Any:
    """The single integer in a tuple: an int if it is static, otherwise a scalar."""
    if isinstance(int_tuple, IntTuple):
        tree, path = int_tuple.spec.value, ()
        while isinstance(tree, tuple):
            if len(tree) != 1:
                tracing.refuse(f"fx.get_scalar takes a tuple of one integer, not {int_tuple}")
            tree, path = tree[0], (*path, 0)
        return int_tuple.part(path)
    if isinstance(int_tuple, (int, Scalar, Basis)):
        return int_tuple
    return tracing.refuse(f"fx.get_scalar takes an int tuple, not {describe(int_tuple)}")


def get_leaves(input: Any, dynamic_only: bool = False) -> tuple[Any, ...]:
    """The leaves from left to right; with `dynamic_only`, only dynamic ones."""
    leaves = tuple(_flat(int_tuple_value(input)))
    if dynamic_only:
        return tuple(leaf for leaf in leaves if isinstance(leaf, Scalar) and leaf.number is None)
    return leaves


def int_tuple_value(value: Any) -> Any:
    """An int tuple as nested Python tuples of ints and scalars."""
    if isinstance(value, IntTuple):
        return value.unpack()
    return tuple(map(int_tuple_value, value)) if isinstance(value, (tuple, list)) else value


def _flat(tree: Any) -> Iterator[Any]:
    if isinstance(tree, tuple):
        for part in tree:
            yield from _flat(part)
    else:
        yield tree


def rank(int_or_tuple: Any) -> int:
    """The number of modes of a tuple, layout or tensor; 1 for an integer."""
    own = getattr(int_or_tuple, "rank", None)
    if own is not None:
        return own
    return len(int_or_tuple) if isinstance(int_or_tuple, (tuple, list)) else 1


def depth(int_or_tuple: Any) -> int:
    """The nesting depth of a tuple or layout: 0 for an integer, 1 for a tuple of integers."""
    own = getattr(int_or_tuple, "depth", None)
    if own is not None:
        return own
    if isinstance(int_or_tuple, (tuple, list)):
        return 1 + max(map(depth, int_or_tuple))
    return 0


def has_none(int_or_tuple: Any) -> bool:
    """Whether a coordinate leaves a mode free."""
    if isinstance(int_or_tuple, IntTuple):
        return None in data_leaves(int_or_tuple.spec.value)
    if isinstance(int_or_tuple, (tuple, list)):
        return any(map(has_none, int_or_tuple))
    return int_or_tuple is None


def data_leaves(tree: Any) -> list[Any]:
    """The leaves of a type's tree."""
    if isinstance(tree, tuple):
        return [leaf for part in tree for leaf in data_leaves(part)]
    return [tree]
