"""Integer tuples and layouts: text, arithmetic on what is known, the algebra by brute force."""

from itertools import product
from math import prod

import pytest
from fly_dialect import algebra
from fly_dialect.layouts.layout import (
    Basis,
    Int,
    Layout,
    congruent,
    dynamic_leaves,
    int_tuple,
    text,
)
from fly_dialect.layouts.scanner import parse_int_tuple, parse_layout
from hypothesis import given
from hypothesis import strategies as st
from index_functions import flat, offset

statics = st.integers(-(2**40), 2**40).map(Int)
dynamics = st.builds(
    Int, st.none(), st.sampled_from([32, 64]), st.sampled_from([1, 2, 3, 16, 4096])
)
bases = st.builds(
    Basis, st.one_of(statics, dynamics), st.lists(st.integers(0, 9), min_size=1).map(tuple)
)
leaves = st.one_of(statics, dynamics, bases, st.none())


def trees(leaf):
    return st.recursive(
        leaf, lambda part: st.lists(part, min_size=1, max_size=4).map(tuple), max_leaves=8
    )


@given(trees(leaves))
def test_an_int_tuple_reads_as_it_prints(value):
    assert parse_int_tuple(text(value)) == value


@given(trees(st.tuples(leaves, leaves)))
def test_a_layout_reads_as_it_prints(pairs):
    def part(tree, index):
        # A pair of leaves is a leaf here.
        if isinstance(tree, tuple) and not (
            len(tree) == 2 and not any(isinstance(element, tuple) for element in tree)
        ):
            return tuple(part(element, index) for element in tree)
        return tree[index]

    layout = Layout(part(pairs, 0), part(pairs, 1))
    assert parse_layout(str(layout)) == layout


@pytest.mark.parametrize(
    ("source", "normal"),
    [
        ("( 4 , ( 2 , ? ) )", "(4,(2,?))"),
        ("?{i32}", "?"),
        ("?{ i64  div = 16 }", "?{i64 div=16}"),
        ("?{div=1}", "?"),
        ("?{}", "?"),
        ("(4)", "(4)"),
        ("((((42))))", "((((42))))"),
        ("-32", "-32"),
        ("*", "*"),
        ("(*,3)", "(*,3)"),
        ("48E1", "48E1"),
        ("?{i64}E0E2", "?{i64}E0E2"),
    ],
)
def test_white_space_and_defaults_are_not_printed(source, normal):
    assert text(parse_int_tuple(source)) == normal


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("()", "expected an integer, `?` or `*`, found `)` in `()`"),
        ("(4", "expected `)`, found the end in `(4`"),
        ("4 8", "expected nothing more, found `8` in `4 8`"),
        ("", "expected an integer, `?` or `*`, found the end in ``"),
        ("?{i16}", "expected nothing more, found `{i16}` in `?{i16}`"),
        ("?{div=0}", "divisibility must be at least 1, not 0"),
    ],
)
def test_what_is_no_int_tuple_says_what_was_expected(source, message):
    with pytest.raises(ValueError, match=r"expected|divisibility") as caught:
        parse_int_tuple(source)
    assert str(caught.value) == message


def test_incongruent_parts_are_refused_with_both():
    with pytest.raises(ValueError, match=r"shape \(4,8\) and stride \(1,\(2,3\)\) are not congr"):
        Layout((4, 8), (1, (2, 3)))
    with pytest.raises(ValueError, match=r"shape \(4,8\) and stride 1 are not congruent"):
        parse_layout("(4,8):1")


def test_python_integers_and_lists_are_taken():
    assert Layout([4, (2, 3)], (6, [3, 1])) == parse_layout("(4,(2,3)):(6,(3,1))")
    with pytest.raises(TypeError):
        int_tuple(2.5)
    with pytest.raises(ValueError, match="at least one element"):
        int_tuple(())
    with pytest.raises(TypeError):
        int_tuple(True)


def test_static_integers_do_not_overflow():
    assert algebra.product(int_tuple((65536, 65536))) == Int(2**32)
    assert Int(2**31 - 1).width == 32
    assert Int(2**31).width == 64
    assert Int(-(2**31)).width == 32
    assert algebra.crd2idx(int_tuple((65535, 65535)), Layout((65536, 65536), (65536, 1))) == Int(
        2**32 - 1
    )


# -- what is known of a result -------------------------------------------------------------------


@given(st.integers(-99, 99), st.integers(-99, 99).filter(bool))
def test_static_division_truncates_as_in_c(dividend, divisor):
    quotient = Int(dividend) // Int(divisor)
    assert quotient.value == int(dividend / divisor)
    assert (Int(dividend) % Int(divisor)).value == dividend - divisor * int(dividend / divisor)


@given(
    st.integers(0, 50),
    st.integers(1, 12),
    st.integers(0, 50),
    st.integers(1, 12),
    st.sampled_from(["+", "-", "*", "%"]),
)
def test_divisibility_holds_for_every_value(count, factor, others, other, operator):
    """What is inferred for multiples of `factor` and `other` divides what comes out of them."""
    compute = {
        "+": lambda a, b: a + b,
        "-": lambda a, b: a - b,
        "*": lambda a, b: a * b,
        "%": lambda a, b: a % b,
    }[operator]
    lhs, rhs = count * factor, others * other
    if operator == "%" and rhs == 0:
        return
    inferred = compute(Int(None, 32, factor), Int(None, 32, other))
    assert compute(lhs, rhs) % inferred.factor == 0


def test_widths_join_and_zero_and_one_are_neutral():
    narrow, wide = Int(None), Int(None, 64, 8)
    assert narrow + wide == Int(None, 64)
    assert wide * Int(4) == Int(None, 64, 32)
    assert wide + Int(0) == wide
    assert wide * Int(0) == Int(0)
    assert narrow * Int(2**40) == Int(None, 64, 2**40)
    assert wide % Int(1) == Int(0)
    assert Int(7).ceildiv(Int(2)) == Int(4)
    with pytest.raises(ValueError, match="divided by 0"):
        narrow // Int(0)


# -- the algebra ---------------------------------------------------------------------------------


shapes = st.recursive(
    st.integers(1, 5), lambda part: st.lists(part, min_size=1, max_size=3).map(tuple), max_leaves=4
)


def with_strides(shape):
    if isinstance(shape, tuple):
        return st.tuples(*map(with_strides, shape))
    return st.integers(-7, 40)


layouts = shapes.flatmap(lambda shape: st.tuples(st.just(shape), with_strides(shape)))


@given(layouts, st.data())
def test_crd2idx_is_the_sum_of_coordinate_times_stride(layout, data):
    shape, stride = layout

    def coordinate(part):
        whole = st.integers(0, prod(flat(part)) - 1)
        if not isinstance(part, tuple):
            return whole
        return st.one_of(whole, st.tuples(*map(coordinate, part)))

    coord = data.draw(coordinate(shape))
    got = algebra.crd2idx(int_tuple(coord), Layout(shape, stride))
    assert got == Int(offset(coord, shape, stride))


@given(layouts)
def test_size_and_cosize_by_counting(layout):
    shape, stride = layout
    if min(flat(stride)) < 0:
        return
    extents = [range(extent) for extent in flat(shape)]
    offsets = [
        sum(a * b for a, b in zip(at, flat(stride), strict=True)) for at in product(*extents)
    ]
    assert algebra.product(int_tuple(shape)) == Int(len(offsets))
    assert algebra.cosize(Layout(shape, stride)) == Int(max(offsets) + 1)


def test_idx2crd_undoes_crd2idx_of_a_compact_layout():
    layout = Layout((4, (2, 3)), (1, (4, 8)))
    for index in range(24):
        coord = algebra.idx2crd(Int(index), layout)
        assert congruent(coord, layout.shape)
        assert algebra.crd2idx(coord, layout) == Int(index)


@given(shapes, st.data())
def test_numbers_of_coordinates_count_the_first_mode_fastest(shape, data):
    def compact(part, step):
        """The strides that count so, written out."""
        if not isinstance(part, tuple):
            return step
        strides = []
        for extent in part:
            strides.append(compact(extent, step))
            step *= prod(flat(extent))
        return tuple(strides)

    index = data.draw(st.integers(0, prod(flat(shape)) - 1))
    layout = Layout(shape, compact(shape, 1))
    assert algebra.get_1d_coord(Int(index), layout) == Int(index)
    coord = algebra.get_flat_coord(Int(index), layout)
    if isinstance(shape, tuple):
        for part, extent in zip(coord, shape, strict=True):
            assert part == Int(index % prod(flat(extent)))
            index //= prod(flat(extent))


@pytest.mark.parametrize(
    ("coord", "layout", "expected"),
    [
        ("(?,?)", "(4,8):(1,4)", "?"),
        # 64-bit strides and extents carry over; a stride of 1 keeps the coordinate's width.
        ("(?,?)", "(?{i64},?{i64}):(?{i64},1)", "?{i64}"),
        ("?", "?{i64}:1", "?"),
        ("?{i64}", "?{i64}:1", "?{i64}"),
        ("?", "?{i64}:4", "?{i64 div=4}"),
        # A static shape that 32 bits don't span.
        ("(?,?)", "(65536,65536):(65536,1)", "?{i64}"),
        ("(?,?)", "(32768,65536):(65536,1)", "?"),
        ("(?{div=8},?{div=4})", "(64,64):(64,2)", "?{div=8}"),
        # A flat coordinate is split, so nothing is known of its parts.
        ("?", "(4,8):(8,1)", "?"),
    ],
)
def test_the_width_of_an_offset(coord, layout, expected):
    parsed = parse_layout(layout)
    got = algebra.crd2idx(parse_int_tuple(coord), parsed)
    assert text(got) == expected


@pytest.mark.parametrize(
    ("coord", "layout", "message"),
    [
        ("(1,2,3)", "(4,8):(1,4)", r"coordinate \(1,2,3\) does not fit shape \(4,8\)"),
        ("(1,2)", "8:1", r"coordinate \(1,2\) does not fit shape 8"),
        ("(1,*)", "(4,8):(1,4)", r"coordinate \(1,\*\) contains \*"),
        ("(1,(2,3))", "(4,8):(1,4)", r"coordinate \(1,\(2,3\)\) does not fit shape \(4,8\)"),
    ],
)
def test_a_coordinate_that_does_not_fit_is_refused_with_the_shape(coord, layout, message):
    parsed = parse_layout(layout)
    with pytest.raises(ValueError, match=message):
        algebra.crd2idx(parse_int_tuple(coord), parsed)


def test_parts_are_found_by_path_or_refused():
    value = int_tuple(((2, 3), 4))
    assert algebra.at(value, (0, 1)) == Int(3)
    assert algebra.at(value, ()) == value
    with pytest.raises(ValueError, match=r"\(\(2,3\),4\) has no mode \[2\]"):
        algebra.at(value, (2,))
    with pytest.raises(ValueError, match=r"\(2,3\) is not a scalar"):
        algebra.scalar(int_tuple((2, 3)))
    assert dynamic_leaves(parse_int_tuple("(4,(?,?{i64}),*)")) == [Int(None), Int(None, 64)]
