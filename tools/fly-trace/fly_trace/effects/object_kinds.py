"""The `Kind` of each type: how the state of its objects is read.

A kind is composed of the type's parts: a list's items, a dictionary's items, the attributes of a
user class. Programs cannot change the language's own values, so these have no state. The state of
objects of other C extensions and of installed packages is not known.
"""

from __future__ import annotations

import collections
import functools
import itertools
import types
import weakref
from typing import Any

from fly_trace.effects import code_state, library_state, object_state, user_code
from fly_trace.effects.object_state import Kind

SKIPPED = Kind(object_state.no_state)
BY_TYPE: dict[type, Kind] = {
    list: object_state.LIST,
    dict: object_state.DICT,
    set: object_state.SET,
    tuple: object_state.TUPLE,
    frozenset: object_state.FROZENSET,
    bytearray: object_state.BYTES,
    types.MappingProxyType: object_state.PROXY,
    types.FunctionType: code_state.FUNCTION,
    types.MethodType: code_state.held("__self__", "__func__"),
    types.BuiltinMethodType: code_state.held("__self__"),
    types.MethodWrapperType: code_state.held("__self__"),
    functools.partial: code_state.held("func", "args", "keywords"),
    staticmethod: code_state.held("__func__"),
    classmethod: code_state.held("__func__"),
    property: code_state.held("fget", "fset", "fdel"),
    types.GeneratorType: object_state.GENERATOR,
    types.CellType: code_state.held("cell_contents"),
}
# Types whose objects neither have nor hold any state. Types are added when they are first seen.
NEVER: set[type] = set()
for _made in (
    *(int, float, complex, bool, str, bytes, type(None), type(...), type(NotImplemented)),
    *(range, slice, types.ModuleType, types.CodeType, object),
):
    BY_TYPE[_made] = SKIPPED
    NEVER.add(_made)

# The parts of a class's objects, by its bases, in order.
_PARTS: tuple[tuple[type, Kind], ...] = (
    (list, object_state.LIST),
    (collections.OrderedDict, object_state.ORDERED),
    (dict, object_state.DICT),
    (set, object_state.SET),
    (collections.deque, object_state.DEQUE),
    (bytearray, object_state.BYTES),
    (tuple, object_state.TUPLE),
    (frozenset, object_state.FROZENSET),
)
_ITERATORS = ("builtins", "itertools")
_BY_NAME = {
    ("numpy", "ndarray"): library_state.ARRAY,
    ("numpy.random.mtrand", "RandomState"): library_state.BITS,
    ("numpy.random._generator", "Generator"): library_state.BITS,
    ("torch", "Tensor"): library_state.TORCH,
    ("random", "Random"): library_state.RANDOM,
    ("os", "_Environ"): library_state.ENVIRONMENT,
    ("array", "array"): object_state.BYTES,
    ("functools", "_lru_cache_wrapper"): code_state.held("__wrapped__"),
}


def kind_of(kind: type) -> Kind:
    """The kind of a type's objects."""
    found = BY_TYPE.get(kind) or _of_users.get(kind)
    if found is None:
        found = _find_kind(kind)
        if user_code.is_users_class(kind):
            _of_users[kind] = found
        else:
            BY_TYPE[kind] = found
            if found is SKIPPED:
                NEVER.add(kind)
    return found


# The kinds of the user's classes, which a program may define again and again.
_of_users: weakref.WeakKeyDictionary[type, Kind] = weakref.WeakKeyDictionary()


def _find_kind(kind: type) -> Kind:
    if issubclass(kind, type):
        return code_state.CLASS
    if user_code.is_own_type(kind):
        return code_state.DECORATED if hasattr(kind, "is_decorated") else SKIPPED
    for base in kind.__mro__:
        if (found := _BY_NAME.get((str(base.__module__), base.__qualname__))) is not None:
            return found
    parts = [part for base, part in _PARTS if issubclass(kind, base)]
    if object_state.ORDERED in parts:
        parts.remove(object_state.DICT)
    if kind.__module__ in _ITERATORS and hasattr(kind, "__next__"):
        parts.append(object_state.ITERATOR)
    if user_code.is_users_class(kind) or kind.__module__ in ("collections", "types"):
        import enum

        parts.append(
            object_state.MEMBER if issubclass(kind, enum.Enum) else object_state.ATTRIBUTES
        )
    if not parts:
        immutable = kind.__module__ in ("builtins", "typing") or kind.__module__ in _VALUES
        return SKIPPED if immutable else object_state.OPAQUE
    return parts[0] if len(parts) == 1 else _composed(parts)


_VALUES = ("decimal", "fractions", "pathlib", "datetime", "re", "operator", "numpy", "types")


def _composed(parts: list[Kind]) -> Kind:
    """The kind of a subclass of a container, with attributes of its own."""
    stateful = [part for part in parts if part.has_state]

    def same(a: Any, b: Any) -> bool:
        return all(part.same(x, y) for part, x, y in zip(stateful, a, b, strict=True))

    def write(value: Any, state: Any) -> None:
        for part, item in zip(stateful, state, strict=True):
            assert part.write is not None
            part.write(value, item)

    return Kind(
        lambda value: [part.read(value) for part in stateful],
        same,
        write,
        lambda value: itertools.chain.from_iterable(part.children(value) for part in parts),
    )
