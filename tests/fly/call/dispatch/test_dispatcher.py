"""The native dispatcher by itself: builtins of Python stand for launchers."""

import ctypes
import gc
import math
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import Any

import pytest

from fly.call.dispatch import dispatcher as dispatchers
from fly.call.dispatch.dispatcher import ANY, Dispatcher, Rules, State

MISSING = object()


def plain(a, b=2, *, c: int = 3):
    return a


def state(names=(), cells=(), functions=(), whole=()) -> State:
    return State(names, whole, cells, functions, MISSING)


class Made:
    """A dispatcher whose time is not over, and the word that says whether the process is busy."""

    def __init__(self, held: State, *launchers: tuple[Any, Rules]):
        self.busy = ctypes.c_uint64(0)
        self.dispatcher = Dispatcher(held, ctypes.addressof(self.busy))
        self.call = self.dispatcher.call
        for launcher, rules in launchers or ((math.gcd, Rules(2, (0, 1))),):
            assert self.dispatcher.add(launcher, rules)
        self.more_time()

    def more_time(self) -> None:
        self.dispatcher.until(time.monotonic_ns() + 1_000_000_000_000)

    @property
    def answers(self) -> bool:
        """Whether a call is the dispatcher's; the next call has time again, as after a look by
        Python."""
        result = self.call(12, 18)
        self.more_time()
        assert result in (6, NotImplemented)
        return result == 6


# -- what has to be as it was


def test_nothing_changes():
    made = Made(state())
    assert [made.call(12, 18) for _ in range(3)] == [6, 6, 6]


def test_a_deadline():
    made = Made(state())
    for deadline in (0, -5, time.monotonic_ns() - 1_000_000_000):
        made.dispatcher.until(deadline)
        assert made.call(12, 18) is NotImplemented
    made.dispatcher.until(time.monotonic_ns() + 60_000_000_000)
    assert made.call(12, 18) == 6


def test_a_process_that_traces():
    made = Made(state())
    made.busy.value = 1 << 40
    assert made.call(12, 18) is NotImplemented
    made.busy.value = 0
    assert made.call(12, 18) == 6


def test_names_in_dictionaries():
    first, second, value = {"x": 1, "other": 0}, {"y": (1, 2)}, (1, 2)
    second["y"] = value
    made = Made(state([(first, "x", first["x"]), (second, "y", value), (second, "z", MISSING)]))
    assert made.answers
    assert made.answers
    first["other"] = 5
    assert made.answers
    second["y"] = tuple(map(int, value))  # an equal value is another one
    assert not made.answers
    second["y"] = value
    assert made.answers
    second["z"] = None
    assert not made.answers
    del second["z"]
    assert made.answers
    del first["x"]
    assert not made.answers


def test_a_name_that_changes_ends_the_time():
    space = {"x": 1}
    made = Made(state([(space, "x", 1)]))
    assert made.call(12, 18) == 6
    space["x"] = 2
    assert made.call(12, 18) is NotImplemented
    space["x"] = 1
    assert made.call(12, 18) is NotImplemented  # Python looks first
    made.more_time()
    assert made.call(12, 18) == 6


def test_whole_dictionaries():
    space = {"x": 1}
    made = Made(state(whole=[{}, space]))
    assert made.answers
    space["x"] = 2  # values are names' business
    assert made.answers
    space["y"] = 1
    assert not made.answers
    del space["y"]
    assert made.answers
    space.clear()
    assert not made.answers


def test_cells():
    value = ["x"]
    full, empty = types.CellType(value), types.CellType()
    made = Made(state(cells=[(full, value), (empty, MISSING)]))
    assert made.answers
    full.cell_contents = ["x"]
    assert not made.answers
    full.cell_contents = value
    assert made.answers
    empty.cell_contents = None
    assert not made.answers
    del empty.cell_contents
    assert made.answers


CHANGES = {
    "__code__": (lambda a, b=2, *, c=3: b).__code__,
    "__defaults__": (5,),
    "__kwdefaults__": {"c": 3},
    "__annotations__": {"c": int},
}


@pytest.mark.parametrize("part", CHANGES)
def test_parts_of_functions(part):
    bare = types.FunctionType(plain.__code__, {}, "bare")
    function = types.FunctionType(plain.__code__, {}, "f", (2,))
    function.__kwdefaults__, function.__annotations__ = {"c": 3}, {"c": int}
    made = Made(state(functions=[bare, function]))
    assert made.answers
    for one in (function, bare):
        before = getattr(one, part)
        setattr(one, part, CHANGES[part])
        assert not made.answers, one
        setattr(one, part, before)
        assert made.answers


ANEW = """
import sys
sys.path.insert(0, sys.argv[1])
import test_dispatcher as tests
for name in ("a_deadline", "names_in_dictionaries", "whole_dictionaries", "cells"):
    getattr(tests, f"test_{name}")()
for part in tests.CHANGES:
    tests.test_parts_of_functions(part)
print("as here")
"""


def test_in_a_new_process():
    """The code of dispatchers is made of text when the module is imported: here, from the text."""
    words = [sys.executable, "-c", ANEW, str(Path(__file__).parent)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.stdout == "as here\n", done.stderr


# -- which launcher


def test_the_number_of_arguments():
    made = Made(state(), (math.gcd, Rules(2, (0, 1))), (math.lcm, Rules(3, (0, 1, 2))))
    assert made.call(12, 18) == 6
    assert made.call(4, 6, 10) == 60
    for arguments in ((), (1,), (1, 2, 3, 4)):
        assert made.call(*arguments) is NotImplemented


@pytest.mark.parametrize(
    ("passed", "wanted"), [((), 0), ((0,), 12), ((1,), 18), ((0, 2), 4), ((1, 2), 2), ((0, 1), 6)]
)
def test_the_arguments_that_a_launcher_gets(passed, wanted):
    made = Made(state(), (math.gcd, Rules(3, passed)))
    assert made.call(12, 18, 8) == wanted


def test_many_arguments():
    most = dispatchers.MOST_ARGUMENTS
    assert most == 64  # a word has a bit for each
    made = Made(state(), (math.gcd, Rules(most, tuple(range(most)))))
    assert made.call(*(6 * (n + 1) for n in range(most))) == 6
    made = Made(state(), (math.gcd, Rules(most, (1, most - 1))))
    assert made.call(*[1] * (most - 2), 12, 18) == 1
    assert made.call(1, 12, *[1] * (most - 3), 18) == 6
    assert not made.dispatcher.add(math.gcd, Rules(most + 1, (0,)))


def test_types_and_values_of_arguments():
    text = "".join(["a", "b"])
    made = Made(
        state(),
        (math.gcd, Rules(2, (0,), ((1, str, text),))),
        (math.lcm, Rules(2, (0, 1), ((0, int, ANY), (1, int, ANY)))),
    )
    assert made.call(12, text) == 12
    assert made.call(12, "".join(["a", "b"])) == 12  # equal to it
    assert made.call(12, "ac") is NotImplemented
    assert made.call(4, 6) == 12
    assert made.call(4, True) is NotImplemented  # of a type of its own
    assert made.call(True, 6) is NotImplemented
    assert made.call(4, 6.0) is NotImplemented


def test_a_launcher_whose_rules_do_not_hold_is_passed_over():
    made = Made(state(), (math.gcd, Rules(2, (0,), ((1, int, 7),))), (math.lcm, Rules(2, (0, 1))))
    assert made.call(12, 7) == 12
    assert made.call(4, 6) == 12


def test_a_launcher_that_declines():
    """Another dispatcher is one whose time is over."""
    first = Made(state(), (math.gcd, Rules(2, (0, 1))))
    inner = Made(state(), (first.call, Rules(2, (0, 1))), (math.lcm, Rules(2, (0, 1))))
    assert inner.call(12, 18) == 6
    first.dispatcher.until(0)
    before = sys.getrefcount(NotImplemented)
    assert [inner.call(12, 18) for _ in range(1000)] == [36] * 1000
    assert abs(sys.getrefcount(NotImplemented) - before) < 50


def test_an_error_of_a_launcher():
    made = Made(state(), (math.gcd, Rules(2, (0, 1))), (math.lcm, Rules(2, (0, 1))))
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        made.call(1.5, 2)


def test_how_many_launchers_there_may_be():
    made = Made(state())
    assert made.call.__name__ == "dispatch"
    assert dispatchers.MOST_LAUNCHERS == 32
    for number in range(1, dispatchers.MOST_LAUNCHERS):
        assert made.dispatcher.add(math.lcm, Rules(2 + number, (0, 1)))
    assert made.dispatcher.add(math.lcm, Rules(2, (0, 1))) is False
    assert made.call(12, 18) == 6
    last = 1 + dispatchers.MOST_LAUNCHERS
    assert made.call(4, 6, *[1] * (last - 2)) == 12
    assert made.call(*[1] * (last + 1)) is NotImplemented


def test_how_many_rules_there_may_be():
    most = dispatchers.MOST_RULES
    made = Made(state(), (math.gcd, Rules(2, (0, 1), ((0, int, ANY),) * (most - 1))))
    assert not made.dispatcher.add(math.lcm, Rules(2, (0, 1), ((0, int, ANY),) * 2))
    assert made.dispatcher.add(math.lcm, Rules(3, (0, 1), ((2, str, ANY),)))
    assert not made.dispatcher.add(math.lcm, Rules(4, (0, 1), ((0, int, ANY),)))
    assert made.dispatcher.add(math.lcm, Rules(4, (0, 1)))
    assert made.call(12, 18) == 6
    assert made.call(4, 6, "x") == 12
    assert made.call(4, 6, 1) is NotImplemented
    assert made.call(4, 6, 1, 1) == 12


def test_launchers_live_as_long_as_the_dispatcher():
    inner = Made(state())
    made = Made(state(), (inner.call, Rules(2, (0, 1))))
    busy, inner = inner.busy, None
    gc.collect()
    assert (made.call(12, 18), busy.value) == (6, 0)


# -- what fits the table


def filled(count: int, kind: str) -> State:
    space: dict[str, int] = {f"x{n}": n for n in range(dispatchers.MOST_NAMES + 1)}
    some = {
        "names": lambda: state([(space, f"x{n}", space[f"x{n}"]) for n in range(count)]),
        "dicts": lambda: state([({"x": None}, "x", None) for _ in range(count)]),
        "cells": lambda: state(cells=[(types.CellType(None), None) for _ in range(count)]),
        "functions": lambda: state(
            functions=[types.FunctionType(plain.__code__, {}) for _ in range(count)]
        ),
    }
    return some[kind]()


@pytest.mark.parametrize(
    ("kind", "most"),
    [
        ("names", dispatchers.MOST_NAMES),
        ("dicts", dispatchers.MOST_DICTS),
        ("cells", dispatchers.MOST_CELLS),
        ("functions", dispatchers.MOST_FUNCTIONS),
    ],
)
def test_how_much_fits(kind, most):
    full = filled(most, kind)
    assert full.fits
    assert not filled(most + 1, kind).fits
    made = Made(full)
    assert made.answers
    # The last row is looked at too.
    if kind == "cells":
        full.cells[-1][0].cell_contents = 1
    elif kind == "functions":
        full.functions[-1].__defaults__ = (1,)
    else:
        space, key, _ = full.names[-1]
        space[key] = "another"
    assert not made.answers


def test_only_plain_dictionaries_and_functions_fit():
    class Other(dict):
        pass

    class Callable:
        def __call__(self):
            pass

    assert state([({"x": 1}, "x", 1)], functions=[plain]).fits
    assert not state([(Other(x=1), "x", 1)]).fits
    assert not state(whole=[Other(x=1)]).fits
    assert not state(functions=[len]).fits
    assert not state(functions=[plain, Callable()]).fits
