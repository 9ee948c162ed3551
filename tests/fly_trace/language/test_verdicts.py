"""Every statement and expression of Python has a verdict: it runs as Python would, or is refused
with its position, a message and mostly a hint. See `verdicts`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from fly_common.errors import FlyError

sys.path.insert(0, str(Path(__file__).parents[1]))
from both_ways import arguments, on_emulator, run_python, scalars, source_of
from trace_helpers import trace_source

from . import verdicts
from .verdicts import Row

ROWS = verdicts.rows()
SCALARS = (
    (0, 0, 0.5, 0.25),
    (1, 5, -2.5, 0.25),
    (3, 2, 4.0, -1.5),
    (5, 3, 0.0, 3.0),
    (7, 7, 1.5, 1.5),
    (-4, 6, 100.25, 2.0),
)
TOP = '''
import collections, contextlib, dataclasses, functools, types
from typing import NamedTuple

@dataclasses.dataclass
class Pair:
    x: object
    y: object

    @property
    def both(self):
        return self.x + self.y

    def __add__(self, other):
        return Pair(self.x + other.x, self.y + other.y)

class Point(NamedTuple):
    x: object
    y: object

class Slotted:
    __slots__ = ("x", "y")

    def __init__(self, x, y):
        self.x = x
        self.y = y

SHARED = [1, 2]

class Scaled:
    """A context manager that means something while tracing."""

    def __init__(self, by):
        self.by = by

    def __enter__(self):
        return self.by * 2

    def __exit__(self, *_):
        return False

class Window:
    """Its methods, most of which Python calls, have dynamic control flow."""

    def __init__(self, v):
        self.__shift = 3
        if v > 6:
            self.v = v - 6
            return
        self.v = v

    def __add__(self, other):
        if other > 3:
            return Window(self.v + other)
        return Window(self.v - 1)

    def __iadd__(self, other):
        if other > 3:
            self.v = self.v + other
        return self

    def __neg__(self):
        return Window(-self.v if self.v > 0 else self.v)

    def __lt__(self, other):
        for i in range(self.v & 3):
            if i + self.v > other.v:
                return False
        return self.v < other.v

    def __eq__(self, other):
        if self.v > 3:
            return other.v > 3
        return self.v == other.v

    def __getitem__(self, i):
        if i > 2:
            return self.v
        return self.v + i

    def __setitem__(self, i, value):
        if i > 2:
            self.v = value
        else:
            self.v = value + i

    def __call__(self, limit, by=2):
        n = limit & 1
        while n * n < (limit & 63):
            n = n + by
        return n

    def __len__(self):
        return 3

    def __bool__(self):
        if self.v > 2:
            return True
        return False

    def __contains__(self, x):
        if x > 2:
            return self.v > x
        return self.v == x

    def __iter__(self):
        for k in range(3):
            yield self.v + k if self.v > k else self.v - 1

    def __enter__(self):
        if self.v > 1:
            return self.v
        return self.v * 5

    def __exit__(self, *_):
        if self.v > 1:
            self.v = self.v - 1
        return False

    @property
    def size(self):
        if self.v > 4:
            return self.v * 2
        return self.v + 1

    @size.setter
    def size(self, value):
        if value > 4:
            self.v = value
        else:
            self.v = value - 1

    @classmethod
    def of(cls, x):
        return cls(x) if x > 2 else cls(x + 1)

    def at_least(self, x):
        if x > self.v:
            return x
        return self.v

    def hidden(self, x):
        if x > self.__shift:
            self.__shift = x
        return self.__shift

def larger(x, y):
    if x > y:
        return x
    return y

def changing(f):
    @functools.wraps(f)
    def inner(x):
        if x > 1:
            return f(x)
        return f(x) + 1
    return inner

@changing
def decorated(x):
    return x if x > 3 else x - 7

@functools.singledispatch
def dispatched(x):
    if x > 2:
        return x
    return x + 1

@contextlib.contextmanager
def managed(x):
    if x > 2:
        y = x
    else:
        y = x + 5
    yield y

def sign(v):
    if v > 0:
        return 1
    if v < 0:
        return -1
    return 0

def power(v, n):
    if n == 0:
        return fx.Int32(1)
    return v * power(v, n - 1)

def found(I, wanted, n):
    for i in range(n):
        if I[i] == wanted:
            return i
    return -1
'''
FIRST_LINE = source_of("pass", TOP).splitlines().index("    pass") + 1


def named(row: Row) -> str:
    return f"{'_'.join(row.nodes)}-{row.form}"


def of_this_version(row: Row) -> bool:
    return sys.version_info >= row.since


RUNS = [row for row in ROWS if not row.said and of_this_version(row)]
REFUSED = [row for row in ROWS if row.said and of_this_version(row)]


@pytest.mark.parametrize("row", RUNS, ids=named)
def test_runs_as_in_python(row: Row, tmp_path: Path) -> None:
    results = on_emulator(source_of(row.body, TOP), [*map(list, SCALARS)], tmp_path / "k.py")
    different = set()
    for given, found in zip(SCALARS, results, strict=True):
        expected = arguments()
        run_python(row.python, [*expected, *scalars(*given)], TOP)
        different.add(tuple(map(tuple, (expected[0], expected[1]))))
        for a, b in zip(expected, found, strict=True):
            np.testing.assert_array_equal(b, a, err_msg=f"{given}\n{row.body}")
    assert tuple(map(tuple, arguments())) not in different or len(different) > 1, (
        "the row has no effect that could differ"
    )


@pytest.mark.parametrize("row", REFUSED, ids=named)
def test_refused(row: Row, tmp_path: Path) -> None:
    with pytest.raises(FlyError) as caught:
        trace_source(source_of(row.body, TOP), tmp_path)
    error = caught.value
    place = error.place
    assert place is not None
    assert place.line
    assert place.excerpt(), "no caret"
    where = f"{place.line - FIRST_LINE + 1}:{(place.column or 0) - 4}"
    said = f"{where}: {error.message}" + (f"\n{error.hint}" if error.hint else "")
    assert located(in_program(said)) == located(row.said)


def in_program(said: str) -> str:
    """A message with the lines of the program instead of the file's."""
    return re.sub(r"on line (\d+)", lambda found: f"on line {int(found[1]) - FIRST_LINE + 1}", said)


def located(said: str) -> str:
    """Later versions of CPython give some instructions other columns than 3.11."""
    return said if sys.version_info < (3, 12) else re.sub(r"^(-?\d+):\d+:", r"\1:", said)


def test_every_node_has_a_row() -> None:
    covered = {name for row in ROWS for name in row.nodes}
    assert verdicts.node_classes() - covered == set()
    assert covered - verdicts.node_classes() == set()


def test_forms_are_unique() -> None:
    keys = [(row.nodes, row.form) for row in ROWS]
    assert len(set(keys)) == len(keys)


def test_the_page_has_the_table() -> None:
    text = verdicts.PAGE.read_text()
    shown = text.split(verdicts.BEGIN)[1].split(verdicts.END)[0]
    assert shown == verdicts.table(), "run: python tests/fly_trace/language/verdicts.py"
