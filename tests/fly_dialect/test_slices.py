"""Slices, local tiles and partitions: the elements that they have."""

from fly_dialect import algebra
from fly_dialect.layouts.integers import Int
from fly_dialect.layouts.tile import Tile
from hypothesis import assume, given
from hypothesis import strategies as st
from index_functions import flat, offset, offsets, size

from .algebra_cases import pair_shapes, quick, to_leaves
from .layouts_by_hand import (
    coordinates,
    divisors,
    hidden,
    hidden_layout,
    layout,
    layouts,
    meant,
    permuted,
    plain,
)


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
