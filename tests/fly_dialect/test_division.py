"""Layouts divided by tiles and layouts, and products of layouts: the functions that they are."""

from fly_dialect import algebra
from fly_dialect.layouts.integers import Int
from fly_dialect.layouts.layout import Layout
from fly_dialect.layouts.tile import Tile
from hypothesis import assume, given
from hypothesis import strategies as st
from index_functions import offset, offsets, size

from .algebra_cases import pair_shapes, quick, tried
from .layouts_by_hand import (
    coordinates,
    divisors,
    extents,
    hidden,
    hidden_layout,
    layout,
    layouts,
    meant,
    meant_offsets,
    permuted,
)

larger_pairs = st.tuples(*(extents.filter(lambda extent: extent > 1),) * 2)


# -- divide ---------------------------------------------------------------------------------------
@quick
@given(permuted(gaps=True, shape=pair_shapes), st.data())
def test_dividing_by_a_tile_finds_each_element_of_each_tile(given_layout, data):
    (rows, columns), _ = given_layout
    high, wide = data.draw(divisors(rows)), data.draw(divisors(columns))
    arguments = layout(*given_layout), hidden_layout(data.draw, *given_layout)
    for argument in arguments:
        tile = Tile((high, wide))
        logical = meant(algebra.logical_divide(argument, tile))
        zipped = meant(algebra.zipped_divide(argument, tile))
        tiled = meant(algebra.tiled_divide(argument, tile))
        flat_ = meant(algebra.flat_divide(argument, tile))
        for i, j, p, q in coordinates((high, wide, rows // high, columns // wide)):
            expected = offset((i + high * p, j + wide * q), *given_layout)
            assert offset(((i, p), (j, q)), *logical) == expected
            assert offset(((i, j), (p, q)), *zipped) == expected
            assert offset(((i, j), p, q), *tiled) == expected
            assert offset((i, j, p, q), *flat_) == expected


@quick
@given(layouts, st.data())
def test_dividing_by_a_layout_composes_with_it_and_its_complement(given_layout, data):
    total = size(given_layout[0])
    divisor = data.draw(divisors(total))
    stride = data.draw(divisors(total // divisor))
    divided, refused = tried(algebra.logical_divide, layout(*given_layout), layout(divisor, stride))
    if refused:
        # A mode of the layout is left in the middle: see the test of composition.
        return
    shape, step = meant(divided)
    assert offsets(shape[0], step[0]) == [
        offset(index * stride, *given_layout) for index in range(divisor)
    ]
    # All elements, each once.
    assert sorted(offsets(shape, step)) == sorted(offsets(*given_layout))


def test_a_last_mode_of_size_1_does_not_hinder_a_divide():
    """It says where coordinates beyond the layout go, and what is there is no element."""
    for given_layout in (layout(3, 1), layout((3, 1), (1, 0)), layout(((3, 1), 1), ((1, 7), 0))):
        assert str(algebra.logical_divide(given_layout, layout(2, 1))) == "(2,2):(1,2)"
    # Where it is no hindrance it still says so.
    beyond = algebra.logical_divide(layout((4, 1), (1, 8)), layout(8, 1))
    assert str(beyond) == "((4,2),1):((1,8),0)"


@quick
@given(permuted(gaps=True), st.integers(1, 9), st.integers(0, 9))
def test_a_divide_with_a_last_mode_of_size_1(given_layout, divisor, step):
    shape, stride = given_layout
    plainly, refused = tried(algebra.logical_divide, layout(shape, stride), layout(divisor, 1))
    if refused:
        return
    divided = algebra.logical_divide(layout((shape, 1), (stride, step)), layout(divisor, 1))
    for found in (meant(plainly), meant(divided)):
        # In its last tile a divide may go beyond the layout.
        for index in range(size(shape)):
            tile, place = divmod(index, divisor)
            assert offset((place, tile), *found) == offset(index, shape, stride)


def test_a_divisor_with_gaps_loses_elements():
    """docs/layouts.md says so: nothing is there twice, not everything is there."""
    divided = algebra.logical_divide(layout(6, 1), layout((2, 2), (1, 3)))
    assert sorted(meant_offsets(divided)) == [0, 1, 3, 4]


def test_what_is_not_divided_is_one_tile():
    divided = algebra.zipped_divide(layout((8, 16), (1, 8)), Tile((4, None)))
    assert str(divided) == "((4,16),(2,1)):((1,8),(4,0))"
    beyond = algebra.zipped_divide(layout((8, 6, 5), (30, 5, 1)), Tile((4, 3)))
    assert str(beyond) == "((4,3),(2,2,5)):((30,5),(120,15,1))"


# -- product --------------------------------------------------------------------------------------
@quick
@given(permuted(gaps=True), permuted(gaps=True))
def test_a_product_repeats_the_block(block, tiler):
    assume(size(block[0]) * size(tiler[0]) <= 400)
    result, refused = tried(algebra.logical_product, layout(*block), layout(*tiler))
    if refused:
        # The tiler leaves a gap of the block in the middle.
        return
    product = meant(result)
    own = offsets(*block)
    starts = offsets(product[0][1], product[1][1])
    assert offsets(product[0][0], product[1][0]) == own
    # No two blocks overlap, and blocks lie in the tiler's order.
    sums = [a + b for b in starts for a in own]
    assert len(set(sums)) == len(sums)
    places = offsets(*tiler)
    by_start = sorted(range(len(starts)), key=starts.__getitem__)
    assert by_start == sorted(range(len(places)), key=places.__getitem__)


@quick
@given(permuted(shape=larger_pairs), permuted(shape=pair_shapes), st.data())
def test_blocks_beside_each_other_or_interleaved(block, tiler, data):
    (m, n), (p, q) = block[0], tiler[0]
    for argument in (layout(*block), Layout(hidden(data.draw, block[0]), block[1])):
        arguments = argument, layout(*tiler)
        blocked = meant(algebra.blocked_product(*arguments))
        raked = meant(algebra.raked_product(*arguments))
        flat_ = meant(algebra.flat_product(*arguments))
        tiled = meant(algebra.tiled_product(*arguments))
        for i, j, k, other in coordinates((m, n, p, q)):
            # A compact block: the next one begins where it ends.
            expected = offset((i, j), *block) + m * n * offset((k, other), *tiler)
            assert offset(((i, k), (j, other)), *blocked) == expected
            assert offset(((k, i), (other, j)), *raked) == expected
            assert offset((i, j, k, other), *flat_) == expected
            assert offset(((i, j), k, other), *tiled) == expected


@quick
@given(permuted(shape=pair_shapes), st.integers(1, 4), st.integers(1, 4), st.booleans())
def test_a_block_tiles_a_shape(block, down, right, rows_first):
    (m, n), _ = block
    order = (Int(1), Int(0)) if rows_first else (Int(0), Int(1))
    target = Int(m * down), Int(n * right)
    shape, stride = meant(algebra.tile_to_shape(layout(*block), target, order))
    assert [size(mode) for mode in shape] == [m * down, n * right]
    for i, j, k, other in coordinates((m, n, down, right)):
        place = k * right + other if rows_first else k + other * down
        expected = offset((i, j), *block) + m * n * place
        assert offset((i + m * k, j + n * other), shape, stride) == expected
