"""Each kind of value: what its digest is made of, what is looked at again, and what is refused."""

from __future__ import annotations

import collections
import enum
import functools
import math
import operator
import os
import random
import re
import subprocess
import sys
import typing
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fly
from fly.dependencies.hashing import dependency_hash

from .values_of_kinds import Method, Open, Plain, digest, kernel, one, other, plain, reason


class Words(list):
    pass


class Numbers(tuple):
    pass


class Table(dict):
    pass


class Group(set):
    pass


class Frozen(frozenset):
    pass


class Int32(int):
    """Not one of the language's, whose state is its number."""


class Static(staticmethod):
    pass


class Partial(functools.partial):
    pass


def opened(made: Any, **attributes: Any) -> Any:
    vars(made).update(attributes)
    return made


class Kind(enum.Enum):
    ONE = 1
    TWO = 2


DIFFERENT = [
    ([1, 2], Words([1, 2])),
    ((1, 2), Numbers((1, 2))),
    ({1: 2}, Table({1: 2})),
    ({1, 2}, Group({1, 2})),
    (frozenset({1}), Frozen({1})),
    (opened(Words([1]), a=1), opened(Words([1]), a=2)),
    (opened(Numbers([1]), a=1), opened(Numbers([1]), a=2)),
    (opened(Table(), a=1), opened(Table(), a=2)),
    (opened(Group(), a=1), opened(Group(), a=2)),
    ({1, "a"}, {1, "b"}),
    (slice(1, 2), slice(2, 1)),
    (slice(1, 2, 3), slice(1, 2)),
    (collections.defaultdict(int), collections.defaultdict(float)),
    (collections.defaultdict(int), {}),
    (math.sin, math.cos),
    ("ab".join, "ac".join),
    ("ab".join, "ab".strip),
    (staticmethod(one), staticmethod(other)),
    (staticmethod(one), classmethod(one)),
    (property(one), property(other)),
    (property(one), property(None, one)),
    (property(one, one), property(one, None, one)),
    (functools.partial(one), functools.partial(other)),
    (functools.partial(one, 1), functools.partial(one, 2)),
    (functools.partial(one, x=1), functools.partial(one, x=2)),
    (opened(functools.partial(one), a=1), opened(functools.partial(one), a=2)),
    (Kind.ONE, Kind.TWO),
    (list[int], list[str]),
    (list[int], tuple[int]),
    (int | str, int | float),
    (typing.Optional[int], typing.Optional[str]),  # noqa: UP045
    (typing.Annotated[int, 1], typing.Annotated[int, 2]),
    (typing.TypeVar("T"), typing.TypeVar("T", bound=int)),
    (typing.TypeVar("T", int, str), typing.TypeVar("T", int, float)),
    (opened(Open(), __wrapped__=one, a=1), opened(Open(), __wrapped__=one, a=2)),
    (functools.partialmethod(one), functools.partialmethod(other)),
    (opened(Static(one), a=1), opened(Static(one), a=2)),
    (opened(Partial(one), a=1), opened(Partial(one), a=2)),
    (Partial(one), functools.partial(one)),
    (typing.List[int], typing.Set[int]),  # noqa: UP006
    (typing.NewType("N", int), typing.NewType("N", float)),
    (typing.List["a"], typing.List["b"]),  # type: ignore[name-defined]  # noqa: F821, UP006
    (plain(a=1), plain(a=2)),
    (plain(a=1), plain(b=1)),
    (plain(a=1), plain(a=1, b=1)),
    (Plain.a, Plain.b),  # type: ignore[attr-defined]
    (str.upper, str.lower),
    (str.upper, bytes.upper),
    (int.__add__, int.__sub__),
    (vars(int)["real"], vars(int)["imag"]),
    (vars(float)["fromhex"], vars(dict)["fromkeys"]),
    (Method().one, Method().other),
    (SimpleNamespace(a=1), SimpleNamespace(a=2)),
    (SimpleNamespace(a=1), SimpleNamespace(b=1)),
    (opened(Open(), a=1), opened(Open(), a=2)),
    (operator.itemgetter(1), operator.itemgetter(2)),
    (operator.itemgetter(1), operator.attrgetter("a")),
    (re.compile("a"), re.compile("b")),
    (re.compile("a"), re.compile("a", re.IGNORECASE)),
    (collections.deque([1]), collections.deque([2])),
    (collections.deque([1], 2), collections.deque([1], 3)),
    (collections.OrderedDict({1: 2}), collections.OrderedDict({1: 3})),
    (collections.Counter("a"), collections.Counter("b")),
    (np.dtype("f4"), np.dtype("f8")),
    (np.dtype("f4"), np.dtype("f4", metadata={"a": 1})),
    (np.dtype([("a", "f4")]), np.dtype([("b", "f4")])),
    (np.add, np.subtract),
    (np.float32, np.float64),
    (np.float32(1), np.float32(2)),
    (np.float32(1), np.float64(1)),
    (np.float32(1), np.array(1, np.float32)),
    (np.int32(0), np.float32(0)),
    (np.arange(4), np.arange(1, 5)),
    (np.arange(4), np.arange(4).reshape(2, 2)),
    (np.zeros((2, 2)), np.zeros((2, 2), order="F")),
    (np.arange(4).view(np.recarray), np.arange(4)),
]


@pytest.mark.parametrize(
    ("first", "second"), DIFFERENT, ids=[str(number) for number in range(len(DIFFERENT))]
)
def test_two_values_that_differ(first: Any, second: Any):
    assert digest(first) != digest(second)
    assert digest(first) == digest(first)


def test_a_read_only_array_is_another_one():
    array, locked = np.zeros(3), np.zeros(3)
    locked.flags.writeable = False
    assert digest(array) != digest(locked)


def test_a_set_has_no_order():
    values = [1, "a", 8, 0, "b", 2.5]
    turned = list(reversed(values))
    assert digest(set(values)) == digest(set(turned))
    assert digest({0, 8}) == digest({8, 0})
    assert digest(frozenset(values)) == digest(frozenset(turned))


def test_a_dictionary_has_an_order():
    assert digest({1: 2, 3: 4}) != digest({3: 4, 1: 2})


CHANGED_IN_PLACE = {
    "list": ([1], lambda v: v.append(2)),
    "set": ({1}, lambda v: v.add(2)),
    "dictionary": ({1: 2}, lambda v: v.update({1: 3})),
    "array": (np.zeros(2), lambda v: v.fill(1)),
    "partial": (functools.partial(one), lambda v: setattr(v, "a", 1)),
    "object": (opened(Open(), a=1), lambda v: setattr(v, "a", 2)),
    "slots": (plain(a=1), lambda v: setattr(v, "b", 2)),
    "namespace": (SimpleNamespace(a=1), lambda v: setattr(v, "a", 2)),
    "deque": (collections.deque([1]), lambda v: v.append(2)),
    "method's object": (opened(Open(), a=[1]), lambda v: v.a.append(2)),
}


@pytest.mark.parametrize(("value", "change"), CHANGED_IN_PLACE.values(), ids=CHANGED_IN_PLACE)
def test_what_can_be_changed_in_place_is_looked_at_again(value: Any, change: Any):
    before = digest(value)
    wrapped = (value, (value,), {"a": value}, functools.partial(one, value), staticmethod(value))
    found = [dependency_hash(one) for one in wrapped]
    assert all(one.holds() for one in found)
    change(value)
    assert not any(one.holds() for one in found)
    assert digest(value) != before


def test_an_enum_s_member_that_was_given_an_attribute():
    class Given(enum.Enum):
        A = 1

    before = dependency_hash(Given.A)
    assert not any(value is Given.A for value, _ in before.mutables)
    Given.A.extra = 1  # type: ignore[attr-defined]
    found = dependency_hash(Given.A)
    assert found.digest not in (None, before.digest)
    Given.A.extra = 2  # type: ignore[attr-defined]
    assert not found.holds()


def test_what_is_frozen_and_ours_is_not_looked_at_again():
    from fly_dialect.layouts.integers import Int

    assert not dependency_hash(Int(4)).mutables

    @dataclass(frozen=True)
    class Theirs:
        a: int = 1

    assert dependency_hash(Theirs()).mutables


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({(1, 2)}, "a set of other things than numbers and strings has no stable order"),
        (open, "open is not known to be pure"),
        (eval, "builtins.eval is not known to be pure"),
        (random.random, "an object of type random.Random"),
        (random.Random, "the type Random comes from a C extension"),
        (random, "the module random is used other than by module.name"),
        (iter([1]).__next__, None),
        ((number for number in ()), "an object of type generator"),
        (np.random.default_rng(0), "an object of type numpy.random._generator.Generator"),
        (Int32(1), "Int32"),
        (np.array([object()]), "an object of type numpy.ndarray"),
        (object(), None),
        (type("Own", (random.Random,), {})(), "an object of type"),
        (type("Own", (random.Random,), {}), "the type Random comes from a C extension"),
    ],
)
def test_what_is_refused(value: Any, why: str | None):
    if why is None:
        dependency_hash(value)
    else:
        assert why in reason(value)


def test_types_of_the_same_name_are_told_apart():
    """What `typing` prints of them is equal."""

    def made(value: int) -> type:
        return type("Made", (), {"a": value, "__module__": __name__})

    for generic in (typing.Optional, typing.List, typing.Type):  # noqa: UP006
        assert repr(generic[made(1)]) == repr(generic[made(2)])
        assert digest(generic[made(1)]) != digest(generic[made(2)])
        assert digest(generic[made(1)]) == digest(generic[made(1)])
    # ... in bounds and names too
    bounds = [typing.TypeVar("T", bound=made(value)) for value in (1, 2)]
    assert digest(bounds[0]) != digest(bounds[1])
    assert digest(typing.ForwardRef("a")) != digest(typing.ForwardRef("b"))


@pytest.mark.parametrize("signature", ["a, /, b", "a, *, b", "a, b, /", "*, a, b"])
def test_how_a_function_takes_its_arguments_counts(signature: str):
    def made(text: str) -> Any:
        space: dict[str, Any] = {"__name__": __name__}
        exec(compile(f"def f({text}): return a", "<text>", "exec"), space)
        return space["f"]

    assert digest(made(signature)) != digest(made("a, b"))


def test_an_array_of_numpy_s_subclasses_has_attributes():
    first, second = (opened(np.arange(4).view(np.recarray), unit=unit) for unit in ("m", "s"))
    assert digest(first) != digest(second)
    assert digest(first) == digest(first)
    found = dependency_hash(first)
    vars(first)["unit"] = "km"
    assert not found.holds()

    class Own(np.ndarray):
        pass

    assert "Own" in reason(np.arange(4).view(Own))


def test_slots_of_the_same_values_under_other_names():
    class Left:
        __slots__ = ("a", "b")

    class Right:
        __slots__ = ("a", "b")

    Right.__qualname__ = Left.__qualname__
    Right.__name__ = Left.__name__
    one, other = Left(), Left()
    one.a = 1
    other.b = 1
    assert digest(one) != digest(other)


def test_objects_of_c_types_are_told_apart_by_their_type():
    """The state that pickle would store is the same."""
    assert digest(operator.itemgetter(1)) != digest(operator.itemgetter("a"))
    assert digest(collections.OrderedDict()) != digest(collections.deque())
    assert digest(collections.deque([1, 2])) == digest(collections.deque([1, 2]))
    assert digest(collections.OrderedDict({1: 2})) == digest(collections.OrderedDict({1: 2}))


def test_what_hides_a_builtin_s_name_is_no_builtin():
    """Only functions of `builtins` can look around; a C function of another module of that name is
    judged by its module."""
    import _operator

    assert "builtins.globals" in reason(globals)
    assert digest(_operator.add)


def test_how_a_function_is_compiled_is_not_what_it_is():
    assert digest(fly.jit(kernel)) == digest(fly.jit(target="gfx950", opt_level=1)(kernel))
    made = fly.jit(kernel)
    before = digest(made)
    made._kept[1] = 1  # type: ignore[assignment]
    assert digest(made) == before


def test_an_extent_of_the_language_is_its_number():
    from fly_dialect.layouts.integers import Int

    assert digest(Int(4)) == digest(Int(4))
    assert digest(Int(4)) != digest(Int(8))


def test_an_extent_of_a_tensor_is_its_number():
    from fly_trace.layouts.int_tuples import Extent

    assert isinstance(Extent(4), int)
    assert digest(Extent(4)) == digest(Extent(4))
    assert digest(Extent(4)) != digest(Extent(8))
    assert digest(Extent(4)) != digest(4)


def test_a_set_in_code_has_no_order():
    """Constant sets of strings are in another order in each process."""
    script = (
        "from fly.dependencies.hashing import dependency_hash\n"
        "def f(x): return x in {'a', 'b', 'c', 'd', 'e', 'f', 'g'}\n"
        "print(dependency_hash(f).digest)\n"
    )
    found = set()
    for seed in "123":
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        words = [sys.executable, "-c", script]
        done = subprocess.run(words, capture_output=True, text=True, env=environment, check=True)
        found.add(done.stdout)
    assert len(found) == 1
    assert len(found.pop()) == 65


def test_torch_s_types():
    torch = pytest.importorskip("torch")
    assert digest(torch.float32) == digest(torch.float32)
    assert digest(torch.float32) != digest(torch.float16)
    assert "torch" in reason(torch.zeros(1))
