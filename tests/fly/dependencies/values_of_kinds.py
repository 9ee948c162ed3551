"""Values of each kind, and their digests."""

from __future__ import annotations

from typing import Any

from fly.dependencies.hashing import dependency_hash


def digest(value: Any) -> str:
    found = dependency_hash(value)
    assert found.digest, found.reason
    assert found.holds()
    return found.digest


def reason(value: Any) -> str:
    found = dependency_hash(value)
    assert found.digest is None
    return found.reason


def one(x=1):
    return x


def other(x=1):
    return x


class Plain:
    __slots__ = ("a", "b")


class Open:
    pass


def plain(**slots: Any) -> Plain:
    made = Plain()
    for name, value in slots.items():
        setattr(made, name, value)
    return made


class Method:
    def one(self): ...

    def other(self): ...


def kernel(x):
    return x
