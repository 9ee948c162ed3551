"""The native way into a compiled function: whether all is still as it was, and which launcher.

    dispatcher = Dispatcher(state, settings)
    dispatcher.add(native.call)
    dispatcher.call(a, b, 1000)         the result, or NotImplemented: Python decides

`call` is a builtin (fly_host.native.calling). It looks at what a `State` holds: dictionaries and
names in them, contents of cells, parts of functions, all by identity; and at a deadline, behind
which Python looks at the rest (files, programs, mutable values). Then it asks one launcher after
the other. It reads no environment, no files, and makes no object.

A dictionary that has not changed since is not looked into: CPython 3.11 and 3.12 count its changes
(`ma_version_tag` of PyDictObject, PEP 509). 3.13 has the tag, but attributes of objects change
without it; 3.14 has none. There, all dictionaries are looked into.
"""

from __future__ import annotations

import ctypes
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

from fly_common.code_tables import code_of
from fly_common.record import field, record
from fly_host.native import library
from fly_host.native.builtin import builtin
from fly_host.native.probing import check_python
from fly_host.native.specialisation import Options

from fly.call.dispatch.dispatch_code import TEXT
from fly.call.dispatch.dispatch_table import (
    AT,
    MOST_ARGUMENTS,
    MOST_CELLS,
    MOST_DICTS,
    MOST_FUNCTIONS,
    MOST_LAUNCHERS,
    MOST_NAMES,
    MOST_RULES,
    PLACES,
    WIDTHS,
    WORDS,
)

TAGGED = sys.version_info < (3, 13)


@record
class State:
    """What a compiled function depends on, as far as identity tells: `names` as (dictionary, key,
    value), where MISSING stands for a key that is not there; `whole` dictionaries, which must keep
    all their keys; cells with their contents; functions. Everything in it must live as long as the
    dispatcher."""

    names: Sequence[tuple[dict[Any, Any], Any, Any]]
    whole: Sequence[dict[Any, Any]]
    cells: Sequence[tuple[types.CellType, Any]]
    functions: Sequence[types.FunctionType]
    missing: object

    @property
    def fits(self) -> bool:
        """Whether the table has room for it, and all is of the very types that it is read as."""
        return (
            len(self.names) <= MOST_NAMES
            and len(self.cells) <= MOST_CELLS
            and len(self.functions) <= MOST_FUNCTIONS
            and all(type(space) is dict for space, _, _ in self.names)
            and all(type(space) is dict for space in self.whole)
            and len(self.whole) <= MOST_DICTS
            and all(type(function) is types.FunctionType for function in self.functions)
            and len(self.spaces) <= MOST_DICTS
        )

    @property
    def spaces(self) -> dict[int, dict[Any, Any]]:
        """All dictionaries, by what identifies them."""
        return {id(space): space for space in (*(row[0] for row in self.names), *self.whole)}


@record
class Rules:
    """What a call must be like for a launcher that was made for `count` arguments: it gets those in
    `passed`; `fixed` holds (position, type, value) of those that must be of this very type, and
    equal to the value unless that is ANY."""

    count: int
    passed: tuple[int, ...]
    fixed: tuple[tuple[int, type, Any], ...] = ()


ANY: Any = object()


@record(frozen=False, eq=False)
class Dispatcher:
    """The builtin of one state. `busy` is the address of a 64-bit word that is not 0 while this
    process traces: then no call is the dispatcher's."""

    state: State
    busy: int
    call: Callable[..., Any] = field(init=False)
    _table: Any = field(init=False)
    _launchers: list[Any] = field(default_factory=list)
    _rules: int = 0

    def __post_init__(self) -> None:
        check_python()
        functions = library.load(TEXT, Options())
        entry = ctypes.cast(functions.call, ctypes.c_void_p).value
        assert entry
        kept = (self.state, functions)
        self.call = builtin("dispatch", entry, [0] * WORDS, kept)
        owner = self.call.__self__  # type: ignore[attr-defined]
        self._table = (ctypes.c_uint64 * WORDS).from_buffer(owner)
        self._set(AT["busy"], self.busy)
        self._set(AT["missing"], id(NotImplemented))
        self._fill()

    def _set(self, place: int, value: int) -> None:
        self._table[place] = value

    def _row(self, part: str, number: int, *values: int) -> None:
        for column, value in enumerate(values):
            self._set(PLACES[part] + number * WIDTHS[part] + column, value)

    def _fill(self) -> None:
        state = self.state
        spaces = state.spaces
        for number, space in enumerate(spaces.values() if TAGGED else ()):
            self._row("dicts", number, id(space), 0)  # the first call looks into them
        for number, space in enumerate(state.whole):
            self._row("sizes", number, id(space), len(space))
        for number, (space, key, value) in enumerate(state.names):
            held = 0 if value is state.missing else id(value)
            self._row("names", number, id(space), id(key), held)
        for number, (cell, value) in enumerate(state.cells):
            self._row("cells", number, id(cell), 0 if value is state.missing else id(value))
        for number, function in enumerate(state.functions):
            self._row("functions", number, id(function), *_parts(function))
        for name, count in (
            ("dicts", len(spaces) if TAGGED else 0),
            ("sizes", len(state.whole)),
            ("names", len(state.names)),
            ("cells", len(state.cells)),
            ("functions", len(state.functions)),
            ("launchers", 0),
        ):
            self._set(AT[name], count)

    def add(self, launcher: Callable[..., Any], rules: Rules) -> bool:
        """Adds the builtin of a specialisation; whether there was room for it."""
        number, first = len(self._launchers), self._rules
        end = first + len(rules.fixed)
        if number == MOST_LAUNCHERS or end > MOST_RULES or rules.count > MOST_ARGUMENTS:
            return False
        for row, (position, kind, value) in enumerate(rules.fixed, first):
            self._row("rules", row, position, id(kind), 0 if value is ANY else id(value))
        passed = sum(1 << position for position in rules.passed)
        owner = launcher.__self__  # type: ignore[attr-defined]
        entry = function_of(launcher)
        self._row("launchers", number, entry, id(owner), rules.count, passed, first, end)
        self._rules = end
        self._launchers.append((launcher, rules))
        self._set(AT["launchers"], len(self._launchers))
        return True

    def until(self, nanoseconds: int) -> None:
        """Calls are the dispatcher's until then, by the monotonic clock."""
        self._set(AT["deadline"], max(0, nanoseconds))


def _parts(function: types.FunctionType) -> tuple[int, ...]:
    annotations = function.__annotations__  # makes the dictionary where there is none yet
    parts = (code_of(function), function.__defaults__, function.__kwdefaults__, annotations)
    return tuple(0 if part is None else id(part) for part in parts)


def function_of(launcher: Callable[..., Any]) -> int:
    """The native function of a builtin (PyCFunctionObject, CPython's methodobject.h)."""
    get = ctypes.pythonapi.PyCFunction_GetFunction
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object]
    found = get(launcher)
    assert found
    return found
