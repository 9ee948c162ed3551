"""The layout algebra against counting: each operation on layouts of nested Python integers, whose
meaning `layouts_by_hand` writes out, with leaves that are known and leaves that are not."""

from math import prod

from fly_dialect import algebra
from fly_dialect.layouts.integers import Int
from fly_dialect.layouts.layout import ComposedLayout, Layout
from fly_dialect.layouts.swizzle import Swizzle
from fly_dialect.layouts.tile import Tile
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from index_functions import flat, offset, offsets, size

from .algebra_cases import pair_shapes, quick, to_leaves, tried
from .layouts_by_hand import (
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
