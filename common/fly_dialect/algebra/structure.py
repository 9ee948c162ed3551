"""The structure of integer tuples and layouts: their parts and rearrangements.

Functions of a tree also accept a layout, and apply to its shape and its stride. For a composed
layout, they apply to its linear layout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from fly_common.quoting import quoted

from fly_dialect.layouts.int_tuple import Tree, leaves, rank, text
from fly_dialect.layouts.integers import Basis, Int
from fly_dialect.layouts.layout import ComposedLayout, Layout

# A tree, a Layout or a ComposedLayout. The result is of the same kind.
Nested: TypeAlias = Any


def modes(tree: Tree) -> tuple[Tree, ...]:
    """The modes of a tree. A leaf is its own only mode."""
    return tree if isinstance(tree, tuple) else (tree,)


def flatten(tree: Tree) -> list[Tree]:
    """The leaves from left to right."""
    return list(leaves(tree))


def unwrap(tree: Tree) -> Tree:
    """Removes singleton tuples: ((42)) is 42."""
    while isinstance(tree, tuple) and len(tree) == 1:
        tree = tree[0]
    return tree


def scalar(tree: Tree) -> Any:
    """The integer inside singleton tuples."""
    part = unwrap(tree)
    if isinstance(part, tuple):
        raise ValueError(f"{text(tree)} is not a scalar")
    if part is None or isinstance(part, Basis):
        raise ValueError(f"{text(tree)} is not an integer")
    return part


def integers(tree: Tree) -> list[Any]:
    """The leaves, which must be integers."""
    found = flatten(tree)
    for leaf in found:
        if leaf is None or isinstance(leaf, Basis):
            raise ValueError(f"{text(tree)} contains {text(leaf)}, which is not an integer")
    return found


def transform(function: Callable[..., Tree], *trees: Tree) -> Tree:
    """Applies `function` to corresponding leaves of congruent trees."""
    if not any(isinstance(tree, tuple) for tree in trees):
        return function(*trees)
    if not all(isinstance(tree, tuple) for tree in trees) or len({len(t) for t in trees}) != 1:
        raise ValueError(f"{' and '.join(map(text, trees))} are not congruent")
    return tuple(transform(function, *parts) for parts in zip(*trees, strict=True))


def rearranged(nested: Nested, change: Callable[[Tree], Tree]) -> Nested:
    """Applies `change` to a tree, or to the shape and the stride of a layout."""
    if isinstance(nested, (Layout, ComposedLayout)):
        linear = nested.linear
        return nested.with_linear(Layout(change(linear.shape), change(linear.stride)))
    return change(nested)


def at(nested: Nested, path: tuple[int, ...]) -> Nested:
    """The part at `path`: at(((2,3),4), (0,1)) is 3."""

    def part(tree: Tree) -> Tree:
        found = tree
        for index in path:
            # A leaf is its own mode 0, as in FlyDSL.
            if not isinstance(index, int) or not 0 <= index < rank(found):
                raise ValueError(f"{text(tree)} has no mode {list(path)}")
            found = modes(found)[index]
        return found

    return rearranged(nested, part)


def take(nested: Nested, begin: int, end: int = -1) -> Nested:
    """The modes from `begin` up to `end` (-1: through the last). A single mode is not wrapped in a
    tuple."""

    # They may come from attributes of a module, of any type.
    if not isinstance(begin, int) or not isinstance(end, int):
        raise ValueError(f"modes {quoted(begin)} to {quoted(end)} are not integers")

    def part(tree: Tree) -> Tree:
        last = rank(tree) if end == -1 else end
        if not isinstance(tree, tuple) or not 0 <= begin < last <= len(tree):
            raise ValueError(f"{text(tree)} has no modes {begin} to {last}")
        return _tuple(tree[begin:last])

    return rearranged(nested, part)


def select(nested: Nested, indices: Sequence[int]) -> Nested:
    """The modes at `indices`, in that order. A single mode is not wrapped in a tuple."""

    def part(tree: Tree) -> Tree:
        if not isinstance(tree, tuple) or not indices:
            raise ValueError(f"{text(tree)} has no modes {list(indices)} to select")
        return _tuple(tuple(at(tree, (index,)) for index in indices))

    return rearranged(nested, part)


def group(nested: Nested, begin: int, end: int = -1) -> Nested:
    """Groups the modes from `begin` up to `end` (-1: through the last) into one mode. A leaf is
    unchanged."""

    def part(tree: Tree) -> Tree:
        if not isinstance(tree, tuple):
            return tree
        last = len(tree) if end == -1 else end
        if not 0 <= begin <= last <= len(tree):
            raise ValueError(f"{text(tree)} has no modes {begin} to {last} to group")
        if begin == last:
            return tree
        return (*tree[:begin], tree[begin:last], *tree[last:])

    return rearranged(nested, part)


def append(nested: Nested, element: Any, n: int | None = None) -> Nested:
    """Appends `element`, a layout if `nested` is one, once or until there are `n` modes."""
    return _extended(nested, element, n, lambda own, more: (*own, *more))


def prepend(nested: Nested, element: Any, n: int | None = None) -> Nested:
    """Prepends `element` once, or until there are `n` modes."""
    return _extended(nested, element, n, lambda own, more: (*more, *own))


def _extended(
    nested: Nested, element: Any, n: int | None, join: Callable[[tuple, tuple], tuple]
) -> Nested:
    def extend(tree: Tree, more: Tree) -> Tree:
        missing = 1 if n is None else n - rank(tree)
        if missing < 0:
            raise ValueError(f"{text(tree)} has more than {n} modes")
        return join(modes(tree), (more,) * missing)

    if isinstance(nested, (Layout, ComposedLayout)):
        if not isinstance(element, Layout):
            raise ValueError(f"{nested} can only be extended by a layout, not by {text(element)}")
        linear = nested.linear
        shape = extend(linear.shape, element.shape)
        return nested.with_linear(Layout(shape, extend(linear.stride, element.stride)))
    if isinstance(element, (Layout, ComposedLayout)):
        raise ValueError(f"{text(nested)} can only be extended by an int_tuple, not by {element}")
    return extend(nested, element)


def expand(tree: Tree, *indices: int) -> Tree:
    """Replaces the modes at `indices` by their own modes: expand(((1,2),(3,4)), 1) is
    ((1,2),3,4)."""
    if not isinstance(tree, tuple):
        return tree
    parts: list[Tree] = []
    for index, mode in enumerate(tree):
        parts += modes(mode) if index in indices else (mode,)
    return _tuple(tuple(parts))


def dice(nested: Nested, coord: Tree) -> Nested:
    """The modes where `coord` is not `*`."""
    if isinstance(nested, ComposedLayout):
        raise ValueError(f"{nested} can't be diced: it is composed")
    return rearranged(nested, lambda tree: _kept(tree, coord, free=False))


def kept_by_slice(layout: Layout, coord: Tree) -> Layout:
    """The modes where `coord` is `*`."""
    return rearranged(layout, lambda tree: _kept(tree, coord, free=True))


def slice_tuple(tree: Tree, coord: Tree) -> Tree:
    """The modes where `coord` is `*`."""
    return _kept(tree, coord, free=True)


def _kept(tree: Tree, coord: Tree, *, free: bool) -> Tree:
    found: list[Tree] = []

    def visit(part: Tree, at: Tree) -> None:
        if not isinstance(at, tuple):
            if (at is None) == free:
                found.append(part)
            return
        if len(at) != rank(part):
            raise ValueError(f"coordinate {text(coord)} does not fit in {text(tree)}")
        for inner in zip(modes(part), at, strict=True):
            visit(*inner)

    visit(tree, coord)
    if not found:
        raise ValueError(f"{text(coord)} keeps nothing of {text(tree)}")
    return tree if not isinstance(coord, tuple) else unwrap(tuple(found))


def zeros_for_free(coord: Tree) -> Tree:
    """The coordinate with 0 for each `*`: the first element of a slice."""
    if isinstance(coord, tuple):
        return tuple(map(zeros_for_free, coord))
    return Int(0) if coord is None else coord


def _tuple(parts: tuple[Tree, ...]) -> Tree:
    return parts[0] if len(parts) == 1 else parts
