"""Snapshots of Python objects: what code outside a trace, or outside a dynamic branch, can see.

Tracing runs Python once, so a list that a kernel appends to would grow while tracing and not with
each launch, and one that a dynamic branch appends to would grow whichever way the kernel goes.
Nobody can list all the ways to change an object (`operator.setitem`, `heapq`, a method of C code,
a `__getitem__`), so changes are not looked for: objects are compared with what they were.

A `Snapshot` holds every object that can be reached from the function that is traced (`of_function`)
or from the variables of the running functions (`of_frames`), and the state of each: the members of
containers, the attributes of objects, the global variables that functions name, the positions of
iterators. Members are compared by identity. The state of other C extensions' objects is not known.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any, NamedTuple

from fly_trace.core import locations
from fly_trace.effects import object_kinds
from fly_trace.effects.object_state import MISSING, Kind

MOST_OBJECTS = 20_000  # more are not looked at
FEW = 16  # so many objects are all compared after a call; of more those that it can reach


class Origin(Enum):
    """Where an object was made that must not change."""

    OUTSIDE = "outside the function that is traced"
    BEFORE = "before the dynamic branch or loop that is traced"
    CARRIED = "by a dynamic branch or loop, which may have created it or another one"


class Entry(NamedTuple):
    """An object, how its state is read, and the state it had. `path` is its name and the path of
    the object that holds it, as in (".sizes", ("CONFIG", None))."""

    value: Any
    kind: Kind
    state: Any
    path: Any
    origin: Origin

    @property
    def name(self) -> str:
        """As a program would write it; "" where it has no name."""
        parts: list[str] = []
        path = self.path
        while path is not None:
            label, path = path
            parts.append(label)
            if label[0] not in ".[({":  # a variable's own name
                break
        if isinstance(self.value, types.FunctionType):
            # A variable that the function names, more often than the function.
            now = self.kind.read(self.value)
            for name, item in self.state.items():
                if now.get(name, MISSING) is not item and name[0] not in ".":
                    return name.strip("()")
        return "".join(reversed(parts))

    @property
    def changed(self) -> bool:
        return not self.kind.same(self.state, self.kind.read(self.value))

    def restore(self) -> bool:
        """Undoes the changes. False where that can't be done."""
        if self.kind.write is None:
            return False
        try:
            self.kind.write(self.value, self.state)
        except Exception:
            return False
        return not self.changed


class Snapshot:
    """Objects by id, all of one origin but for those that are carried. What `parent` holds is left
    to it."""

    def __init__(self, origin: Origin, parent: Snapshot | None = None):
        self.origin = origin
        self.parent = parent
        self.entries: dict[int, Entry] = {}
        self.data: list[Entry] = []  # what calls can change: neither functions nor classes
        self.count = parent.count if parent else 0  # of data, the parents' too

    def add(self, roots: Iterable[tuple[Any, Any]]) -> None:
        """Adds what can be reached from values, each with its path."""
        waiting = deque(roots)  # breadth first: names are short
        entries, passed = self.entries, set()
        while waiting and len(entries) < MOST_OBJECTS:
            value, path = waiting.popleft()
            kind = object_kinds.BY_TYPE.get(type(value)) or object_kinds.kind_of(type(value))
            key = id(value)
            if kind is object_kinds.SKIPPED or key in passed or self.find(value) is not None:
                continue
            passed.add(key)
            if kind.applies is not None and not kind.applies(value):
                continue
            if kind.has_state:
                if self.origin is Origin.OUTSIDE and kind.whole is not None:
                    kind = kind.whole
                entry = entries[key] = Entry(value, kind, kind.read(value), path, self.origin)
                if kind.is_data:
                    self.data.append(entry)
                    self.count += 1
            for label, member in kind.children(value):
                if type(member) not in object_kinds.NEVER:
                    waiting.append((member, (label, path)))

    def carry(self, container: Any) -> None:
        """Adds a list or dictionary that came out of control flow: in Python it would be one of two
        objects, which other variables may hold too, so nothing may change it."""
        kind = object_kinds.kind_of(type(container))
        entry = Entry(container, kind, kind.read(container), None, Origin.CARRIED)
        self.entries[id(container)] = entry
        self.data.append(entry)
        self.count += 1

    def find(self, value: Any) -> Entry | None:
        """The entry of an object, here or in a parent."""
        snapshot: Snapshot | None = self
        key = id(value)
        while snapshot is not None:
            if (found := snapshot.entries.get(key)) is not None:
                return found
            snapshot = snapshot.parent
        return None

    def changed(self) -> Iterator[Entry]:
        """What is not as it was, the parents' left out."""
        return (entry for entry in self.entries.values() if entry.changed)

    def changed_in_region(self) -> Iterator[Entry]:
        """What is not as it was; of the parents' what is data."""
        yield from self.changed()
        if self.parent is not None and self.parent.count:
            yield from (entry for entry in self.parent._all_data() if entry.changed)

    def changed_at_all(self) -> Iterator[Entry]:
        """What is not as it was, here and in the parents."""
        yield from self.changed()
        if self.parent is not None:
            yield from self.parent.changed_at_all()

    def reached_by(self, values: Iterable[Any]) -> list[Entry]:
        """What a call may change whose function and arguments are `values`."""
        if self.count > FEW:
            return self._reached(values)
        found = self._all_data()
        given = (self.find(value) for value in values)
        return [*found, *(entry for entry in given if entry and not entry.kind.is_data)]

    def _all_data(self) -> list[Entry]:
        found: list[Entry] = []
        snapshot: Snapshot | None = self
        while snapshot is not None:
            found += snapshot.data
            snapshot = snapshot.parent
        return found

    def _reached(self, values: Iterable[Any]) -> list[Entry]:
        found = []
        stack, passed = list(values), set()
        while stack and len(passed) < MOST_OBJECTS:
            value = stack.pop()
            kind = object_kinds.BY_TYPE.get(type(value)) or object_kinds.kind_of(type(value))
            if kind is object_kinds.SKIPPED or id(value) in passed:
                continue
            passed.add(id(value))
            if (entry := self.find(value)) is not None:
                found.append(entry)
            stack += [m for _, m in kind.children(value) if type(m) not in object_kinds.NEVER]
        return found


def of_function(function: Any, values: Iterable[Any], parent: Snapshot | None = None) -> Snapshot:
    """What a function and `values` (its arguments) can reach, before it is traced."""
    made = Snapshot(Origin.OUTSIDE, parent)
    made.add([(value, ("an argument", None)) for value in values])
    # The paths of what a function names begin with the name.
    made.add([(function, None)])
    return made


def of_frames(frame: types.FrameType | None, end: types.CodeType, parent: Snapshot) -> Snapshot:
    """What the variables of running functions reach, from `frame` outwards to the frame of `end`,
    and `parent` does not hold."""
    made = Snapshot(Origin.BEFORE, parent)
    roots: list[tuple[Any, Any]] = []
    tables, never = locations.TABLES, object_kinds.NEVER
    while frame is not None:
        code = frame.f_code
        if code is end:
            break
        table = tables.get(id(code))
        # Bodies of branches and loops share the variables of the function that they are in.
        if (table.user if table else locations.user_code(code)) and code.co_name[:6] != "__fly_":
            for name, value in frame.f_locals.items():
                if type(value) not in never and name[:6] != "__fly_":
                    roots.append((value, (name, None)))
        frame = frame.f_back
    if roots:
        made.add(roots)
    return made
