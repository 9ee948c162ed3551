"""Walks over the values that a function reaches, and computes their digest.

A table (`fly.dependencies.kinds`) maps each kind of value to the function that follows it. The walk
also records what is needed to check later whether these values have changed.
"""

from __future__ import annotations

import struct
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any, TypeAlias

from fly_common.record import field, record
from fly_host import library

from fly.dependencies import stable_names
from fly.dependencies.function_parts import MISSING

MOST_VALUES = 20_000  # a function that reaches more is traced at each call

SCALARS: dict[type, Callable[[Any], str | bytes]] = {
    type(None): repr,
    type(...): repr,
    type(NotImplemented): repr,
    bool: repr,
    int: hex,  # of any length; repr refuses more than 4,300 digits
    float: lambda value: struct.pack(">d", value),
    complex: lambda value: struct.pack(">dd", value.real, value.imag),
    str: lambda value: value,
    bytes: lambda value: value,
    range: repr,
}


class Unfollowed(Exception):
    """A value whose influence on the trace cannot be determined."""


@record(frozen=False)
class Traversal:
    kinds: Kinds
    hash: Any = field(default_factory=lambda: sha256(sys.version.encode()))
    seen: dict[int, int] = field(default_factory=dict)
    alive: list[Any] = field(default_factory=list)  # keeps the ids valid
    names: dict[tuple[int, str], tuple[Mapping[str, Any], str, Any]] = field(default_factory=dict)
    cells: list[tuple[types.CellType, Any]] = field(default_factory=list)
    functions: list[tuple[types.FunctionType, tuple[Any, ...]]] = field(default_factory=list)
    classes: list[tuple[type, tuple[Any, ...]]] = field(default_factory=list)
    sources: list[tuple[types.CodeType, str]] = field(default_factory=list)
    mutables: list[Any] = field(default_factory=list)  # other than plain dictionaries
    dictionaries: list[dict[Any, Any]] = field(default_factory=list)
    caches: list[Any] = field(default_factory=list)  # caches of functools, all of them empty
    registrations: object = None  # state of ABC registrations, if `isinstance` may use them

    def emit(self, *texts: str | bytes) -> None:
        parts: list[bytes] = []
        for text in texts:
            data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
            parts += b"%d:" % len(data), data
        self.hash.update(b"".join(parts))

    def library_function(self, name: str) -> None:
        """Follows a function that programs call by name (`fly.register_call`). It does not run
        while a host function is traced, but its shape rule does."""
        self.emit("library function", name)
        if (found := self.name(library.registered, name)) is not MISSING:
            self.value(found.shape)

    def value(self, value: Any) -> None:
        kind = type(value)
        if kind in SCALARS:
            if kind is str and value in stable_names.INTROSPECTION:
                raise Unfollowed(f"it looks at {value}")
            self.emit(kind.__name__, SCALARS[kind](value))
            if kind is str and value in library.registered:
                self.library_function(value)
            return
        # Shared values and cycles: later occurrences are represented by a number.
        if (number := self.seen.get(id(value))) is not None:
            self.emit("again", str(number))
            return
        self.seen[id(value)] = len(self.seen)
        self.alive.append(value)
        if len(self.seen) > MOST_VALUES:
            raise Unfollowed(f"it reaches more than {MOST_VALUES} values")
        follow = next(follow for kind, follow in self.kinds if isinstance(value, kind))
        follow(self, value)

    def values(self, tag: str, values: Iterable[Any]) -> None:
        items = tuple(values)
        self.emit(tag, str(len(items)))
        for item in items:
            self.value(item)

    def mutable(self, value: Any) -> None:
        (self.dictionaries if type(value) is dict else self.mutables).append(value)

    def name(self, space: Mapping[str, Any], name: str) -> Any:
        value = space.get(name, MISSING)
        self.names[id(space), name] = (space, name, value)
        return value

    def leaf(self, module: str, name: str) -> bool:
        """If (module, name) identifies the value, adds it to the digest and returns True."""
        if not stable_names.is_known(module):
            return False
        self.emit("known", module, name)
        return True


# Types with the function that follows their objects. The first that fits an object is its row; one
# fits everything.
Kinds: TypeAlias = tuple[tuple[Any, Callable[[Traversal, Any], None]], ...]
