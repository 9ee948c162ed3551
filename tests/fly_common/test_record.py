"""Records, held against frozen dataclasses of the same fields."""

from __future__ import annotations

import dataclasses
import functools
import subprocess
import sys

import pytest
from fly_common.record import field_names, is_record, record, replace


def point(decorator):
    @decorator
    class Point:
        x: int
        y: int = 2
        name: str = "p"

    return Point


Ours, Theirs = point(record), point(dataclasses.dataclass(frozen=True))
CALLS = [((1,), {}), ((1, 3), {}), ((), {"x": 1, "name": "q"}), ((1, 3, "r"), {})]
WRONG = [((), {}), ((1, 2, "p", 4), {}), ((1,), {"x": 1}), ((1,), {"z": 1})]


@pytest.mark.parametrize(("values", "named"), CALLS)
def test_it_is_as_a_frozen_dataclass(values, named):
    ours, theirs = Ours(*values, **named), Theirs(*values, **named)
    assert repr(ours) == repr(theirs)
    assert vars(ours) == vars(theirs)
    assert ours == Ours(*values, **named)
    assert hash(ours) == hash(Ours(*values, **named)) == hash(theirs)
    assert ours != theirs
    assert vars(replace(ours, y=9)) == vars(dataclasses.replace(theirs, y=9))


@pytest.mark.parametrize(("values", "named"), WRONG)
def test_what_does_not_fit_is_refused(values, named):
    for kind in (Ours, Theirs):
        with pytest.raises(TypeError):
            kind(*values, **named)


def test_records_of_two_classes_differ_and_so_do_other_fields():
    assert Ours(1) != Ours(2)
    assert Ours(1) != point(record)(1)
    assert len({Ours(1), Ours(1), Ours(1, 3)}) == 2


def test_it_stays_what_it_is():
    for one in (Ours(1), Theirs(1)):
        with pytest.raises(AttributeError):
            one.x = 2
        with pytest.raises(AttributeError):
            del one.x


def test_what_a_property_keeps_is_no_field():
    @record
    class Square:
        side: int

        @functools.cached_property
        def area(self) -> int:
            return self.side**2

    one = Square(3)
    assert (one.area, replace(one, side=4).area) == (9, 16)
    assert one == Square(3)


def test_what_is_called_at_the_end_may_refuse():
    @record
    class Positive:
        x: int

        def __post_init__(self) -> None:
            if self.x < 0:
                raise ValueError("negative")

    with pytest.raises(ValueError, match="negative"):
        replace(Positive(1), x=-1)


def test_it_imports_neither_inspect_nor_typing():
    code = "import sys, fly_common.record; print({'inspect', 'typing'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_fields_by_name():
    assert field_names(Ours(1)) == tuple(one.name for one in dataclasses.fields(Theirs(1)))
    assert field_names(Theirs(1)) == field_names(Ours(1))
    assert replace(Theirs(1), y=5) == Theirs(1, 5)
    assert is_record(Ours(1))
    assert not is_record(Theirs(1))
    assert not is_record(Ours)
