"""Arguments of the algebra that do not fit, and sizes that are too large, are errors."""

import pytest
from fly_dialect import algebra
from fly_dialect.layouts.integers import Basis, Int
from fly_dialect.layouts.layout import Layout
from fly_dialect.layouts.tile import Tile
from hypothesis import given, settings
from hypothesis import strategies as st

from .algebra_cases import quick, tried
from .layouts_by_hand import (
    compact,
    layout,
)


# -- what is no argument --------------------------------------------------------------------------
def anything():
    """Trees of leaves that may not belong together: zeros, negatives, bases, `*`, unknowns."""
    numbers = st.sampled_from([-3, -1, 0, 0, 1, 2, 3, 4, 6, 7, 8, 2**40]).map(Int)
    unknown = st.sampled_from([Int(None), Int(None, 64, 4)])
    bases = st.builds(Basis, numbers | unknown, st.sampled_from([(0,), (1,), (0, 1), (2,)]))
    leaf = st.one_of(numbers, numbers, unknown, bases, st.none())
    return st.recursive(
        leaf, lambda part: st.lists(part, min_size=1, max_size=3).map(tuple), max_leaves=4
    )


@st.composite
def any_layouts(draw):
    shape = draw(anything())

    def steps(part):
        return tuple(map(steps, part)) if isinstance(part, tuple) else draw(leaf_of_anything)

    leaf_of_anything = anything().filter(lambda tree: not isinstance(tree, tuple))
    return Layout(shape, steps(shape))


BINARY = (
    algebra.composition,
    algebra.logical_divide,
    algebra.zipped_divide,
    algebra.flat_divide,
    algebra.logical_product,
    algebra.blocked_product,
    algebra.raked_product,
)


UNARY = (
    algebra.coalesce,
    algebra.complement,
    algebra.right_inverse,
    algebra.left_inverse,
    algebra.size,
    algebra.cosize,
    algebra.coprofile,
    algebra.make_layout_like,
    algebra.make_fragment_layout_like,
)


WITH_TREE = (
    algebra.coalesce,
    algebra.complement,
    algebra.slice_,
    algebra.dice,
    lambda one, tree: algebra.crd2idx(tree, one),
    lambda one, tree: algebra.idx2crd(tree, one),
    lambda one, tree: algebra.get_flat_coord(tree, one),
    lambda one, tree: algebra.make_ordered_layout(one.shape, tree),
    lambda one, tree: algebra.tile_to_shape(one, tree, tree),
    lambda one, tree: algebra.ceil_div(one.shape, tree),
    lambda one, tree: algebra.shape_div(one.shape, tree),
    lambda one, tree: algebra.elem_less(one.shape, tree),
    lambda one, tree: algebra.equal(one.shape, tree),
    lambda one, tree: algebra.product_like(one.shape, tree),
    lambda one, tree: algebra.local_tile(one, Tile((2, 2)), tree),
    lambda one, tree: algebra.recast_layout(one, 8, 24),
)


@settings(quick, max_examples=60)
@given(any_layouts(), any_layouts(), anything())
def test_bad_arguments_are_value_errors(one, other, tree):
    for function, arguments in (
        *((function, (one,)) for function in UNARY),
        *((function, (one, other)) for function in BINARY),
        *((function, (one, tree)) for function in WITH_TREE),
    ):
        result, refused = tried(function, *arguments)
        assert result is not None or refused


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: algebra.composition(layout((4, 6), (1, 10)), layout(3, 3)),
            r"\(4,6\):\(1,10\) can't be composed with 3:3",
        ),
        (
            lambda: algebra.composition(layout(4, 1), Tile((2, 2))),
            r"4:1 does not have the modes of the tile \[2\|2\]",
        ),
        (
            lambda: algebra.complement(layout((3, 2), (1, 2)), Int(12)),
            r"\(3,2\):\(1,2\) has no complement: it maps two coordinates to one offset",
        ),
        (
            lambda: algebra.left_inverse(layout((2, 2), (2, 3))),
            r"\(2,2\):\(2,3\) has no left inverse: offsets of its modes overlap",
        ),
        (
            lambda: algebra.zipped_divide(layout(8, 1), Tile((2, 2))),
            r"8:1 does not have the modes of the tile \[2\|2\]",
        ),
        (
            lambda: algebra.coalesce(layout((2, 2), (1, 2)), (Int(1),) * 3),
            r"\(2,2\):\(1,2\) does not have the modes of the pattern \(1,1,1\)",
        ),
        (
            lambda: algebra.recast_layout(layout((4, 3), (1, 6)), 8, 32),
            r"\(4,3\):\(1,6\) in 32 instead of 8 bits: neither of the stride 6 and 4 divides",
        ),
        (
            lambda: algebra.make_ordered_layout((Int(4), Int(8)), (Int(0), Int(0))),
            r"order \(0,0\) gives two modes of \(4,8\) the same position",
        ),
        (
            lambda: algebra.shape_div(Int(6), Int(4)),
            "neither of 6 and 4 divides the other",
        ),
        (
            lambda: algebra.slice_((Int(4), Int(8)), (Int(1), Int(2))),
            r"\(1,2\) keeps nothing of \(4,8\)",
        ),
        (
            lambda: algebra.take((Int(4), Int(8)), 1, 3),
            r"\(4,8\) has no modes 1 to 3",
        ),
        (
            lambda: algebra.idx2crd(Int(3), layout((4, 2), (0, 1))),
            r"\(4,2\):\(0,1\) maps several coordinates to one offset",
        ),
    ],
)
def test_a_bad_argument_shows_what_does_not_fit(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_large_sizes_do_not_overflow():
    wide = layout((2**20, 2**20), (1, 2**20))
    assert algebra.size(wide) == Int(2**40)
    assert algebra.coalesce(wide) == layout(2**40, 1)
    assert algebra.complement(wide, Int(2**50)) == layout(2**10, 2**40)
    assert algebra.composition(wide, layout(4, 2**30)) == layout(4, 2**30)
    assert algebra.logical_product(wide, layout(4, 1)).linear.stride[1] == Int(2**40)
    unseen = Layout((Int(None), Int(None)), (Int(2**33), 1))
    assert algebra.cosize(unseen).width == 64
    assert compact((4, 8)) == (1, 4)
