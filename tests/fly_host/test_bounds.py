"""Bounds of every operator on intervals with all the edges that there are, beside the values."""

from itertools import product

import pytest
from fly_common.errors import InputError
from fly_host.bounds import ANY, EXTENT, UNKNOWN, Bounds, bounds_of, of_select
from fly_host.integers import BINARY, HIGHEST, LOWEST
from host_chains.readers import binary

OPS = sorted(BINARY)
EDGES = (LOWEST, LOWEST + 1, -5, -1, 0, 1, 2, 7, 62, 63, 64, 2**62, HIGHEST)
INTERVALS = [(low, high) for low, high in product(EDGES, EDGES) if low <= high]
# Where the bounds are the least and the greatest value, if every pair of operands has one.
EXACT = {"add", "sub", "mul", "min", "max", "shl", "shr", "eq", "ne", "lt", "le"}
DIVISIONS = {"floordiv", "ceildiv", "truncdiv"}


def value(op: str, a: int, b: int) -> int | None:
    try:
        result = binary(op, a, b)
    except InputError:
        return None
    return result if LOWEST <= result <= HIGHEST else None


def within(low: int, high: int) -> list[int]:
    """The ends of an interval, what is next to them, and the middle."""
    near = {low, low + 1, high - 1, high, -1, 0, 1, (low + high) // 2}
    return [one for one in near if low <= one <= high]


@pytest.mark.parametrize("op", OPS)
def test_values_lie_between_the_bounds(op):
    for a, b in product(INTERVALS, INTERVALS):
        low, high, defined = bounds_of(op, Bounds(*a, True), Bounds(*b, True))
        assert LOWEST <= low <= high <= HIGHEST
        for x, y in product(within(*a), within(*b)):
            result = value(op, x, y)
            assert result is not None or not defined, (a, b, x, y)
            assert result is None or low <= result <= high, (a, b, x, y)


@pytest.mark.parametrize("op", OPS)
def test_bounds_are_no_wider_than_they_have_to_be(op):
    small = [(low, high) for low, high in product(range(-4, 5), repeat=2) if low <= high]
    for a, b in product(small, small):
        values = [value(op, x, y) for x in range(a[0], a[1] + 1) for y in range(b[0], b[1] + 1)]
        found = bounds_of(op, Bounds(*a, True), Bounds(*b, True))
        assert found.defined == (None not in values), (a, b)
        exact = op in EXACT or (op in DIVISIONS and (b[0] > 0 or b[1] < 0))
        whole = [one for one in values if one is not None]
        if exact and found.defined:
            assert found[:2] == (min(whole), max(whole)), (a, b)
        elif op == "mod" and b[0] > 0:
            least = a[0] if a[0] >= 0 and a[1] < b[0] else 0
            assert found[:2] == (least, b[1] - 1 if a[0] < 0 else min(a[1], b[1] - 1)), (a, b)
        elif op == "mod" and b[0] == 0 and b[1] > 0:
            assert (found.low, found.high) == (0, b[1] - 1 if a[0] < 0 else min(a[1], b[1] - 1))
        elif op == "mod" and b == (0, 0):
            assert found == UNKNOWN
        elif op == "rem":
            assert found[:2] == (min(a[0], 0), max(a[1], 0)), (a, b)
        elif op in DIVISIONS and b[0] == 0 and b[1] > 0:
            assert found[:2] == (min(whole), max(whole)), (a, b)
        elif op in DIVISIONS:
            assert found[1] == -found[0] == max(abs(a[0]), abs(a[1])), (a, b)
        elif op == "and" and a[0] >= 0 and b[0] >= 0:
            assert found[:2] == (0, min(a[1], b[1])), (a, b)
        elif op in ("or", "xor") and a[0] >= 0 and b[0] >= 0:
            ones = 2 ** max(a[1].bit_length(), b[1].bit_length()) - 1
            assert found[:2] == (0, ones), (a, b)


@pytest.mark.parametrize("op", OPS)
def test_a_result_is_defined_only_where_both_operands_are(op):
    for a, b in ((False, True), (True, False), (False, False)):
        found = bounds_of(op, Bounds(1, 2, a), Bounds(1, 2, b))
        assert not found.defined
        assert found[:2] == bounds_of(op, Bounds(1, 2, True), Bounds(1, 2, True))[:2]
        assert found.constant is None


@pytest.mark.parametrize(
    ("op", "a", "b", "fits"),
    [
        ("add", HIGHEST - 7, 7, True),
        ("add", HIGHEST - 7, 8, False),
        ("add", LOWEST + 7, -7, True),
        ("add", LOWEST + 7, -8, False),
        ("mul", LOWEST, 1, True),
        ("mul", LOWEST, -1, False),
        ("truncdiv", LOWEST, -1, False),
        ("shl", 1, 62, True),
        ("shl", 1, 63, False),
    ],
)
def test_the_ends_of_64_bits(op, a, b, fits):
    a, b = (Bounds(min(one, 0), max(one, 0), True) for one in (a, b))
    if op in ("truncdiv", "shl"):
        b = Bounds(b.low or b.high, b.low or b.high, True)
    assert bounds_of(op, a, b).defined == fits


def test_what_never_has_a_value():
    high = Bounds(HIGHEST, HIGHEST, True)
    assert bounds_of("add", high, high) == UNKNOWN


@pytest.mark.parametrize("defined", list(product((True, False), repeat=3)))
def test_select(defined):
    condition, a, b = (
        Bounds(low, low + 1, one) for low, one in zip((0, 5, -3), defined, strict=True)
    )
    assert of_select(condition, a, b) == (-3, 6, all(defined))


def test_a_constant():
    assert Bounds(3, 3, True).constant == 3
    assert Bounds(3, 3, False).constant is None
    assert Bounds(3, 4, True).constant is None


def test_leaves():
    assert EXTENT == (0, HIGHEST, True)
    assert ANY == (LOWEST, HIGHEST, True)
    assert UNKNOWN == (LOWEST, HIGHEST, False)
    for leaf in (EXTENT, ANY, UNKNOWN):
        assert bounds_of("min", leaf, leaf) == leaf
