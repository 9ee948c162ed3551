"""The native way into a compiled function: whether all is still as it was, and which launcher.

    dispatcher = Dispatcher(state, settings)
    dispatcher.add(native.call)
    dispatcher.call(a, b, 1000)         the result, or NotImplemented: Python decides

`call` is a builtin (fly_host.native.calling). It looks at what a `State` holds: dictionaries and
names in them, contents of cells, parts of functions, all by identity; and at a deadline, behind
which Python looks at the rest (files, programs, mutable values). Then it asks one launcher after
the other. It reads no environment, no files, and makes no object.

A dictionary that has not changed since is not looked into: CPython before 3.14 counts its changes
(`ma_version_tag` of PyDictObject, PEP 509).
"""

from __future__ import annotations

import ctypes
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fly_host.native import calling, library
from fly_host.native.specialisation import Options

MOST_LAUNCHERS = 8
MOST_ARGUMENTS = 64  # of a call: a word has a bit for each
MOST_RULES = 256
MOST_NAMES, MOST_CELLS, MOST_FUNCTIONS, MOST_DICTS = 512, 64, 64, 64
TAGGED = sys.version_info < (3, 14)

# The table, in words of 64 bits: a head, then the parts, each as long as it can be.
HEAD = ("busy", "deadline", "dicts", "names", "cells", "functions", "launchers", "missing")
_AT = {name: place for place, name in enumerate(HEAD)}
_PARTS = (
    ("dicts", MOST_DICTS, 2),  # dictionary, its tag
    ("names", MOST_NAMES, 3),  # dictionary, key, value or null
    ("cells", MOST_CELLS, 2),  # cell, contents or null
    ("functions", MOST_FUNCTIONS, 5),  # function, code, defaults, keyword defaults, annotations
    # native function, its self, number of arguments, which of them it gets, its rules: first, end
    ("launchers", MOST_LAUNCHERS, 6),
    ("rules", MOST_RULES, 3),  # position of an argument, its type, its value or null for any
)
_PLACES: dict[str, int] = {}
_size = len(HEAD)
for _name, _count, _width in _PARTS:
    _PLACES[_name] = _size
    _size += _count * _width
WORDS = _size


@dataclass(frozen=True)
class State:
    """What a compiled function depends on, as far as identity tells: `names` as (dictionary, key,
    value), where MISSING stands for a key that is not there; cells with their contents; functions.
    Everything in it must live as long as the dispatcher."""

    names: Sequence[tuple[dict[Any, Any], Any, Any]]
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
            and all(type(function) is types.FunctionType for function in self.functions)
            and len({id(space) for space, _, _ in self.names}) <= MOST_DICTS
        )


@dataclass(frozen=True)
class Rules:
    """What a call must be like for a launcher that was made for `count` arguments: it gets those in
    `passed`; `fixed` holds (position, type, value) of those that must be of this very type, and
    equal to the value unless that is ANY."""

    count: int
    passed: tuple[int, ...]
    fixed: tuple[tuple[int, type, Any], ...] = ()


ANY: Any = object()


@dataclass(eq=False)
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
        functions = library.load(TEXT, Options())
        entry = ctypes.cast(functions.call, ctypes.c_void_p).value
        assert entry
        kept = (self.state, functions)
        self.call = calling.builtin("dispatch", entry, [0] * WORDS, kept)
        owner = self.call.__self__  # type: ignore[attr-defined]
        self._table = (ctypes.c_uint64 * WORDS).from_buffer(owner)
        self._set(_AT["busy"], self.busy)
        self._set(_AT["missing"], id(NotImplemented))
        self._fill()

    def _set(self, place: int, value: int) -> None:
        self._table[place] = value

    def _row(self, part: str, number: int, *values: int) -> None:
        width = next(width for name, _, width in _PARTS if name == part)
        for column, value in enumerate(values):
            self._set(_PLACES[part] + number * width + column, value)

    def _fill(self) -> None:
        state = self.state
        spaces = {id(space): space for space, _, _ in state.names}
        for number, space in enumerate(spaces.values() if TAGGED else ()):
            self._row("dicts", number, id(space), 0)  # the first call looks into them
        for number, (space, key, value) in enumerate(state.names):
            held = 0 if value is state.missing else id(value)
            self._row("names", number, id(space), id(key), held)
        for number, (cell, value) in enumerate(state.cells):
            self._row("cells", number, id(cell), 0 if value is state.missing else id(value))
        for number, function in enumerate(state.functions):
            self._row("functions", number, id(function), *_parts(function))
        for name, count in (
            ("dicts", len(spaces) if TAGGED else 0),
            ("names", len(state.names)),
            ("cells", len(state.cells)),
            ("functions", len(state.functions)),
            ("launchers", 0),
        ):
            self._set(_AT[name], count)

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
        self._set(_AT["launchers"], len(self._launchers))
        return True

    def until(self, nanoseconds: int) -> None:
        """Calls are the dispatcher's until then, by the monotonic clock."""
        self._set(_AT["deadline"], max(0, nanoseconds))


def _parts(function: types.FunctionType) -> tuple[int, ...]:
    annotations = function.__annotations__  # makes the dictionary where there is none yet
    parts = (function.__code__, function.__defaults__, function.__kwdefaults__, annotations)
    return tuple(0 if part is None else id(part) for part in parts)


def function_of(launcher: Callable[..., Any]) -> int:
    """The native function of a builtin (PyCFunctionObject, CPython's methodobject.h)."""
    get = ctypes.pythonapi.PyCFunction_GetFunction
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object]
    found = get(launcher)
    assert found
    return found


def _rows(part: str, body: str, step: int) -> str:
    """A loop over the rows of a part: `%p` is a row, and `body` goes to %miss or %{part}.next."""
    return f"""
{part}.begin:
  %{part}.count.at = getelementptr i64, ptr %table, i64 {_AT[part]}
  %{part}.count = load i64, ptr %{part}.count.at
  %{part}.rows = getelementptr i64, ptr %table, i64 {_PLACES[part]}
  br label %{part}.test
{part}.test:
  %{part}.i = phi i64 [ 0, %{part}.begin ], [ %{part}.following, %{part}.next ]
  %{part}.more = icmp ult i64 %{part}.i, %{part}.count
  br i1 %{part}.more, label %{part}.body, label %{part}.end
{part}.body:
  %{part}.offset = mul i64 %{part}.i, {step}
  %{part}.p = getelementptr i64, ptr %{part}.rows, i64 %{part}.offset
{body}
{part}.next:
  %{part}.following = add i64 %{part}.i, 1
  br label %{part}.test
"""


def _field(part: str, number: int, name: str) -> str:
    return f"""  %{part}.{name}.at = getelementptr ptr, ptr %{part}.p, i64 {number}
  %{part}.{name} = load ptr, ptr %{part}.{name}.at"""


TAG = 24  # offset of PyDictObject.ma_version_tag: behind the head and ma_used
CONTENTS = 16  # of PyCellObject.ob_ref
TYPE = 8  # of PyObject.ob_type

_DICTS = _rows(
    "dicts",
    f"""{_field("dicts", 0, "dict")}
  %dicts.tag.at = getelementptr i8, ptr %dicts.dict, i64 {TAG}
  %dicts.tag = load i64, ptr %dicts.tag.at
  %dicts.known.at = getelementptr i64, ptr %dicts.p, i64 1
  %dicts.known = load i64, ptr %dicts.known.at
  %dicts.same = icmp eq i64 %dicts.tag, %dicts.known
  store i64 %dicts.tag, ptr %dicts.known.at
  %dicts.changed = xor i1 %dicts.same, true
  %dicts.was = load i1, ptr %changed
  %dicts.now = or i1 %dicts.was, %dicts.changed
  store i1 %dicts.now, ptr %changed
  br label %dicts.next""",
    2,
)
_NAMES = _rows(
    "names",
    f"""{_field("names", 0, "dict")}
{_field("names", 1, "key")}
{_field("names", 2, "value")}
  %names.found = call ptr @PyDict_GetItem(ptr %names.dict, ptr %names.key)
  %names.same = icmp eq ptr %names.found, %names.value
  br i1 %names.same, label %names.next, label %forget""",
    3,
)
_CELLS = _rows(
    "cells",
    f"""{_field("cells", 0, "cell")}
{_field("cells", 1, "value")}
  %cells.ref.at = getelementptr i8, ptr %cells.cell, i64 {CONTENTS}
  %cells.ref = load ptr, ptr %cells.ref.at
  %cells.same = icmp eq ptr %cells.ref, %cells.value
  br i1 %cells.same, label %cells.next, label %miss""",
    2,
)


def _part(number: int, name: str, getter: str) -> str:
    following = f"functions.part{number}" if number < 4 else "functions.next"
    opening = "" if number == 1 else f"functions.part{number - 1}:\n"
    return f"""{opening}  %functions.{name}.now = call ptr @{getter}(ptr %functions.function)
{_field("functions", number, name)}
  %functions.{name}.same = icmp eq ptr %functions.{name}.now, %functions.{name}
  br i1 %functions.{name}.same, label %{following}, label %miss"""


_FUNCTIONS = _rows(
    "functions",
    "\n".join(
        (
            _field("functions", 0, "function"),
            _part(1, "code", "PyFunction_GetCode"),
            _part(2, "defaults", "PyFunction_GetDefaults"),
            _part(3, "kwdefaults", "PyFunction_GetKwDefaults"),
            _part(4, "annotations", "PyFunction_GetAnnotations"),
        )
    ),
    5,
)


def _word(part: str, number: int, name: str) -> str:
    return f"""  %{part}.{name}.at = getelementptr i64, ptr %{part}.p, i64 {number}
  %{part}.{name} = load i64, ptr %{part}.{name}.at"""


# The rules first; then the arguments that the launcher gets, which are packed where some are left
# out.
_LAUNCHERS = _rows(
    "launchers",
    f"""{_field("launchers", 0, "function")}
{_field("launchers", 1, "owner")}
{_word("launchers", 2, "wanted")}
{_word("launchers", 3, "passed")}
{_word("launchers", 4, "first")}
{_word("launchers", 5, "last")}
  %right = icmp eq i64 %launchers.wanted, %nargs
  br i1 %right, label %rules.test, label %launchers.next
rules.test:
  %rule = phi i64 [ %launchers.first, %launchers.body ], [ %rule.following, %rules.next ]
  %ruled = icmp ult i64 %rule, %launchers.last
  br i1 %ruled, label %rules.body, label %pack.begin
rules.body:
  %rule.offset = mul i64 %rule, 3
  %rules.p = getelementptr i64, ptr %rules, i64 %rule.offset
{_word("rules", 0, "position")}
{_field("rules", 1, "type")}
{_field("rules", 2, "value")}
  %argument.at = getelementptr ptr, ptr %args, i64 %rules.position
  %argument = load ptr, ptr %argument.at
  %kind.at = getelementptr i8, ptr %argument, i64 {TYPE}
  %kind = load ptr, ptr %kind.at
  %typed = icmp eq ptr %kind, %rules.type
  br i1 %typed, label %rules.value.test, label %launchers.next
rules.value.test:
  %any = icmp eq ptr %rules.value, null
  %itself = icmp eq ptr %rules.value, %argument
  %fits = or i1 %any, %itself
  br i1 %fits, label %rules.next, label %rules.compare
rules.compare:
  %equal = call i32 @PyObject_RichCompareBool(ptr %argument, ptr %rules.value, i32 2)
  %is.equal = icmp eq i32 %equal, 1
  br i1 %is.equal, label %rules.next, label %launchers.next
rules.next:
  %rule.following = add i64 %rule, 1
  br label %rules.test
pack.begin:
  %all.shifted = shl i64 -1, %nargs
  %all.mask = xor i64 %all.shifted, -1
  %full = icmp eq i64 %nargs, 64
  %all = select i1 %full, i64 -1, i64 %all.mask
  %whole.call = icmp eq i64 %all, %launchers.passed
  br i1 %whole.call, label %launch, label %pack.test
pack.test:
  %from = phi i64 [ 0, %pack.begin ], [ %from.following, %pack.next ]
  %to = phi i64 [ 0, %pack.begin ], [ %to.following, %pack.next ]
  %unpacked = icmp ult i64 %from, %nargs
  br i1 %unpacked, label %pack.next, label %launch
pack.next:
  %one.at = getelementptr ptr, ptr %args, i64 %from
  %one = load ptr, ptr %one.at
  %room.at = getelementptr ptr, ptr %room, i64 %to
  store ptr %one, ptr %room.at
  %bits = lshr i64 %launchers.passed, %from
  %bit = and i64 %bits, 1
  %from.following = add i64 %from, 1
  %to.following = add i64 %to, %bit
  br label %pack.test
launch:
  %given = phi ptr [ %args, %pack.begin ], [ %room, %pack.test ]
  %given.count = phi i64 [ %nargs, %pack.begin ], [ %to, %pack.test ]
  %made = call ptr %launchers.function(ptr %launchers.owner, ptr %given, i64 %given.count)
  %other = icmp eq ptr %made, %missing
  br i1 %other, label %launchers.drop, label %launchers.done
launchers.drop:
  call void @Py_DecRef(ptr %made)
  br label %launchers.next
launchers.done:
  ret ptr %made""",
    6,
)

TEXT = f"""
declare ptr @PyByteArray_AsString(ptr)
declare ptr @PyDict_GetItem(ptr, ptr)
declare ptr @PyFunction_GetCode(ptr)
declare ptr @PyFunction_GetDefaults(ptr)
declare ptr @PyFunction_GetKwDefaults(ptr)
declare ptr @PyFunction_GetAnnotations(ptr)
declare void @Py_DecRef(ptr)
declare void @Py_IncRef(ptr)
declare i32 @clock_gettime(i32, ptr)
declare i32 @PyObject_RichCompareBool(ptr, ptr, i32)

define ptr @call(ptr %self, ptr %args, i64 %nargs) {{
  %changed = alloca i1
  %clock = alloca [2 x i64]
  %room = alloca [{MOST_ARGUMENTS + 1} x ptr]
  %table = call ptr @PyByteArray_AsString(ptr %self)
  %rules = getelementptr i64, ptr %table, i64 {_PLACES["rules"]}
  %missing.at = getelementptr ptr, ptr %table, i64 {_AT["missing"]}
  %missing = load ptr, ptr %missing.at
  %busy.at = getelementptr ptr, ptr %table, i64 {_AT["busy"]}
  %busy.word = load ptr, ptr %busy.at
  %busy = load atomic i64, ptr %busy.word monotonic, align 8
  %idle = icmp eq i64 %busy, 0
  br i1 %idle, label %clock.begin, label %miss
clock.begin:
  %status = call i32 @clock_gettime(i32 6, ptr %clock)
  %seconds = load i64, ptr %clock
  %rest.at = getelementptr i64, ptr %clock, i64 1
  %rest = load i64, ptr %rest.at
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  %deadline.at = getelementptr i64, ptr %table, i64 {_AT["deadline"]}
  %deadline = load i64, ptr %deadline.at
  %early = icmp ult i64 %now, %deadline
  br i1 %early, label %names.look, label %miss
names.look:
  %tagged = getelementptr i64, ptr %table, i64 {_AT["dicts"]}
  %dictionaries = load i64, ptr %tagged
  %untagged = icmp eq i64 %dictionaries, 0
  store i1 %untagged, ptr %changed
  br label %dicts.begin
{_DICTS}
dicts.end:
  %look = load i1, ptr %changed
  br i1 %look, label %names.begin, label %cells.begin
{_NAMES}
names.end:
  br label %cells.begin
{_CELLS}
cells.end:
  br label %functions.begin
{_FUNCTIONS}
functions.end:
  br label %launchers.begin
{_LAUNCHERS}
launchers.end:
  br label %miss
forget:
  ; the next call looks into the dictionaries again
  store i64 0, ptr %deadline.at
  br label %miss
miss:
  call void @Py_IncRef(ptr %missing)
  ret ptr %missing
}}
"""
