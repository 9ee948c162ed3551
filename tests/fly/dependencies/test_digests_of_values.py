"""Values that a kernel could tell apart have two digests: what each kind of value is made of."""

from __future__ import annotations

from pathlib import Path

import pytest

from .digests import digest

MODULE = """
import collections
import enum
import functools
import math
import operator
import types
import typing
from dataclasses import dataclass, field

import numpy as np


def plain(x=1, *, y=2):
    return x


def other(x=1, *, y=2):
    return x


class Plain:
    __slots__ = ("a", "b")

    def __init__(self, a=1):
        self.a = a
        self.b = 2

    def method(self):
        return self.a

    def another(self):
        return self.a


class Open:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


class Kind(enum.Enum):
    ONE = 1
    TWO = 2


Pair = collections.namedtuple("Pair", "x y")


@dataclass(frozen=True)
class Point:
    x: int
    y: int = 0


VALUE = {value}


def f():
    return VALUE
"""

PAIRS = [
    ("[1, [2]]", "[[1], 2]"),
    ("[1, 2]", "[2, 1]"),
    ("(1, 2, 3)", "((1, 2), 3)"),
    ("((1, 2), 3)", "(1, (2, 3))"),
    ("([], 1)", "([1],)"),
    ("[1, 2]", "(1, 2)"),
    ("(1, 2)", "Pair(1, 2)"),
    ("{1: 2}", "{2: 1}"),
    ("{1: 2}", "{1: 3}"),
    ("{1: 2, 3: 4}", "{3: 4, 1: 2}"),
    ("{1: 2}", "collections.OrderedDict({1: 2})"),
    ("{1, 2}", "{1, 3}"),
    ("{1, 2}", "frozenset({1, 2})"),
    ("1", "True"),
    ("1", "1.0"),
    ("'1'", "1"),
    ("'a'", "b'a'"),
    ("0.0", "-0.0"),
    ("None", "0"),
    ("None", "..."),
    ("plain", "other"),
    ("math.sin", "math.cos"),
    ("math.sin", "np.sin"),
    ("'ab'.join", "'ac'.join"),
    ("'ab'.join", "'ab'.strip"),
    ("str.upper", "str.lower"),
    ("str.upper", "bytes.upper"),
    ("functools.partial(plain, 1)", "functools.partial(plain, 2)"),
    ("functools.partial(plain, 1)", "functools.partial(other, 1)"),
    ("functools.partial(plain, x=1)", "functools.partial(plain, y=1)"),
    ("functools.partial(plain, x=1)", "functools.partial(plain, x=2)"),
    ("Kind.ONE", "Kind.TWO"),
    ("Kind.ONE", "1"),
    ("list[int]", "list[str]"),
    ("list[int]", "tuple[int]"),
    ("int | str", "int | float"),
    ("typing.Optional[int]", "typing.Optional[str]"),
    ("Plain(1)", "Plain(2)"),
    ("Plain().method", "Plain().another"),
    ("Plain(1).method", "Plain(2).method"),
    ("Plain.a", "Plain.b"),
    ("Open(a=1)", "Open(a=2)"),
    ("Open(a=1)", "Open(b=1)"),
    ("Open(a=1)", "Open(a=1, b=1)"),
    ("Point(1)", "Point(2)"),
    ("Point(1, 0)", "Point(0, 1)"),
    ("Point", "Plain"),
    ("np.arange(4)", "np.arange(5)"),
    ("np.arange(4)", "np.arange(4).reshape(2, 2)"),
    ("np.arange(4)", "np.arange(4.0)"),
    ("np.float32(1)", "np.float64(1)"),
    ("np.float32(1)", "np.float32(2)"),
    ("np.dtype('f4')", "np.dtype('f8')"),
    ("types.SimpleNamespace(a=1)", "types.SimpleNamespace(a=2)"),
    ("types.SimpleNamespace(a=1)", "types.SimpleNamespace(b=1)"),
    ("int", "float"),
    ("range(3)", "range(4)"),
    ("slice(3)", "slice(4)"),
]


@pytest.mark.parametrize(("old", "new"), PAIRS, ids=[f"{old}|{new}" for old, new in PAIRS])
def test_values_differ(tmp_path: Path, old: str, new: str):
    made = [digest(tmp_path / "m.py", MODULE.replace("{value}", text)) for text in (old, old, new)]
    assert made[0] == made[1]
    assert made[0] != made[2]


CLASS = """
from dataclasses import dataclass, field
{code}

def f():
    return A
"""
CLASSES = [
    ("class A:\n    x = 1", "class A:\n    x = 2"),
    ("class A:\n    x = 1", "class A:\n    y = 1"),
    ("class B:\n    pass\nclass A(B):\n    pass", "class B:\n    pass\nclass A:\n    pass"),
    (
        "@dataclass\nclass A:\n    x: int = 1",
        "@dataclass\nclass A:\n    x: int = 2",
    ),
    (
        "@dataclass\nclass A:\n    x: int = field(default=1, init=False)",
        "@dataclass\nclass A:\n    x: int = field(default=1, init=True)",
    ),
    (
        "@dataclass\nclass A:\n    x: int = field(default=1, compare=False)",
        "@dataclass\nclass A:\n    x: int = field(default=1, compare=True)",
    ),
    (
        "@dataclass\nclass A:\n    x: int = field(default=1, kw_only=True)",
        "@dataclass\nclass A:\n    x: int = field(default=1)",
    ),
    ("@dataclass\nclass A:\n    x: int = 1", "@dataclass(frozen=True)\nclass A:\n    x: int = 1"),
    ("@dataclass\nclass A:\n    x: int = 1", "@dataclass(order=True)\nclass A:\n    x: int = 1"),
    (
        "class A:\n    @property\n    def p(self):\n        return 1",
        "class A:\n    @property\n    def p(self):\n        return 2",
    ),
    (
        "class A:\n    @staticmethod\n    def p(x):\n        return 1",
        "class A:\n    @classmethod\n    def p(x):\n        return 1",
    ),
]


@pytest.mark.parametrize(("old", "new"), CLASSES)
def test_classes_differ(tmp_path: Path, old: str, new: str):
    made = [digest(tmp_path / "m.py", CLASS.replace("{code}", text)) for text in (old, old, new)]
    assert made[0] == made[1]
    assert made[0] != made[2]
