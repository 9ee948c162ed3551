"""The orders in which gemm goes through its tiles, against loops written out."""

from itertools import permutations

import pytest
from fly_opt.passes.fly_layout.expansion import by_order

BOUNDS = {"m": 3, "n": 4, "k": 5}


def loops(letters: list[str], serpentine: bool):
    """The indices by letter, the last letter's fastest: nested loops, of which an inner one runs
    backwards every second time it begins."""
    slow, middle, fast = letters
    begun_middle = begun_fast = 0
    for i in range(BOUNDS[slow]):
        backwards = serpentine and begun_middle % 2
        begun_middle += 1
        for j in sorted(range(BOUNDS[middle]), reverse=bool(backwards)):
            backwards = serpentine and begun_fast % 2
            begun_fast += 1
            for k in sorted(range(BOUNDS[fast]), reverse=bool(backwards)):
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
