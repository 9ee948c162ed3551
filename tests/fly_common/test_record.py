"""Records, held against frozen dataclasses of the same fields."""

from __future__ import annotations

import dataclasses
import functools
import subprocess
import sys
from typing import ClassVar

import pytest
from fly_common.record import as_dict, field, field_names, fields_of, is_record, record, replace


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


def with_fields(decorator, field):
    @decorator
    class Kept:
        size: int
        names: list[str] = field(default_factory=list)
        hidden: int = field(default=3, repr=False)
        later: int = field(init=False)

    return Kept


def mutable(decorator):
    return decorator(frozen=False) if decorator is record else decorator


def test_fields_are_described_as_in_dataclasses():
    ours = with_fields(mutable(record), field)
    theirs = with_fields(mutable(dataclasses.dataclass), dataclasses.field)
    one, other = ours(1, hidden=4), theirs(1, hidden=4)
    one.later = other.later = 5
    assert repr(one) == repr(other)
    assert vars(one) == vars(other)
    assert ours(2).names is not ours(2).names
    assert list(fields_of(ours)) == list(fields_of(theirs)) == ["size", "names", "hidden", "later"]
    for kind in (fields_of(ours), fields_of(theirs)):
        assert [name for name, item in kind.items() if item.is_required] == ["size"]
        assert kind["hidden"].default == 3
    for kind in (ours, theirs):
        with pytest.raises(TypeError):
            kind(1, later=2)
        with pytest.raises(TypeError):
            hash(kind(1))


def test_a_record_that_is_not_compared_is_itself():
    for decorator in (record, dataclasses.dataclass):

        @decorator(frozen=False, eq=False)
        class Node:
            value: int

        one = Node(1)
        one.value = 2
        assert (one.value, one == Node(2), one in {one}) == (2, False, True)


def test_fields_are_inherited():
    for decorator in (record, dataclasses.dataclass(frozen=True)):

        @decorator
        class Base:
            kind: ClassVar[str] = "base"
            x: int
            y: int = 1

        @decorator
        class Derived(Base):
            z: int = 2
            y: int = 5

        assert repr(Derived(7)) == f"{Derived.__qualname__}(x=7, y=5, z=2)"
        assert Derived(7) == Derived(7, 5, 2) != Base(7, 5)
        assert Derived(1, 2, 3).z == 3


def test_methods_of_the_class_stay():
    @record
    class Text:
        value: str

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Text) and self.value.lower() == other.value.lower()

        def __hash__(self) -> int:
            return hash(self.value.lower())

        def __repr__(self) -> str:
            return "a text"

    assert (Text("A") == Text("a"), len({Text("A"), Text("a")}), repr(Text("a"))) == (
        True,
        1,
        "a text",
    )


def test_the_thousandth_is_as_the_first():
    """A class of which many are made gets another `__init__`."""
    kind = point(record)
    first = [kind(*values, **named) for values, named in CALLS]
    for _ in range(1000):
        assert kind(1, name="q") == kind(1, 2, "q")
    assert [kind(*values, **named) for values, named in CALLS] == first
    assert vars(kind(1)) == vars(Theirs(1))
    for values, named in WRONG:
        with pytest.raises(TypeError):
            kind(*values, **named)
    with pytest.raises(AttributeError):
        kind(1).x = 2


def test_records_within_records_as_dicts():
    made = as_dict({"points": (Ours(1), [Ours(2)])})
    plain = {"x": 1, "y": 2, "name": "p"}
    assert made == {"points": (plain, [{**plain, "x": 2}])}


@pytest.mark.parametrize("finish", [False, True])
def test_many_of_classes_with_names_of_any_kind(finish: bool):
    """Their `__init__` is that of another class, with other names."""
    names = ["fields", "_1", "_0", "names", "größe"]
    for count in range(1, len(names) + 1):
        chosen = names[-count:]
        space = {"__annotations__": dict.fromkeys(chosen, "int"), chosen[-1]: "default"}
        if finish:
            space["__post_init__"] = lambda self: self.__dict__.update(seen=len(vars(self)))
        ours, theirs = (
            decorator(type("Kind", (), dict(space)))
            for decorator in (record, dataclasses.dataclass(frozen=True))
        )
        for _ in range(20):
            for values in (range(count - 1), range(count)):
                one, other = ours(*values), theirs(*values)
                assert vars(one) == vars(other)
                assert ours(**dict(zip(chosen, values, strict=False))) == one
        with pytest.raises(TypeError):
            ours(*range(count + 1))
