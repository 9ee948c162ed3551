"""The orders in which gemm goes through its tiles, against loops written out."""

from itertools import permutations

import pytest
from fly_opt.passes.layout.expansion import by_order

BOUNDS = {"m": 3, "n": 4, "k": 5}


def turning(count: int, serpentine: bool):
    """An inner loop's indices: `next` gives them once more each time it begins, backwards every
    second time if serpentine."""
    while True:
        yield range(count)
        yield reversed(range(count)) if serpentine else range(count)


def loops(letters: list[str], serpentine: bool):
    """The indices by letter in nested loops, the last letter's fastest."""
    slow, middle, fast = letters
    in_middle = turning(BOUNDS[middle], serpentine)
    in_fast = turning(BOUNDS[fast], serpentine)
    for i in range(BOUNDS[slow]):
        for j in next(in_middle):
            for k in next(in_fast):
                yield {slow: i, middle: j, fast: k}


@pytest.mark.parametrize("serpentine", [False, True])
@pytest.mark.parametrize("letters", list(permutations("mnk")), ids="".join)
def test_each_order(letters, serpentine):
    # FlyDSL names the fastest first.
    name = "".join(reversed(letters)) + ("_serpentine" if serpentine else "")
    expected = [tuple(place[x] for x in "mnk") for place in loops(list(letters), serpentine)]
    assert list(by_order(name, tuple(BOUNDS.values()))) == expected
    assert sorted(expected) == sorted(set(expected))


@pytest.mark.parametrize("name", ["mnk", "mkn", "kmn"])
def test_without_k_the_others_keep_their_order(name):
    assert list(by_order(name, (2, 2))) == [(0, 0), (1, 0), (0, 1), (1, 1)]
    assert list(by_order(f"{name}_serpentine", (2, 2))) == [(0, 0), (1, 0), (1, 1), (0, 1)]
