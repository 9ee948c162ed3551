"""Arithmetic on integer tuples."""

from __future__ import annotations

from functools import reduce
from typing import Any

from fly_dialect.algebra import leaf
from fly_dialect.algebra.structure import integers, modes, transform
from fly_dialect.layouts.int_tuple import Tree, congruent, rank, text
from fly_dialect.layouts.integers import Basis, Int


def add(lhs: Tree, rhs: Tree) -> Tree:
    """The sum, leaf by leaf. Bases are coordinates: 2E0 + 3E1 is (2,3). The shorter tuple is padded
    with zeros, and an integer 0 is the coordinate of zeros."""
    if isinstance(lhs, tuple) and isinstance(rhs, tuple):
        common = min(len(lhs), len(rhs))
        return (*map(add, lhs[:common], rhs[:common]), *lhs[common:], *rhs[common:])
    if not isinstance(lhs, (tuple, Basis)) and not isinstance(rhs, (tuple, Basis)):
        return leaf.plus(lhs, rhs)
    if leaf.is_zero(lhs):
        return rhs
    if leaf.is_zero(rhs):
        return lhs
    for side in (lhs, rhs):
        if not isinstance(side, (tuple, Basis)):
            raise ValueError(f"{text(lhs)} and {text(rhs)} are not congruent")
    return add(*(coordinate(side) if isinstance(side, Basis) else side for side in (lhs, rhs)))


def coordinate(basis: Basis) -> Tree:
    """The basis as a coordinate: 5E1E0 is (0,(5))."""
    found = basis.scale
    for mode in reversed(basis.modes):
        found = (*(Int(0) for _ in range(mode)), found)
    return found


def total(tree: Tree) -> Tree:
    """The sum of all leaves."""
    return tree if not isinstance(tree, tuple) else reduce(add, map(total, tree))


def inner_product(lhs: Tree, rhs: Tree) -> Tree:
    """The sum of the products of corresponding leaves."""
    if not isinstance(lhs, tuple) and not isinstance(rhs, tuple):
        return leaf.multiply(lhs, rhs)
    return reduce(add, map(inner_product, modes(lhs), modes(rhs)))


def product(tree: Tree) -> Any:
    """The product of all leaves."""
    return reduce(leaf.multiply, integers(tree))


def product_each(tree: Tree) -> Tree:
    """The product of each mode: ((2,3),(4,5)) gives (6,20)."""
    return tuple(product(part) for part in tree) if isinstance(tree, tuple) else tree


def product_like(tree: Tree, guide: Tree) -> Tree:
    """The product of each part of `tree` that corresponds to a leaf of `guide`."""
    if not isinstance(guide, tuple):
        return product(tree)
    if rank(tree) != len(guide):
        raise ValueError(f"{text(tree)} does not have the modes of {text(guide)}")
    return tuple(map(product_like, modes(tree), guide))


_ELEMENTWISE = {
    "int_tuple_sub": leaf.subtract,
    "int_tuple_mul": leaf.multiply,
    "int_tuple_div": leaf.divide,
    "int_tuple_mod": leaf.remainder,
}


def elementwise(name: str, lhs: Tree, rhs: Tree) -> Tree:
    """Computes int_tuple_add, int_tuple_sub, int_tuple_mul, int_tuple_div or int_tuple_mod. All
    except the sum (see `add`) require congruent tuples."""
    if name == "int_tuple_add":
        return add(lhs, rhs)
    return transform(_ELEMENTWISE[name], lhs, rhs)


def ceil_div(lhs: Tree, rhs: Tree) -> Tree:
    """lhs / rhs, rounded up. A tuple divided by an integer: the first mode is divided by as much of
    it as possible, the next by the rest. An integer divided by a tuple is divided by its
    product."""
    return _fold(leaf.ceil_divide, lhs, rhs, (lhs, rhs))


def shape_div(lhs: Tree, rhs: Tree) -> Tree:
    """`ceil_div`, but in each step one number must divide the other: (6,4) by 12 is (1,2)."""
    return _fold(leaf.shape_divide, lhs, rhs, (lhs, rhs))


def _fold(divide: Any, lhs: Tree, rhs: Tree, whole: tuple[Tree, Tree]) -> Tree:
    if not isinstance(lhs, tuple):
        return divide(lhs, product(rhs))
    if not isinstance(rhs, tuple):
        return _consume(divide, lhs, rhs)[0]
    if len(rhs) > len(lhs):
        raise ValueError(
            f"{text(whole[0])} does not have the modes of its divisor {text(whole[1])}"
        )
    parts = (_fold(divide, a, b, whole) for a, b in zip(lhs, rhs, strict=False))
    return (*parts, *lhs[len(rhs) :])


def _consume(divide: Any, lhs: Tree, rhs: Any) -> tuple[Tree, Any]:
    """The quotient, and the remaining part of the divisor."""
    if not isinstance(lhs, tuple):
        return divide(lhs, rhs), divide(rhs, lhs)
    parts = []
    for mode in lhs:
        part, rhs = _consume(divide, mode, rhs)
        parts.append(part)
    return tuple(parts), rhs


# -- comparison: the result is an integer, 1 or 0 -------------------------------------------------
def elem_less(lhs: Tree, rhs: Tree) -> Any:
    """Whether each leaf is less than its counterpart, that is whether a coordinate is inside a
    shape. False for a tuple with more modes than the other."""
    if not isinstance(lhs, tuple) and not isinstance(rhs, tuple):
        return leaf.less(lhs, rhs)
    if rank(lhs) > rank(rhs):
        return Int(0)
    if not isinstance(lhs, tuple) and rank(rhs) > 1:
        raise ValueError(f"{text(lhs)} can't be compared with {text(rhs)}")
    return reduce(leaf.both, map(elem_less, modes(lhs), modes(rhs)))


def equal(lhs: Tree, rhs: Tree) -> Any:
    """Whether both are congruent and have equal leaves."""
    if not congruent(lhs, rhs):
        return Int(0)
    if not isinstance(lhs, tuple):
        return leaf.equals(lhs, rhs)
    return reduce(leaf.both, map(equal, lhs, rhs))
