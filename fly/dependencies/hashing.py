"""A digest of everything a Python function can reach: the key of its trace.

Tracing runs Python, so its result depends on the function's source and on everything that source
uses: helpers in any file, globals, closures, defaults, classes, attributes of modules.
`dependency_hash` follows all of it without running anything, except that it imports modules of the
function's package that the function imports. If it finds something that it cannot
follow (an open file, an object of a C extension, `globals()`, `random`), the digest is None and the
function is traced at each call. There are false misses but no false hits, within these limits: this
project's packages are represented by `fly_trace.fingerprint()`, the standard library by Python's
version, and NumPy's types by NumPy's version.

A `DependencyHash` can also check cheaply whether it is still valid, so that a call does not compute
a digest: names and what plain dictionaries hold are compared by identity, other mutable values by
content.
"""

from __future__ import annotations

import abc
import types
from collections.abc import Mapping
from typing import Any

from fly_common.record import record

from fly.dependencies.bytecode import source_of
from fly.dependencies.function_parts import MISSING, contents_of, keys_and_values, parts_of
from fly.dependencies.kinds import KINDS
from fly.dependencies.traversal import Traversal, Unfollowed


@record
class DependencyHash:
    """`digest` is None if something could not be followed; `reason` then says what."""

    digest: str | None
    reason: str = ""
    names: tuple[tuple[Mapping[str, Any], str, Any], ...] = ()
    cells: tuple[tuple[types.CellType, Any], ...] = ()
    functions: tuple[tuple[types.FunctionType, tuple[Any, ...]], ...] = ()
    classes: tuple[tuple[type, tuple[Any, ...]], ...] = ()
    sources: tuple[tuple[types.CodeType, str], ...] = ()
    dictionaries: tuple[tuple[dict[Any, Any], tuple[Any, ...]], ...] = ()
    mutables: tuple[tuple[Any, str | None], ...] = ()
    caches: tuple[Any, ...] = ()
    registrations: object = None  # state of ABC registrations, if `isinstance` may use them

    def holds(self) -> bool:
        """Returns whether nothing has changed since the hash was computed."""
        return (
            self.digest is not None
            and all(space.get(name, MISSING) is value for space, name, value in self.names)
            and all(contents_of(cell) is value for cell, value in self.cells)
            and all(_same(parts_of(function), parts) for function, parts in self.functions)
            and all(_same(keys_and_values(vars(made)), parts) for made, parts in self.classes)
            and all(_same(keys_and_values(held), parts) for held, parts in self.dictionaries)
            and all(_digest(value) == digest for value, digest in self.mutables)
            and not any(cache.cache_info().currsize for cache in self.caches)
            and (self.registrations is None or self.registrations == abc.get_cache_token())
        )

    def holds_on_disk(self) -> bool:
        """Returns whether nothing has changed, nor has a function's source in its file."""
        return self.holds() and all(source_of(code) == text for code, text in self.sources)


def dependency_hash(function: Any) -> DependencyHash:
    """Computes the dependency hash of `function`."""
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
        sources=tuple(walk.sources),
        dictionaries=tuple((held, keys_and_values(held)) for held in walk.dictionaries),
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
