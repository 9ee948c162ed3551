"""The layout algebra: functions from coordinates to offsets, over constants and over SSA values.

Every function takes leaves that know `+ - * // %`, `ceildiv`, `widened` and `type` of their value.
`layout.Int` is such a leaf, and what it computes is the *type* of the result; a pass gives leaves
that carry an SSA value, and the same function then builds the code. So the type that a verifier
recomputes and the code that a pass builds cannot disagree.

A bad argument is a ValueError that shows the shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, TypeAlias

from fly_dialect.layout import INT32_MAX, Basis, Int

# A tree of leaves: layout.IntTuple, or a tuple of a pass's own leaves.
Tree: TypeAlias = Any


def show(tree: Tree) -> str:
    """A tree in FlyDSL's text."""
    if isinstance(tree, tuple):
        return f"({','.join(map(show, tree))})"
    return "*" if tree is None else str(tree)


def transform(function: Callable[..., Tree], *trees: Tree) -> Tree:
    """Applies `function` to corresponding leaves of congruent trees."""
    if not any(isinstance(tree, tuple) for tree in trees):
        return function(*trees)
    if not all(isinstance(tree, tuple) for tree in trees) or len({len(t) for t in trees}) != 1:
        raise ValueError(f"{' and '.join(map(show, trees))} are not congruent")
    return tuple(transform(function, *parts) for parts in zip(*trees, strict=True))


def at(tree: Tree, path: tuple[int, ...]) -> Tree:
    """The part of `tree` at `path`: at(((2,3),4), (0,1)) is 3."""
    part = tree
    for index in path:
        if not isinstance(part, tuple):
            # A leaf is its own mode 0, as in FlyDSL.
            part = (part,)
        if not 0 <= index < len(part):
            raise ValueError(f"{show(tree)} has no mode {list(path)}")
        part = part[index]
    return part


def scalar(tree: Tree) -> Tree:
    """The leaf inside singleton tuples: ((42)) is 42."""
    part = tree
    while isinstance(part, tuple):
        if len(part) != 1:
            raise ValueError(f"{show(tree)} is not a scalar")
        part = part[0]
    if part is None or isinstance(part, Basis):
        raise ValueError(f"{show(tree)} is not an integer")
    return part


def flatten(tree: Tree) -> list[Tree]:
    if isinstance(tree, tuple):
        return [leaf for part in tree for leaf in flatten(part)]
    return [tree]


def integers(tree: Tree) -> list[Tree]:
    """The leaves, which must be integers."""
    found = flatten(tree)
    for leaf in found:
        if leaf is None or isinstance(leaf, Basis):
            raise ValueError(f"{show(tree)} holds {show(leaf)}, which is not an integer")
    return found


def product(tree: Tree) -> Tree:
    """The product of all leaves."""
    return reduce(lambda lhs, rhs: lhs * rhs, integers(tree))


def product_each(tree: Tree) -> Tree:
    """The product of each mode: ((2,3),(4,5)) gives (6,20)."""
    return tuple(product(part) for part in tree) if isinstance(tree, tuple) else tree


def cosize(shape: Tree, stride: Tree) -> Tree:
    """One more than the greatest offset: the sum of (extent − 1)·stride, plus one."""
    total: Tree = None
    for extent, step in zip(integers(shape), integers(stride), strict=True):
        term = (extent - Int(1)) * step
        total = term if total is None else total + term
    return total + Int(1)


# -- coordinates → offset -------------------------------------------------------------------------
def crd2idx(coord: Tree, shape: Tree, stride: Tree) -> Tree:
    """The offset of `coord`: the sum of coordinate times stride.

    A leaf coordinate against a tuple shape counts through it with the first mode fastest, FlyDSL's
    (and CuTe's) order. The last mode takes what is left, so a coordinate beyond the shape goes on.

    The offset is computed in 64 bits where 32 may not hold it: if a stride or, for strides other
    than 1, an extent is a 64-bit one, or if the static shape spans more than 2³¹ − 1 elements.
    (FlyDSL computes in the widest operand and overflows silently.) A 32-bit dynamic extent or
    stride is the program's word that offsets fit.
    """
    terms: list[tuple[Tree, Tree]] = []
    _pair(coord, shape, stride, terms, (coord, shape))
    wide = _spans_more_than_32_bits(shape, stride)
    total: Tree = None
    for place, step in terms:
        if wide:
            place = place.widened()
        term = place * step
        total = term if total is None else total + term
    return total


def _pair(coord: Tree, shape: Tree, stride: Tree, terms: list, whole: tuple[Tree, Tree]) -> None:
    """Appends (coordinate leaf, stride leaf) for each leaf of the shape."""
    if isinstance(coord, tuple):
        if not isinstance(shape, tuple) or len(coord) != len(shape):
            raise ValueError(f"coordinate {show(whole[0])} does not fit shape {show(whole[1])}")
        for part in zip(coord, shape, stride, strict=True):
            _pair(*part, terms, whole)
    elif coord is None or isinstance(coord, Basis):
        raise ValueError(f"coordinate {show(whole[0])} holds {show(coord)}")
    elif isinstance(shape, tuple):
        _count(coord, shape, stride, terms)
    elif isinstance(stride, Basis):
        raise ValueError(f"stride {show(stride)} is a basis: its offset is not one integer")
    else:
        terms.append((coord, stride))


def _count(coord: Tree, shape: tuple, stride: tuple, terms: list) -> None:
    """Splits a flat coordinate over the modes of `shape`, the first fastest."""
    left = coord
    for index, (extent, step) in enumerate(zip(shape, stride, strict=True)):
        if index == len(shape) - 1:
            here = left
        else:
            size = product(extent)
            here, left = left % size, left // size
        if isinstance(extent, tuple):
            _count(here, extent, step, terms)
        else:
            terms.append((here, step))


def known(leaf: Tree) -> Int:
    """What is known of an integer leaf: itself, or the `type` of a pass's leaf."""
    return leaf if isinstance(leaf, Int) else leaf.type


def _spans_more_than_32_bits(shape: Tree, stride: Tree) -> bool:
    span = 0
    for extent_leaf, step_leaf in zip(integers(shape), flatten(stride), strict=True):
        if isinstance(step_leaf, Basis):
            continue
        extent, step = known(extent_leaf), known(step_leaf)
        if step.value is not None and extent.value is not None:
            span += max(0, extent.value - 1) * abs(step.value)
        elif step.value == 1 and extent.width == 64:
            # The coordinate itself has been computed in its own width: nothing more can be lost.
            span += INT32_MAX
        elif max(extent.width, step.width) == 64:
            return True
    return span > INT32_MAX


def idx2crd(index: Tree, shape: Tree, stride: Tree) -> Tree:
    """The coordinate whose offset is `index`: (index // stride) % extent, leaf by leaf."""
    if isinstance(index, tuple):
        if not isinstance(shape, tuple) or len(index) != len(shape):
            raise ValueError(f"index {show(index)} does not fit shape {show(shape)}")
        return tuple(map(idx2crd, index, shape, stride))
    return transform(lambda extent, step: (index // step) % extent, shape, stride)


def flat_index(coord: Tree, shape: Tree) -> Tree:
    """The number of a coordinate, counted with the first mode fastest; a leaf is its own."""
    if not isinstance(coord, tuple):
        return coord
    if not isinstance(shape, tuple) or len(coord) != len(shape):
        raise ValueError(f"coordinate {show(coord)} does not fit shape {show(shape)}")
    total = flat_index(coord[-1], shape[-1])
    for part, extent in zip(reversed(coord[:-1]), reversed(shape[:-1]), strict=True):
        total = flat_index(part, extent) + product(extent) * total
    return total


def get_1d_coord(index: Tree, shape: Tree, stride: Tree) -> Tree:
    """The number of the coordinate whose offset is `index`."""
    return flat_index(idx2crd(index, shape, stride), shape)


def get_flat_coord(index: Tree, shape: Tree, stride: Tree) -> Tree:
    """The coordinate whose offset is `index`, one number a mode."""
    coord = idx2crd(index, shape, stride)
    return tuple(map(flat_index, coord, shape)) if isinstance(shape, tuple) else coord
