"""Arithmetic on leaves: integers of either kind (`Int` and a pass's), and basis strides.

Either operand may be an `Int` when the other is a pass's leaf, so the algebra writes its constants
as Int. Invalid arguments raise a ValueError that shows them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from fly_dialect.layouts.int_tuple import Tree, static_value, text
from fly_dialect.layouts.integers import Basis, Int, Integer

Leaf: TypeAlias = Integer | Basis | None


def known(leaf: Leaf) -> Int:
    """The type of an integer leaf."""
    return integer(leaf).type


def integer(leaf: Leaf) -> Integer:
    """The leaf, which must be an integer."""
    if leaf is None or isinstance(leaf, (Basis, tuple)):
        raise ValueError(f"{text(leaf)} is not an integer")
    return leaf


def alike(lhs: Leaf, rhs: Leaf) -> tuple[Integer, Integer]:
    """Both integers. An Int is converted to a leaf of the pass if the other operand is one."""
    if isinstance(lhs, Int) and isinstance(rhs, Int):
        return lhs, rhs
    lhs, rhs = integer(lhs), integer(rhs)
    if isinstance(lhs, Int):
        return (lhs if isinstance(rhs, Int) else rhs.constant(lhs)), rhs
    return lhs, (lhs.constant(rhs) if isinstance(rhs, Int) else rhs)


def _on_integers(compute: Callable[[Integer, Integer], Integer]) -> Callable[[Leaf, Leaf], Integer]:
    return lambda lhs, rhs: compute(*alike(lhs, rhs))


plus = _on_integers(lambda lhs, rhs: lhs + rhs)
subtract = _on_integers(lambda lhs, rhs: lhs - rhs)
divide = _on_integers(lambda lhs, rhs: lhs // rhs)
remainder = _on_integers(lambda lhs, rhs: lhs % rhs)
minimum = _on_integers(lambda lhs, rhs: lhs.minimum(rhs))
less = _on_integers(lambda lhs, rhs: lhs.less(rhs))
both = _on_integers(lambda lhs, rhs: lhs.both(rhs))


def multiply(lhs: Leaf, rhs: Leaf) -> Leaf:
    """The product of two integers, or of an integer and a basis."""
    if isinstance(lhs, Basis):
        return Basis(multiply(lhs.scale, rhs), lhs.modes)
    if isinstance(rhs, Basis):
        return Basis(multiply(lhs, rhs.scale), rhs.modes)
    lhs, rhs = alike(lhs, rhs)
    return lhs * rhs


def ceil_divide(lhs: Leaf, rhs: Leaf) -> Leaf:
    """lhs / rhs, rounded up. For a basis, the basis with the quotient as its scale."""
    if isinstance(lhs, Basis):
        return Basis(ceil_divide(lhs.scale, rhs), lhs.modes)
    lhs, rhs = alike(lhs, rhs)
    return lhs.ceildiv(rhs)


def exact_divide(lhs: Leaf, rhs: int) -> Leaf:
    """lhs / rhs without a remainder, as far as is known. For a basis, divides its scale."""
    if isinstance(lhs, Basis):
        return Basis(exact_divide(lhs.scale, rhs), lhs.modes)
    if known(lhs).factor % rhs:
        raise ValueError(f"{text(lhs)} is not divisible by {rhs}")
    return divide(lhs, Int(rhs))


def shape_divide(lhs: Leaf, rhs: Leaf) -> Leaf:
    """lhs / rhs, rounded up; one must divide the other."""
    dividend, divisor = known(lhs).value, known(rhs).value
    if divisor == 0:
        raise ValueError(f"{text(lhs)} is divided by 0")
    if dividend is not None and divisor is not None and not _divides(dividend, divisor):
        raise ValueError(f"neither of {dividend} and {divisor} divides the other")
    return ceil_divide(lhs, rhs)


def _divides(lhs: int, rhs: int) -> bool:
    return lhs % rhs == 0 or (lhs != 0 and rhs % lhs == 0)


def equals(lhs: Leaf, rhs: Leaf) -> Integer:
    """Returns 1 or 0, an integer. Two bases are equal if modes and scales are; an integer and a
    basis are never equal."""
    if isinstance(lhs, Basis) and isinstance(rhs, Basis) and lhs.modes == rhs.modes:
        return equals(lhs.scale, rhs.scale)
    if lhs is None or rhs is None:
        return Int(int(lhs is rhs))
    if isinstance(lhs, Basis) or isinstance(rhs, Basis):
        return Int(0)
    lhs, rhs = alike(lhs, rhs)
    return lhs.equals(rhs)


def is_zero(leaf: Tree) -> bool:
    """Whether a leaf is known to be the integer 0."""
    return static_value(leaf) == 0


def is_one(leaf: Leaf) -> bool:
    """Whether a leaf is known to be the integer 1."""
    return static_value(leaf) == 1
