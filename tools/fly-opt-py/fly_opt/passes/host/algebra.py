"""The layout algebra of a host function: shapes, layouts and views that it computes.

The functions are those of the dialect's operations (`fly_dialect.inference.computation`), which
compute types for the verifier and code in kernels. Here their integers are expressions of the host
program.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fly_common.record import record
from fly_dialect import algebra
from fly_dialect.inference.computation import COMPUTATIONS
from fly_dialect.inference.computation import View as Viewed
from fly_dialect.layouts.int_tuple import IntTuple
from fly_dialect.layouts.integers import Basis, Int
from fly_dialect.layouts.swizzle import CoordSwizzle, Swizzle
from fly_host.graph import Graph


@record
class Expression:
    """A leaf of the algebra: what its type says, and the index of an expression. Programs compute
    with mathematical integers, so the width of the type matters to nothing but launches."""

    graph: Graph
    type: Int
    index: int

    def __str__(self) -> str:
        return str(self.type)

    def constant(self, value: Int) -> Expression:
        assert value.value is not None, "it is static"
        return Expression(self.graph, value, self.graph.const(value.value))

    def widened(self) -> Expression:
        return Expression(self.graph, self.type.widened(), self.index)

    def __add__(self, other: Expression | Int) -> Expression:
        return self._made("add", other, self.type + other.type)

    def __sub__(self, other: Expression | Int) -> Expression:
        return self._made("sub", other, self.type - other.type)

    def __mul__(self, other: Expression | Int) -> Expression:
        return self._made("mul", other, self.type * other.type)

    def __floordiv__(self, other: Expression | Int) -> Expression:
        return self._made("truncdiv", other, self.type // other.type)

    def __mod__(self, other: Expression | Int) -> Expression:
        return self._made("rem", other, self.type % other.type)

    def ceildiv(self, other: Expression | Int) -> Expression:
        return self._made("ceildiv", other, self.type.ceildiv(other.type))

    def minimum(self, other: Expression | Int) -> Expression:
        return self._made("min", other, self.type.minimum(other.type))

    def less(self, other: Expression | Int) -> Expression:
        return self._made("lt", other, self.type.less(other.type))

    def equals(self, other: Expression | Int) -> Expression:
        return self._made("eq", other, self.type.equals(other.type))

    def both(self, other: Expression | Int) -> Expression:
        return self._made("and", other, self.type.both(other.type))

    def swizzled(self, swizzle: Swizzle) -> Expression:
        picked = self.graph.make("and", self.index, self.graph.const(swizzle.source_bits))
        moved = self._shifted(picked, swizzle.shift)
        index = self.graph.make("xor", self.index, moved)
        return Expression(self.graph, self.type.swizzled(swizzle), index)

    def coord_swizzled(self, row: Expression | Int, swizzle: CoordSwizzle) -> Expression:
        row = self.constant(row) if isinstance(row, Int) else row
        bits = ((1 << swizzle.mask) - 1) << swizzle.base_row
        picked = self.graph.make("and", row.index, self.graph.const(bits))
        moved = self._shifted(picked, swizzle.base_row - swizzle.base_col)
        type_ = self.type.coord_swizzled(row.type, swizzle)
        return Expression(self.graph, type_, self.graph.make("xor", self.index, moved))

    def _shifted(self, index: int, right: int) -> int:
        name = "shr" if right >= 0 else "shl"
        return self.graph.make(name, index, self.graph.const(abs(right)))

    def _made(self, name: str, other: Expression | Int, type_: Int) -> Expression:
        if type_.value is not None:
            return self.constant(type_)
        other = self.constant(other) if isinstance(other, Int) else other
        return Expression(self.graph, type_, self.graph.make(name, self.index, other.index))


def leaves_of(graph: Graph, type_: IntTuple, expressions: Any) -> Any:
    """A tree of the algebra: its dynamic leaves are expressions, given as a tree of their indices
    in the form of the type."""
    if isinstance(type_, tuple):
        return tuple(leaves_of(graph, *pair) for pair in zip(type_, expressions, strict=True))
    if isinstance(type_, Basis):
        return Basis(leaves_of(graph, type_.scale, expressions), type_.modes)
    if type_ is None or type_.is_static:
        return type_
    return Expression(graph, type_, expressions)


def filled(graph: Graph, type_: IntTuple, dynamic: Iterator[int]) -> Any:
    """A tree of the algebra, whose dynamic leaves are the next of these expressions."""
    if isinstance(type_, tuple):
        return tuple(filled(graph, part, dynamic) for part in type_)
    if isinstance(type_, Basis):
        return Basis(filled(graph, type_.scale, dynamic), type_.modes)
    if type_ is None or type_.is_static:
        return type_
    return Expression(graph, type_, next(dynamic))


def indices_of(graph: Graph, tree: Any) -> Any:
    """The indices of the expressions of a tree, in its form; None for `*`."""
    if isinstance(tree, tuple):
        return tuple(indices_of(graph, part) for part in tree)
    if isinstance(tree, Basis):
        return indices_of(graph, tree.scale)
    if tree is None or isinstance(tree, Expression):
        return None if tree is None else tree.index
    return graph.const(tree.value)


def _slice(source: Any, coord: Any) -> Any:
    if isinstance(source, Viewed):
        raise ValueError("a slice of a tensor begins inside of it: take it in the kernel")
    return algebra.slice_(source, coord)


# Operations that are more than a function of the algebra in a kernel.
_OTHERS = {
    "slice": _slice,
    "elem_less": algebra.elem_less,
    "equal": algebra.equal,
}


def computed(name: str, operands: list[Any], attributes: Any) -> Any:
    """The result of `fly.name`, None if it is no operation of the algebra. ValueError if it can't
    be computed."""
    if name in COMPUTATIONS:
        return COMPUTATIONS[name](operands, attributes)
    return _OTHERS[name](*operands) if name in _OTHERS else None
