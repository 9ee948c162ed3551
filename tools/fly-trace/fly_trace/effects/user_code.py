"""Distinguishes the user's functions and classes from those of Python and of packages."""

from __future__ import annotations

import sys
import weakref
from types import CodeType, FunctionType
from typing import Any

from fly_common import code_tables

from fly_trace.core import locations
from fly_trace.rewrite import is_rewritten, is_users, uses_language

# Entries of a class's namespace that Python and `enum` maintain.
_KEPT = """
    __dict__ __weakref__ __doc__ __module__ __annotations__ __abstractmethods__ _abc_impl
    __dataclass_fields__ __dataclass_params__ __match_args__ __slots__ __slotnames__
    __record_fields__ __record_frozen__
    __static_attributes__ __firstlineno__ __annotate__ __annotations_cache__ __parameters__
    _member_map_ _value2member_map_ _member_names_ _unhashable_values_ _hashable_values_
    _new_member_ _use_args_ _member_type_ _value_repr_ _generate_next_value_
"""
CLASS_MACHINERY = frozenset(_KEPT.split())

_HEAP, _IMMUTABLE = 1 << 9, 1 << 8  # Py_TPFLAGS_HEAPTYPE, Py_TPFLAGS_IMMUTABLETYPE


def is_own(module: Any) -> bool:
    """Whether a module belongs to one of this project's packages, other than the kernels'."""
    return isinstance(module, str) and locations.is_own_module(module)


def is_own_type(kind: type) -> bool:
    """Whether a class is one of the language's, or derived from one."""
    return any(is_own(base.__module__) for base in kind.__mro__) or hasattr(kind, "__fly_fields__")


def method_of(kind: type, name: str) -> FunctionType | None:
    """A class's method that is written in Python, if the language does not define it."""
    found = getattr(kind, name, None)
    return found if type(found) is FunctionType and not is_own(found.__module__) else None


def is_users_function(function: FunctionType) -> bool:
    return is_users(function) or is_rewritten(code_tables.code_of(function))


_classes: weakref.WeakKeyDictionary[type, bool] = weakref.WeakKeyDictionary()


def is_users_class(kind: type) -> bool:
    """Whether a class comes from a `class` statement of the user's."""
    known = _classes.get(kind)
    if known is None:
        known = _classes[kind] = _is_users_class(kind)
    return known


def _is_users_class(kind: type) -> bool:
    name = kind.__module__
    if not isinstance(name, str) or is_own(name):
        return False
    if name.partition(".")[0] in sys.stdlib_module_names:
        return False
    if kind.__flags__ & (_HEAP | _IMMUTABLE) != _HEAP:
        return False
    module = sys.modules.get(name)
    if module is None:  # the module was deleted, or C code without a module
        return any(type(item) is FunctionType for item in vars(kind).values())
    file = getattr(module, "__file__", None) or ""
    while not file and "." in name:  # a module that an extension makes has its parent's file
        name = name.rpartition(".")[0]
        file = getattr(sys.modules.get(name), "__file__", None) or ""
    if file.endswith((".so", ".pyd")):
        return False
    return not locations.is_library(file) or uses_language(vars(module))


_names: dict[int, tuple[str, ...]] = {}  # by `id(code)`


def names_of(code: CodeType) -> tuple[str, ...]:
    """The names of globals and attributes in `code` and in nested code."""
    known = _names.get(id(code))
    if known is None:
        known = code_tables.keep(_names, code, _names_in(code))
    return known


def _names_in(code: CodeType) -> tuple[str, ...]:
    found = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found.update(dict.fromkeys(names_of(constant)))
    return tuple(found)
