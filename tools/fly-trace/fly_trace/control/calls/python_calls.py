"""Functions that Python itself calls: the operators, properties and `__init__` of the user's
classes, and functions that are arguments of `map` or of another function that is not traced.

While a function is traced, these have stand-ins (`rewrite.stand_ins`), so that such calls mean what
calls in rewritten code mean. A class gets them when the trace first meets it: when it is called, or
is or has an object among what the traced function can reach.
"""

from __future__ import annotations

import dis
import functools
import inspect
import linecache
import types
from collections.abc import Iterable, Mapping
from types import FunctionType, MethodType
from typing import Any

from fly_trace.core import locations
from fly_trace.effects import object_kinds, user_code
from fly_trace.effects.snapshots import Snapshot
from fly_trace.rewrite import is_rewritten, is_users, stand_ins

# Types whose objects have no functions that need stand-ins. Types are added when they are first
# seen.
PLAIN: set[type] = {
    *object_kinds.NEVER,
    *(list, dict, tuple, set, frozenset, bytearray, types.BuiltinMethodType),
}
# Types of objects that hold functions → where.
_HOLDERS: dict[type, tuple[str, ...]] = {
    MethodType: ("__func__", "__self__"),
    functools.partial: ("func", "args"),
    functools.partialmethod: ("func",),
    functools.cached_property: ("func",),
    functools.singledispatchmethod: ("func", "dispatcher"),
    type(functools.lru_cache(len)): ("__wrapped__",),
    property: ("fget", "fset", "fdel"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
}
# A finalizer may run at any time.
_LEFT_OUT = frozenset(("__del__",))
_SETS_GLOBAL = dis.opmap["STORE_GLOBAL"]
_ASYNCHRONOUS = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class PythonCalls:
    """The classes and functions that a trace has prepared."""

    def __init__(self) -> None:
        self.classes: set[type] = set()
        self.functions: dict[int, FunctionType] = {}  # by id: all that were looked at
        self.replaced: list[FunctionType] = []

    def reach(self, seen: Snapshot, values: Iterable[Any]) -> None:
        """Prepares the classes among what a snapshot holds, and those of its objects."""
        for entry in seen.entries.values():
            value = entry.value
            kind = type(value)
            if kind is not FunctionType and kind not in PLAIN:
                self.of_class(value if isinstance(value, type) else kind)
        for value in values:
            if type(value) not in PLAIN:
                self.add(value)

    def add(self, value: Any) -> None:
        """Prepares what Python may call of a value."""
        kind = type(value)
        if kind is FunctionType:
            self.of_function(value)
        elif (held := _HOLDERS.get(kind)) is not None:
            for name in held:
                self.add(getattr(value, name, None))
        elif kind is tuple:
            for item in value:
                self.add(item)
        elif isinstance(value, type):
            self.of_class(value)
        elif kind not in PLAIN:
            self.of_class(kind)
            if not user_code.is_users_class(kind):
                PLAIN.add(kind)

    def of_class(self, kind: type) -> None:
        """Prepares the methods of a class, of its bases and of its metaclass."""
        if kind in self.classes:
            return
        self.classes.add(kind)
        for base in kind.__mro__:
            if not user_code.is_users_class(base):
                continue
            for name, item in list(vars(base).items()):
                if name not in _LEFT_OUT and not isinstance(item, type):
                    self.add(item)
        if type(kind) is not type:
            self.of_class(type(kind))

    def of_function(self, function: FunctionType) -> None:
        """Prepares a function of the user's, or those that one of a library's holds."""
        if id(function) in self.functions:
            return
        self.functions[id(function)] = function
        if is_users(function):
            if _is_traceable(function):
                stand_ins.replace(function)
                self.replaced.append(function)
        elif not is_rewritten(function.__code__):
            for cell in function.__closure__ or ():
                try:
                    held = cell.cell_contents
                except ValueError:  # no value yet
                    continue
                for one in held.values() if isinstance(held, Mapping) else (held,):
                    if type(one) is FunctionType:
                        self.of_function(one)

    def restore(self) -> None:
        """Gives all functions their own code again."""
        while self.replaced:
            stand_ins.restore(self.replaced.pop())


def _is_traceable(function: FunctionType) -> bool:
    """Whether a function can be rewritten. `dataclass` and others generate some. One that assigns a
    global runs as it is, and the change is refused where it is found."""
    code = stand_ins.original(function).__code__
    if locations.is_generated(code) or code.co_filename == "<string>":
        return False
    if code.co_flags & _ASYNCHRONOUS:
        return False
    if _SETS_GLOBAL in code.co_code[::2]:
        return False
    return bool(linecache.getlines(code.co_filename, function.__globals__))
