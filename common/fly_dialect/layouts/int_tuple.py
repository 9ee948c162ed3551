"""Integer tuples: trees of leaves.

A tree is a leaf or a Python tuple of trees. A leaf is an integer (`integers.Integer`: an `Int` or a
pass's leaf), a `Basis`, or None, which is printed `*` and means no value (a slice's free mode).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from fly_common.quoting import quoted

from fly_dialect.layouts.integers import Basis, Int

# The tree of a type. Its leaves are Int, Basis and None.
IntTuple: TypeAlias = "Int | Basis | tuple[IntTuple, ...] | None"
# A tree whose leaves may also be a pass's (`integers.Integer`). Any: no type says that two trees
# are congruent, so that one is a tuple where the other is.
Tree: TypeAlias = Any


def int_tuple(value: object) -> Tree:
    """Converts `value` to an integer tuple: Python integers to static leaves, lists to tuples."""
    if value is None or isinstance(value, (Int, Basis)):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return Int(value)
    if isinstance(value, (tuple, list)):
        if not value:
            raise ValueError("an integer tuple must have at least one element")
        return tuple(int_tuple(element) for element in value)
    if isinstance(getattr(value, "type", None), Int):
        return value  # a pass's leaf
    raise TypeError(f"{quoted(value)} is not an integer tuple")


def is_tree(value: object) -> bool:
    """Whether `value` is an integer tuple."""
    if value is None or isinstance(value, (tuple, Basis)):
        return True
    return isinstance(getattr(value, "type", None), Int)


def rank(value: Tree) -> int:
    return len(value) if isinstance(value, tuple) else 1


def leaves(value: Tree) -> Iterator[Tree]:
    """The leaves from left to right."""
    if not isinstance(value, tuple):
        return iter((value,))
    found: list[Tree] = []
    _collect(value, found)
    return iter(found)


def _collect(value: tuple[Tree, ...], found: list[Tree]) -> None:
    for element in value:
        if isinstance(element, tuple):
            _collect(element, found)
        else:
            found.append(element)


def dynamic_leaves(value: Tree) -> list[Tree]:
    """The dynamic integers from left to right, including scales of bases: what a value of this type
    carries at run time."""
    found = []
    for leaf in leaves(value):
        number = leaf.scale if isinstance(leaf, Basis) else leaf
        if number is not None and not number.type.is_static:
            found.append(number)
    return found


def is_static(value: Tree) -> bool:
    return not dynamic_leaves(value)


def static_value(leaf: Tree) -> int | None:
    """The value of a static leaf; None for any other leaf or tuple."""
    if isinstance(leaf, Int):
        return leaf.value
    if leaf is None or isinstance(leaf, (Basis, tuple)):
        return None
    return leaf.type.value


def congruent(lhs: Tree, rhs: Tree) -> bool:
    """Whether both have the same tree structure."""
    if not isinstance(lhs, tuple) or not isinstance(rhs, tuple):
        return not isinstance(lhs, tuple) and not isinstance(rhs, tuple)
    return len(lhs) == len(rhs) and all(map(congruent, lhs, rhs))


def are_layout(shape: object, stride: object) -> bool:
    """Whether both are integer tuples as returned by `int_tuple`, and congruent."""
    if isinstance(shape, tuple) and isinstance(stride, tuple):
        return len(shape) == len(stride) > 0 and all(map(are_layout, shape, stride))
    return _is_leaf(shape) and _is_leaf(stride)


def _is_leaf(value: object) -> bool:
    if isinstance(value, Int) or value is None or isinstance(value, Basis):
        return True
    return isinstance(getattr(value, "type", None), Int)


def type_of(value: Tree) -> IntTuple:
    """The type of a tree: the same tree with the type of each leaf."""
    if isinstance(value, tuple):
        return tuple(map(type_of, value))
    if isinstance(value, Basis):
        return Basis(value.scale.type, value.modes)
    return None if value is None else value.type


def text(value: Tree) -> str:
    """The tuple as FlyDSL prints it, without white space: `(4,(2,?{i64}))`."""
    if isinstance(value, tuple):
        return f"({','.join(map(text, value))})"
    return "*" if value is None else str(value)
