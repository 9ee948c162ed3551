"""The layout algebra against counting: each operation on layouts of nested Python integers, whose
meaning `layouts_by_hand` writes out, with leaves that are known and leaves that are not."""

from math import prod

import pytest
from fly_dialect import algebra
from fly_dialect.layouts.integers import Basis, Int
from fly_dialect.layouts.layout import ComposedLayout, Layout
from fly_dialect.layouts.swizzle import Swizzle
from fly_dialect.layouts.tile import Tile
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from index_functions import flat, offset, offsets, size

from .layouts_by_hand import (
    compact,
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
    plain,
    shapes,
    walks,
)

quick = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
pair_shapes = st.tuples(extents, extents)
larger_pairs = st.tuples(*(extents.filter(lambda extent: extent > 1),) * 2)


def tried(function, *arguments):
    """The result, and the text of a ValueError."""
    try:
        return function(*arguments), ""
    except ValueError as error:
        return None, str(error)


def modes(tree):
    return tree if isinstance(tree, tuple) else (tree,)


# -- coalesce -------------------------------------------------------------------------------------
@quick
@given(layouts, st.data())
def test_coalescing_keeps_the_function(given_layout, data):
    expected = offsets(*given_layout)
    found = meant(algebra.coalesce(layout(*given_layout)))
    assert offsets(*found) == expected
    # Nothing is left to merge.
    extents_, steps = map(flat, found)
    assert extents_ == [1] or 1 not in extents_
    for index in range(len(extents_) - 1):
        assert extents_[index] * steps[index] != steps[index + 1]
    unseen = algebra.coalesce(hidden_layout(data.draw, *given_layout))
    assert meant_offsets(unseen) == expected


@quick
@given(layouts, st.data())
def test_coalescing_by_a_pattern_keeps_the_function_of_each_mode(given_layout, data):
    shape, stride = given_layout
    assume(isinstance(shape, tuple))
    count = data.draw(st.integers(1, len(shape)))
    found = algebra.coalesce(layout(shape, stride), (Int(1),) * count)
    for index, (extent, step) in enumerate(zip(shape, stride, strict=True)):
        part = found.linear.shape[index], found.linear.stride[index]
        assert offsets(*map(plain, part)) == offsets(extent, step)
        if index >= count:
            assert plain(part[0]) == extent


# -- composition ----------------------------------------------------------------------------------
def check_composition(result, outer, inner):
    assert meant_offsets(result) == [offset(index, *outer) for index in offsets(*inner)]


@quick
@given(layouts, st.data())
def test_a_composition_is_the_function_of_the_function(outer, data):
    inner = data.draw(walks(outer[0]))
    check_composition(algebra.composition(layout(*outer), layout(*inner)), outer, inner)
    unseen = [hidden_layout(data.draw, *side) for side in (outer, inner)]
    check_composition(algebra.composition(*unseen), outer, inner)


@settings(quick, max_examples=250)
@given(layouts, layouts)
def test_a_composition_that_is_no_layout_is_refused(outer, inner):
    result, refused = tried(algebra.composition, layout(*outer), layout(*inner))
    if refused:
        assert refused.startswith(f"{layout(*outer)} can't be composed with {layout(*inner)}: ")
        return
    check_composition(result, outer, inner)
    # The result has the modes of the inner layout, each perhaps split.
    sizes = [size(mode) for mode in modes(meant(result)[0])]
    expected = [size(mode) for mode in modes(inner[0])]
    assert prod(sizes) == prod(expected)


@quick
@given(permuted(shape=pair_shapes), st.data())
def test_a_tile_composes_mode_by_mode(outer, data):
    (rows, columns), _ = outer
    tile = data.draw(divisors(rows)), data.draw(divisors(columns))
    result = algebra.composition(layout(*outer), Tile(tile))
    found = meant(result)
    for row in range(tile[0]):
        for column in range(tile[1]):
            assert offset((row, column), *found) == offset((row, column), *outer)
    kept = meant(algebra.composition(layout(*outer), Tile((tile[0], None))))
    assert offsets(*kept) == [
        offset((row, column), *outer) for column in range(columns) for row in range(tile[0])
    ]


@quick
@given(layouts)
def test_the_identity_composes_to_the_layout(given_layout):
    shape, stride = given_layout
    identity = algebra.make_identity_layout(Layout(shape, stride).shape)
    assert meant_offsets(algebra.composition(layout(shape, stride), identity)) == offsets(
        shape, stride
    )


# -- complement -----------------------------------------------------------------------------------
@quick
@given(st.lists(st.tuples(extents, st.booleans()), min_size=1, max_size=4), st.data())
def test_a_layout_and_its_complement_count_every_offset_once(factors, data):
    """Modes of a compact layout, some taken: the complement is the rest."""
    step, taken, total = 1, [], prod(extent for extent, _ in factors)
    for extent, wanted in factors:
        if wanted:
            taken.append((extent, step))
        step *= extent
    assume(taken)
    taken = data.draw(st.permutations(taken))
    given_layout = tuple(e for e, _ in taken), tuple(s for _, s in taken)
    rest = meant_offsets(algebra.complement(layout(*given_layout), Int(total)))
    sums = sorted(a + b for a in offsets(*given_layout) for b in rest)
    assert sums == list(range(total))
    assert rest == sorted(rest)


@quick
@given(permuted(gaps=True), st.integers(1, 300), st.data())
def test_a_complement_is_disjoint_and_reaches_the_end(given_layout, end, data):
    shape, stride = given_layout
    # Dynamic extents; a stride may be dynamic only where it is the only one.
    for argument in (layout(shape, stride), Layout(hidden(data.draw, shape), stride)):
        rest = meant_offsets(algebra.complement(argument, Int(end)))
        sums = [a + b for a in offsets(shape, stride) for b in rest]
        assert len(set(sums)) == len(sums)
        assert max(sums) + 1 >= end


@quick
@given(extents.filter(lambda extent: extent > 1), st.integers(1, 9), st.integers(1, 99), st.data())
def test_a_complement_of_one_dynamic_mode(extent, stride, end, data):
    expected = meant_offsets(algebra.complement(layout(extent, stride), Int(end)))
    unseen = algebra.complement(hidden_layout(data.draw, extent, stride), Int(end))
    assert meant_offsets(unseen) == expected


# -- inverses -------------------------------------------------------------------------------------
@quick
@given(layouts, st.data())
def test_a_right_inverse_finds_coordinates(given_layout, data):
    for argument in (layout(*given_layout), hidden_layout(data.draw, *given_layout)):
        inverse = meant_offsets(algebra.right_inverse(argument))
        assert [offset(index, *given_layout) for index in inverse] == list(range(len(inverse)))


@quick
@given(permuted())
def test_the_inverses_of_a_compact_layout_are_whole(given_layout):
    own = offsets(*given_layout)
    right = meant_offsets(algebra.right_inverse(layout(*given_layout)))
    left = meant_offsets(algebra.left_inverse(layout(*given_layout)))
    assert sorted(right) == sorted(left) == list(range(len(own)))
    assert [left[place] for place in own] == list(range(len(own)))


@quick
@given(permuted(gaps=True), st.data())
def test_a_left_inverse_undoes_the_layout(given_layout, data):
    shape, stride = given_layout
    for argument in (layout(shape, stride), Layout(hidden(data.draw, shape), stride)):
        inverse = meant(algebra.left_inverse(argument))
        assert [offset(at, *inverse) for at in offsets(shape, stride)] == list(range(size(shape)))


@settings(quick, max_examples=200)
@given(layouts)
def test_a_left_inverse_is_right_or_refused(given_layout):
    result, refused = tried(algebra.left_inverse, layout(*given_layout))
    if refused:
        assert refused.startswith(f"{layout(*given_layout)} has no left inverse: ")
        return
    inverse = meant(result)
    own = offsets(*given_layout)
    # The least coordinate of each offset.
    first = {}
    for index, place in enumerate(own):
        first.setdefault(place, index)
    assert [offset(place, *inverse) for place in own] == [first[place] for place in own]


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


# -- recast ---------------------------------------------------------------------------------------
@quick
@given(permuted(gaps=True), st.sampled_from([(8, 32), (16, 64), (8, 16), (16, 24)]), st.data())
def test_recasting_names_the_same_memory(given_layout, widths, data):
    """Of elements whose contiguous mode holds whole new ones, the same bits in all."""
    old, new = widths
    shape, stride = given_layout
    ratio = new // old if new % old == 0 else 6
    wide = ((ratio * 2, shape), (1, tuple_scaled(stride, ratio * 2)))
    recast = algebra.recast_layout(layout(*wide), old, new)
    assert bits(meant(recast), new) == bits(wide, old)
    back = algebra.recast_layout(recast, new, old)
    assert bits(meant(back), old) == bits(wide, old)


def tuple_scaled(tree, factor):
    if isinstance(tree, tuple):
        return tuple(tuple_scaled(part, factor) for part in tree)
    return tree * factor


def bits(given_layout, width):
    return {place * width + bit for place in offsets(*given_layout) for bit in range(width)}


# -- parts ----------------------------------------------------------------------------------------
@quick
@given(layouts, st.data())
def test_a_slice_is_the_layout_with_some_coordinates_given(given_layout, data):
    shape, stride = given_layout
    assume(isinstance(shape, tuple))

    def chosen(part):
        if isinstance(part, tuple) and data.draw(st.booleans()):
            return tuple(map(chosen, part))
        return data.draw(st.one_of(st.none(), st.integers(0, size(part) - 1)))

    coord = tuple(map(chosen, shape))
    assume(None in flat(coord))
    leaves = to_leaves(coord)
    part = meant(algebra.slice_(layout(shape, stride), leaves))
    start = algebra.slice_offset(layout(shape, stride), leaves).value
    assert start == offset(zeros(coord), shape, stride)
    kept, steps = free(shape, coord), free(stride, coord)
    assert [start + place for place in offsets(*part)] == [
        start + place for place in offsets(tuple(kept), tuple(steps))
    ]
    if any(leaf is not None for leaf in flat(coord)):
        diced = meant(algebra.dice(layout(shape, stride), leaves))
        assert flat(diced[0]) == [leaf for part in given_parts(shape, coord) for leaf in flat(part)]


def to_leaves(coord):
    if isinstance(coord, tuple):
        return tuple(map(to_leaves, coord))
    return None if coord is None else Int(coord)


def zeros(coord):
    return tuple(map(zeros, coord)) if isinstance(coord, tuple) else (coord or 0)


def free(tree, coord):
    if not isinstance(coord, tuple):
        return [tree] if coord is None else []
    return [part for pair in zip(tree, coord, strict=True) for part in free(*pair)]


def given_parts(tree, coord):
    if not isinstance(coord, tuple):
        return [] if coord is None else [tree]
    return [part for pair in zip(tree, coord, strict=True) for part in given_parts(*pair)]


@quick
@given(permuted(), st.data())
def test_an_index_is_its_coordinate(given_layout, data):
    own = offsets(*given_layout)
    index = data.draw(st.integers(0, len(own) - 1))
    arguments = layout(*given_layout), hidden_layout(data.draw, *given_layout)
    for argument, leaf in zip(
        arguments, (Int(own[index]), hidden(data.draw, own[index])), strict=True
    ):
        coord = algebra.idx2crd(leaf, argument)
        assert algebra.crd2idx(coord, argument).value == own[index]
        assert algebra.get_1d_coord(leaf, argument).value == index


@quick
@given(permuted(gaps=True, shape=pair_shapes), st.data())
def test_a_local_tile_is_the_block_of_a_coordinate(given_layout, data):
    (rows, columns), _ = given_layout
    high, wide = data.draw(divisors(rows)), data.draw(divisors(columns))
    p = data.draw(st.integers(0, rows // high - 1))
    q = data.draw(st.integers(0, columns // wide - 1))
    tile, coord = Tile((high, wide)), (Int(p), Int(q))
    zipped = algebra.zipped_divide(layout(*given_layout), tile)
    start = algebra.slice_offset(zipped, algebra.tile_coord(zipped, coord)).value
    part = meant(algebra.local_tile(layout(*given_layout), tile, coord))
    for i, j in coordinates((high, wide)):
        expected = offset((i + high * p, j + wide * q), *given_layout)
        assert start + offset((i, j), *modes_of(part, 2)) == expected


def modes_of(given_layout, count):
    """A layout of one mode, of which the tuple was taken off, with it again."""
    shape, stride = given_layout
    return (
        (shape, stride)
        if isinstance(shape, tuple) and len(shape) == count
        else ((shape,), (stride,))
    )


@quick
@given(permuted(shape=pair_shapes), st.integers(1, 4), st.integers(1, 4), st.data())
def test_a_local_partition_is_every_nth_element(threads, down, right, data):
    (high, wide), _ = threads
    shape = high * down, wide * right
    stride = shape[1], 1
    index = data.draw(st.integers(0, high * wide - 1))
    row, column = next(c for c in coordinates((high, wide)) if offset(c, *threads) == index)
    zipped = algebra.zipped_divide(layout(shape, stride), algebra.thread_tile(layout(*threads)))
    coord = algebra.thread_coord(zipped, layout(*threads), Int(index))
    start = algebra.slice_offset(zipped, coord).value
    part = meant(algebra.local_partition(layout(shape, stride), layout(*threads), Int(index)))
    for k, other in coordinates((down, right)):
        expected = offset((row + high * k, column + wide * other), shape, stride)
        assert start + offset((k, other), *part) == expected


@quick
@given(permuted(shape=pair_shapes), permuted(shape=pair_shapes))
def test_threads_and_values_cover_a_tile(threads, values):
    (tm, tn), (vm, vn) = threads[0], values[0]
    tile, pairs = algebra.make_layout_tv(layout(*threads), layout(*values))
    assert plain(tile) == (tm * vm, tn * vn)
    found = meant(pairs)
    for a, b, c, d in coordinates((tm, tn, vm, vn)):
        thread, value = offset((a, b), *threads), offset((c, d), *values)
        # Each thread has a block of values.
        element = (c + vm * a) + tm * vm * (d + vn * b)
        assert offset((thread, value), *found) == element


# -- construction ---------------------------------------------------------------------------------
@quick
@given(shapes, st.data())
def test_an_ordered_layout_is_compact_in_that_order(shape, data):
    count = len(modes(shape))
    order = tuple(map(Int, data.draw(st.permutations(range(count)))))
    ordered = order if isinstance(shape, tuple) else order[0]
    found = meant(algebra.make_ordered_layout(to_leaves(shape), ordered))
    assert sorted(offsets(*found)) == list(range(size(shape)))
    step = 1
    for index in sorted(range(count), key=lambda mode: order[mode].value):
        mode = modes(found[0])[index], modes(found[1])[index]
        assert offsets(*mode) == [step * place for place in range(size(mode[0]))]
        step *= size(mode[0])


@quick
@given(permuted(gaps=True))
def test_a_layout_like_another_is_compact_in_its_order(given_layout):
    like = meant(algebra.make_layout_like(layout(*given_layout)))
    assert like[0] == given_layout[0]
    places = sorted(offsets(*like))
    assert places == list(range(len(places)))
    ranks = [sorted(offsets(*side)) for side in (given_layout, like)]
    order = [
        [rank.index(at) for at in offsets(*side)]
        for rank, side in zip(ranks, (given_layout, like), strict=True)
    ]
    assert order[0] == order[1]


@quick
@given(layouts)
def test_a_fragment_has_room_for_every_element(given_layout):
    shape, stride = given_layout
    found = meant(algebra.make_fragment_layout_like(layout(shape, stride)))
    places = offsets(*found)
    assert sorted(places) == list(range(size(shape)))
    if isinstance(shape, tuple):
        first = size(shape[0])
        assert places[:first] == list(range(first))


# -- composed layouts -----------------------------------------------------------------------------
@quick
@given(
    permuted(gaps=True),
    st.integers(0, 40),
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 3)),
    st.data(),
)
def test_a_composed_layout_permutes_offsets(outer, start, numbers, data):
    mask, base, shift = numbers
    swizzle = Swizzle(mask, base, shift)

    def by_hand(place):
        picked = (place >> (base + shift)) % (1 << mask)
        return place ^ (picked << base)

    expected = [by_hand(start + place) for place in offsets(*outer)]
    plain_, unseen = layout(*outer), hidden_layout(data.draw, *outer)
    for argument, first in ((plain_, Int(start)), (unseen, hidden(data.draw, start))):
        composed = ComposedLayout(swizzle, first, argument)
        places = [algebra.crd2idx(Int(i), composed).value for i in range(len(expected))]
        assert places == expected
        assert algebra.size(composed).value == len(expected)
    # What rearranges a layout rearranges what takes the coordinate.
    composed = ComposedLayout(swizzle, start, plain_)
    merged = algebra.coalesce(composed)
    assert [algebra.crd2idx(Int(i), merged).value for i in range(len(expected))] == expected


@quick
@given(permuted(shape=pair_shapes), st.integers(0, 20), st.data())
def test_a_slice_of_a_composed_layout_keeps_where_it_begins(outer, start, data):
    composed = ComposedLayout(Swizzle(2, 1, 2), start, layout(*outer))
    row = data.draw(st.integers(0, outer[0][0] - 1))
    part = algebra.slice_(composed, (Int(row), None))
    for column in range(outer[0][1]):
        whole = algebra.crd2idx((Int(row), Int(column)), composed)
        assert algebra.crd2idx(Int(column), part) == whole


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
