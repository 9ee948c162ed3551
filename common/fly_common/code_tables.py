"""Tables of what is known about code objects.

A code object is hashed by what it contains, which is slow and makes equal functions one. So tables
are keyed by `id(code)`, and an entry goes with its code object: a program that defines functions
again and again (a notebook, `importlib.reload`) keeps no table of them.
"""

from __future__ import annotations

import weakref
from types import CodeType, FunctionType
from typing import Any, TypeVar

Known = TypeVar("Known")

_references: dict[tuple[int, int], weakref.ref[CodeType]] = {}  # by the ids of table and code

# By `id(stand-in)`: the code that it is a stand-in for. `fly_trace.rewrite.stand_ins` sets it.
STOOD_FOR: dict[int, CodeType] = {}


def keep(table: dict[int, Known], code: CodeType, known: Known) -> Known:
    """Sets `table[id(code)]` for as long as the code object lives. Returns `known`, which must not
    refer to the code object."""
    key = id(code)
    if key not in table:
        held = id(table), key

        # At the end of the process, a module's names are None before its tables are freed.
        def forget(_: object, references: dict[tuple[int, int], Any] = _references) -> None:
            table.pop(key, None)
            references.pop(held, None)

        # `weakref.finalize` takes three times as long: it keeps an order for the process's end.
        _references[held] = weakref.ref(code, forget)
    table[key] = known
    return known


def code_of(function: FunctionType) -> CodeType:
    """The code that a function was made with, while a trace has a stand-in in its place too."""
    code = function.__code__
    return STOOD_FOR.get(id(code), code)
