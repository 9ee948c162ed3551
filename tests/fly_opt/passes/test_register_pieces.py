"""The cut of registers into pieces: what it is for known programs, and what it always keeps."""

import pytest
from fly_opt.passes.registers.pieces import Range, cut, reached, slices
from hypothesis import given
from hypothesis import strategies as st

SIZE = 32

ACCESSES = st.dictionaries(
    st.tuples(st.integers(0, SIZE - 1), st.sampled_from((1, 2, 3, 4, 8, SIZE))).map(
        lambda pair: Range(min(pair[0], SIZE - pair[1]), pair[1])
    ),
    st.integers(1, 9),
)


@pytest.mark.parametrize(
    ("bits", "accesses", "pieces"),
    [
        # a sum that multiplications write 8 by 8, and one store at the end
        (32, {Range(at, 8): 5 for at in range(0, SIZE, 8)} | {Range(0, SIZE): 1}, 4),
        # copied 8 by 8 once, read 4 by 4 often
        (16, {Range(at, 8): 1 for at in range(0, SIZE, 8)} | {Range(4, 4): 9, Range(0, 4): 9}, 5),
        # every element once, and all of them twice: cut or not, the slices are as many
        (32, {Range(at, 1): 1 for at in range(SIZE)} | {Range(0, SIZE): 1}, 1),
        # bytes one by one: four are a register
        (8, {Range(at, 1): 9 for at in range(8)} | {Range(0, 4): 99}, 3),
        (32, {}, 1),
    ],
)
def test_a_cut_leaves_few_slices(bits, accesses, pieces):
    assert len(cut(SIZE, bits, accesses)) == pieces


@given(ACCESSES, st.sampled_from((4, 8, 16, 32, 64)))
def test_pieces_are_all_of_the_registers_and_never_make_more_slices(accesses, bits):
    pieces = cut(SIZE, bits, accesses)
    assert [n for piece in pieces for n in range(piece.offset, piece.end)] == list(range(SIZE))
    assert all(piece.offset * bits % 32 == 0 for piece in pieces)
    assert slices(pieces, accesses) <= slices([Range(0, SIZE)], accesses)


@given(ACCESSES, st.integers(0, SIZE - 1), st.integers(1, 9))
def test_reached_are_the_pieces_with_common_elements(accesses, offset, count):
    pieces = cut(SIZE, 32, accesses)
    access = Range(offset, min(count, SIZE - offset))
    elements = set(range(access.offset, access.end))
    first, last = reached([piece.offset for piece in pieces], access)
    for number, piece in enumerate(pieces):
        common = sorted(elements & set(range(piece.offset, piece.end)))
        assert (first <= number < last) == bool(common)
        if common:
            assert access.common(piece) == Range(common[0], len(common))
