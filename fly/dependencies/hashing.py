"""Everything a Python function can reach, as a digest: the key under which its trace is kept.

Tracing runs Python, so its result depends on the function's source and on whatever that looks at:
helpers in any file, globals, closures, defaults, classes, attributes of modules. `dependency_hash`
follows all of it without running anything. What can't be followed (an open file, an object of a C
extension, `globals()`, `random`) makes the digest None: such a function is traced each time. There
are false misses, and no false hits, with these bounds: packages of this project count by their
`fly_trace.fingerprint()`, the standard library by Python's version, NumPy's types by NumPy's.

A `DependencyHash` also knows cheaply whether it still holds, so that a call in a running process
needs no digest: names are compared by identity, mutable values by content.
"""

from __future__ import annotations

import abc
import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fly.dependencies.function_parts import MISSING, contents_of, keys_and_values, parts_of
from fly.dependencies.kinds import KINDS
from fly.dependencies.traversal import Traversal, Unfollowed


@dataclass(frozen=True)
class DependencyHash:
    """`digest` is None where `reason` says what could not be followed."""

    digest: str | None
    reason: str = ""
    names: tuple[tuple[Mapping[str, Any], str, Any], ...] = ()
    cells: tuple[tuple[types.CellType, Any], ...] = ()
    functions: tuple[tuple[types.FunctionType, tuple[Any, ...]], ...] = ()
    classes: tuple[tuple[type, tuple[Any, ...]], ...] = ()
    mutables: tuple[tuple[Any, str | None], ...] = ()
    caches: tuple[Any, ...] = ()
    registrations: object = None  # of classes with abstract ones, where these matter

    def holds(self) -> bool:
        """Whether everything is still what it was."""
        return (
            self.digest is not None
            and all(space.get(name, MISSING) is value for space, name, value in self.names)
            and all(contents_of(cell) is value for cell, value in self.cells)
            and all(_same(parts_of(function), parts) for function, parts in self.functions)
            and all(_same(keys_and_values(vars(made)), parts) for made, parts in self.classes)
            and all(_digest(value) == digest for value, digest in self.mutables)
            and not any(cache.cache_info().currsize for cache in self.caches)
            and (self.registrations is None or self.registrations == abc.get_cache_token())
        )


def dependency_hash(function: Any) -> DependencyHash:
    """What `function` reaches now."""
    walk = Traversal(KINDS)
    try:
        walk.value(function)
        mutables = tuple((value, _digest(value)) for value in walk.mutables)
    except Unfollowed as error:
        return DependencyHash(None, str(error))
    except RecursionError:
        return DependencyHash(None, "what it reaches is nested too deeply")
    return DependencyHash(
        walk.hash.hexdigest(),
        names=tuple(walk.names.values()),
        cells=tuple(walk.cells),
        functions=tuple(walk.functions),
        classes=tuple(walk.classes),
        mutables=mutables,
        caches=tuple(walk.caches),
        registrations=walk.registrations,
    )


def _digest(value: Any) -> str | None:
    walk = Traversal(KINDS)
    try:
        walk.value(value)
    except Unfollowed:
        return None
    return walk.hash.hexdigest()


def _same(now: tuple[Any, ...], then: tuple[Any, ...]) -> bool:
    return len(now) == len(then) and all(a is b for a, b in zip(now, then, strict=True))
