"""Chains of steps: their text, and what is refused of them."""

import pytest
from fly_common.errors import InputError
from fly_host.domains.domain import Allocation, Dynamic, Reorder, parse
from host_chains.chain import Choice, random_chain
from hypothesis import given
from hypothesis import strategies as st

TEXTS = [
    "",
    "split(1, 4)",
    "split(-1, 4, inner=False)",
    "split(0, 4, padded=True)",
    "split(0, %7, inner=False, padded=True)",
    "merge(0) merge(-3)",
    "reorder()",
    "split(1, 4) reorder(0, 2, 3, 1, 4)",
    "broadcast(0) expand(0, 0) expand(-1, %0)",
    "split(0, 9223372036854775807)",
]


@pytest.mark.parametrize("text", TEXTS)
def test_text_and_back(text):
    assert str(parse(text)) == text


def test_a_chain_and_its_text():
    chain = (
        Allocation()
        .broadcast(0)
        .expand(0, Dynamic(3))
        .split(-1, 4, padded=True)
        .split(1, Dynamic(12), inner=False)
        .merge(2)
        .reorder(-1, 0, 1)
    )
    text = (
        "broadcast(0) expand(0, %3) split(-1, 4, padded=True) split(1, %12, inner=False) merge(2)"
        " reorder(2, 0, 1)"
    )
    assert str(chain) == text
    assert parse(text) == chain


def test_white_space_is_free():
    assert parse("\n split(1,4 ,  padded=True)merge( 0 )\t") == parse(
        "split(1, 4, padded=True) merge(0)"
    )


@given(st.integers())
def test_random_chains_and_their_texts(seed):
    chain = random_chain(Choice.of_seed(seed)).allocation()
    assert parse(str(chain)) == chain


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fold(1)", "fold(1): unknown step; there are split, merge, reorder, broadcast, expand"),
        ("split(1)", "split(1): split takes 2 numbers, not 1"),
        ("split(1, 2, 3)", "split(1, 2, 3): split takes 2 numbers, not 3"),
        ("split(1, x)", "split(1, x): 'x' is no argument of split"),
        ("split(1, 2, inner=no)", "split(1, 2, inner=no): 'inner=no' is no argument of split"),
        (
            "split(1, 2, inner=True, inner=True)",
            "split(1, 2, inner=True, inner=True): 'inner=True' is no argument of split",
        ),
        ("split(inner=True, 1, 2)", "split(inner=True, 1, 2): '1' is no argument of split"),
        ("merge(0, padded=True)", "merge(0, padded=True): 'padded=True' is no argument of merge"),
        ("split(0, 4, padded=)", "split(0, 4, padded=): 'padded=' is no argument of split"),
        ("split(0, inner=True, %1)", "split(0, inner=True, %1): '%1' is no argument of split"),
        ("reorder(inner=True)", "reorder(inner=True): 'inner=True' is no argument of reorder"),
        ("broadcast(0, inner=True)", None),
        ("expand(0, 1, inner=True)", None),
        ("merge(%1)", "an axis is an integer, not Dynamic(index=1)"),
        ("merge()", "merge(): merge takes 1 number, not 0"),
        ("merge(0, 1)", "merge(0, 1): merge takes 1 number, not 2"),
        ("broadcast(0, 1)", "broadcast(0, 1): broadcast takes 1 number, not 2"),
        ("expand(0, 1, 2)", "expand(0, 1, 2): expand takes 2 numbers, not 3"),
        ("merge(,)", "merge(,): '' is no argument of merge"),
        ("split(1, 4", "no step of an allocation: 'split(1, 4'"),
        ("merge(0);", "no step of an allocation: ';'"),
        ("split(0, 0)", "a factor is from 1 to 9223372036854775807, not 0"),
        ("split(0, -4)", "a factor is from 1 to 9223372036854775807, not -4"),
        (
            "split(0, 9223372036854775808)",
            "a factor is from 1 to 9223372036854775807, not 9223372036854775808",
        ),
        ("split(0, 99999999999999999999)", None),
        ("expand(0, -1)", "an extent is from 0 to 9223372036854775807, not -1"),
        ("reorder(0, 0)", "reorder(0, 0): not a permutation of 2 axes"),
        ("reorder(1)", "reorder(1): not a permutation of 1 axis"),
        ("reorder(0, -3)", "reorder(0, -3): not a permutation of 2 axes"),
    ],
)
def test_texts_that_are_refused(text, message):
    with pytest.raises(InputError) as caught:
        parse(text)
    if message is not None:
        assert str(caught.value).split("\n")[0] == message


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Allocation().split(True, 4), "an axis is an integer, not True"),
        (lambda: Allocation().split(0, 4.0), "a factor is an integer, not 4.0"),
        (lambda: Allocation().split(0, "n"), "a factor is an integer, not 'n'"),
        (lambda: Allocation().merge(None), "an axis is an integer, not None"),
        (lambda: Allocation().broadcast("0"), "an axis is an integer, not '0'"),
        (lambda: Allocation().expand("0", 2), "an axis is an integer, not '0'"),
        (lambda: Allocation().expand(0, False), "an extent is an integer, not False"),
        (lambda: Allocation().reorder(0, 1.0), "an axis is an integer, not 1.0"),
        (
            lambda: Dynamic(-1),
            "the index of an expression is from 0 to 9223372036854775807, not -1",
        ),
    ],
)
def test_values_that_are_refused(make, message):
    with pytest.raises(InputError) as caught:
        make()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "rank", "resolved", "ranks"),
    [
        ("split(-1, 4) merge(-3)", 2, "split(1, 4) merge(0)", (2, 3, 2)),
        ("broadcast(-1) broadcast(-4)", 2, "broadcast(2) broadcast(0)", (2, 3, 4)),
        ("broadcast(0)", 0, "broadcast(0)", (0, 1)),
        ("expand(-2, 5) reorder(1, 0)", 2, "expand(0, 5) reorder(1, 0)", (2, 2, 2)),
    ],
)
def test_positions_count_the_current_axes(text, rank, resolved, ranks):
    assert str(parse(text).resolved(rank)) == resolved
    assert parse(text).ranks(rank) == ranks


@pytest.mark.parametrize(
    ("text", "rank", "message"),
    [
        ("split(2, 4)", 2, "split(2, 4): there is no axis 2, the domain has 2 axes here"),
        ("split(-3, 4)", 2, "split(-3, 4): there is no axis -3, the domain has 2 axes here"),
        ("split(0, 4)", 0, "split(0, 4): there is no axis 0, the domain has 0 axes here"),
        ("split(0, 4) merge(2)", 2, "merge(2): axis 2 is the last one, none follows it"),
        ("merge(-1)", 1, "merge(-1): axis 0 is the last one, none follows it"),
        ("merge(0) merge(1)", 2, "merge(1): there is no axis 1, the domain has 1 axis here"),
        ("expand(1, 2)", 1, "expand(1, 2): there is no axis 1, the domain has 1 axis here"),
        ("broadcast(2)", 1, "broadcast(2): no axis can be put at 2, the domain has 1 axis here"),
        ("broadcast(-3)", 1, "broadcast(-3): no axis can be put at -3, the domain has 1 axis here"),
        ("reorder(1, 0)", 3, "reorder(1, 0): it names 2 axes, the domain has 3 here"),
        ("split(0, 2) reorder(0)", 1, "reorder(0): it names 1 axis, the domain has 2 here"),
    ],
)
def test_steps_that_do_not_fit_the_domain(text, rank, message):
    for judge in (Allocation.resolved, Allocation.ranks):
        with pytest.raises(InputError) as caught:
            judge(parse(text), rank)
        assert str(caught.value) == message


def test_a_domain_has_no_more_axes_than_torchs_tensors():
    text = " ".join(["broadcast(0)"] * 64)
    assert parse(text).ranks(0)[-1] == 64
    assert parse(f"{text} expand(0, 2) merge(0)").ranks(0)[-1] == 63
    for more in ("broadcast(0)", "split(0, 2)"):
        with pytest.raises(InputError) as caught:
            parse(f"{text} {more}").resolved(0)
        assert str(caught.value) == f"{more}: the domain has 64 axes here, and can't have more"


def test_a_long_text_is_read_once():
    """A megabyte of steps; twice as many take twice as long, not four times."""
    assert len(parse("merge(0)\n" * 100_000).steps) == 100_000


def test_a_chain_is_a_value():
    first, second = Allocation().split(0, 4), Allocation()
    assert second == Allocation()
    assert first == Allocation().split(0, 4) != Allocation().split(0, 4, padded=True)
    assert {first: 1}[parse("split(0, 4)")] == 1
    assert Reorder((-1, 0)) == Reorder((1, 0))


def test_the_steps_of_the_logical_domain():
    assert parse("broadcast(0) expand(0, 2) split(0, 2) broadcast(0)").logical == 2
    assert parse("broadcast(0) expand(0, 2)").logical == 2
    assert parse("reorder(0) broadcast(0)").logical == 0
    assert Allocation().logical == 0
