"""Classes, dataclasses and kernels as values: what their digests are made of."""

from __future__ import annotations

import abc
import collections
import enum
import functools
import math
import operator
import types
from dataclasses import dataclass, field, make_dataclass
from typing import Any

import numpy as np
import pytest

import fly
from fly.dependencies.hashing import dependency_hash

from .values_of_kinds import Method, Open, digest, kernel, one, other, reason


@pytest.mark.parametrize("value", [len, math.sin, operator.add, math, functools, int, np.float32])
def test_what_a_name_says_enough_of(value: Any):
    found = dependency_hash(value)
    assert found.digest, found.reason
    assert found.names == found.functions == found.classes == found.mutables == ()


# -- classes


def class_of(**attributes: Any) -> type:
    return type("Made", (), attributes)


def test_a_class_is_its_name_its_bases_and_its_attributes():
    same = digest(class_of(a=1))
    assert digest(class_of(a=1)) == same
    others = [
        class_of(a=2),
        class_of(b=1),
        class_of(a=1, b=1),
        class_of(),
        type("Other", (), {"a": 1}),
        type("Made", (Open,), {"a": 1}),
        type("Made", (Open, Method), {"a": 1}),
        abc.ABCMeta("Made", (), {"a": 1}),
        class_of(a=1, __module__="elsewhere"),
        class_of(a=1, __doc__="text"),
    ]
    found = {digest(made) for made in others}
    assert len(found) == len(others)
    assert same not in found


@pytest.mark.parametrize(
    "make",
    [
        lambda number: abc.ABCMeta("Made", (), {"a": number}),
        lambda number: types.new_class("Made", (), {}, lambda space: space.update(a=number)),
        lambda number: make_dataclass("Made", [("a", int, field(default=number))]),
        lambda number: collections.namedtuple("Made", "a", defaults=(number,)),
        lambda number: enum.Enum("Made", {"A": number}),
    ],
    ids=["ABCMeta", "new_class", "make_dataclass", "namedtuple", "Enum"],
)
def test_a_class_that_the_standard_library_made(make):
    """It says that it is of `abc` or `types`: its name there is no other's."""
    assert digest(make(1)) == digest(make(1))
    assert digest(make(1)) != digest(make(2))


def test_the_order_of_a_class_s_attributes_says_nothing():
    assert digest(class_of(a=1, b=2)) == digest(class_of(b=2, a=1))


def test_a_class_that_changes():
    made = class_of(a=1)
    found = dependency_hash(made)
    assert found.holds()
    made.a = 2  # type: ignore[attr-defined]
    assert not found.holds()


def dataclass_of(item: Any, **options: Any) -> type:
    return dataclass(**options)(type("Made", (), {"__annotations__": {"x": int}, "x": item}))


def test_what_a_dataclass_is_generated_from():
    made = [
        dataclass_of(1),
        dataclass_of(2),
        dataclass_of(1, frozen=True),
        dataclass_of(1, order=True),
        dataclass_of(1, eq=False),
        dataclass_of(field(default=1, init=False)),
        dataclass_of(field(default=1, compare=False)),
        dataclass_of(field(default=1, kw_only=True)),
        dataclass_of(field(default_factory=list)),
        dataclass_of(field(default_factory=dict)),
        dataclass_of(field(default=1, metadata={"a": 1})),
        dataclass_of(field(default=1, metadata={"a": 2})),
    ]
    assert len({digest(one) for one in made}) == len(made)
    assert digest(dataclass_of(1)) == digest(dataclass_of(1))


def test_a_dataclass_s_method_of_ones_own_is_followed():
    def given(number: int) -> type:
        def __repr__(self: Any) -> str:
            return str(number)

        return dataclass(repr=False)(
            type("Made", (), {"__annotations__": {"x": int}, "x": 1, "__repr__": __repr__})
        )

    assert digest(given(1)) != digest(given(2))


def test_what_is_registered_with_an_abstract_class():
    def made(*registered: type) -> type:
        base = abc.ABCMeta("Base", (), {"__module__": __name__})
        for kind in registered:
            base.register(kind)  # type: ignore[attr-defined]
        return base

    plain, ints, both, turned = made(), made(int), made(int, Open), made(Open, int)
    assert digest(plain) == digest(made())
    assert len({digest(one) for one in (plain, ints, both)}) == 3
    assert digest(both) == digest(turned)
    many = [type(f"T{number}", (), {"__module__": __name__}) for number in range(20)]
    assert digest(made(*many)) == digest(made(*reversed(many)))
    found = dependency_hash(plain)
    assert found.registrations is not None
    made(int)
    assert not found.holds()
    assert dependency_hash(Open).registrations is None


# -- what is decorated


def test_a_cache_is_what_it_caches():
    first, second = functools.cache(one), functools.cache(other)
    assert digest(first) != digest(second)
    found = dependency_hash(first)
    assert list(found.caches) == [first]
    first()
    assert not found.holds()
    assert reason(first) == "the cache of one keeps results"


def test_a_kernel_is_its_function_and_what_it_was_given():
    made, again = fly.kernel(kernel), fly.kernel(kernel)
    assert digest(made) == digest(again)
    assert digest(made) != digest(fly.jit(kernel))
    assert digest(made) != digest(fly.kernel(one))
    assert digest(made) != digest(kernel)
    made.extra = 1  # type: ignore[attr-defined]
    with_one = dependency_hash(made)
    assert with_one.digest != digest(again)
    made.extra = 2  # type: ignore[attr-defined]
    assert not with_one.holds()
    assert digest(made) != with_one.digest


def same_named(result: str) -> Any:
    """A function `k` of the same name in the same place, which returns `result`."""
    space: dict[str, Any] = {"__name__": __name__}
    exec(compile(f"def k(x): return {result}", "<text>", "exec"), space)
    return space["k"]


def test_each_part_of_a_kernel_counts():
    first = digest(fly.kernel(same_named("x")))
    assert first == digest(fly.kernel(same_named("x")))
    assert first != digest(fly.kernel(same_named("x + 1")))
    assert first != digest(fly.jit(same_named("x")))
    assert first != digest(fly.kernel(name="other")(same_named("x")))
    assert first != digest(fly.kernel(known_block_size=[64, 1, 1])(same_named("x")))
    named, other = fly.kernel(same_named("x")), fly.kernel(same_named("x"))
    named.a, other.b = 1, 1  # type: ignore[attr-defined]
    assert digest(named) != digest(other)
