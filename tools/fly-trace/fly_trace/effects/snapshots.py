"""Snapshots of Python objects that are visible outside a trace or a dynamic branch.

Tracing runs Python once. A list that a kernel appends to would grow while tracing and not at each
launch, and one that a dynamic branch appends to would grow whichever branch is taken. The ways to
change an object cannot be enumerated (`operator.setitem`, `heapq`, a method of C code, a
`__getitem__`), so objects are compared with their earlier state instead.

A `Snapshot` holds every object that is reachable from the traced function (`of_function`) or from
the variables of the running functions (`of_frames`), and the state of each: the members of
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

MOST_OBJECTS = 20_000  # further objects are not observed
FEW = 16  # up to this many objects are all compared after a call


class Origin(Enum):
    """Where an object that must not change was created."""

    OUTSIDE = "outside the function that is traced"
    BEFORE = "before the dynamic branch or loop that is traced"
    CARRIED = "by a dynamic branch or loop, which may have created it or another one"


class Entry(NamedTuple):
    """An object, its kind, and its earlier state. `path` is its name and the path of the object
    that holds it, as in (".sizes", ("CONFIG", None))."""

    value: Any
    kind: Kind
    state: Any
    path: Any
    origin: Origin

    @property
    def name(self) -> str:
        """The object as an expression, or "" if it has no name."""
        parts: list[str] = []
        path = self.path
        while path is not None:
            label, path = path
            parts.append(label)
            if label[0] not in ".[({":  # the name of a variable
                break
        if isinstance(self.value, types.FunctionType):
            # Report a variable that the function names, if one changed, rather than the function.
            now = self.kind.read(self.value)
            for name, item in self.state.items():
                if now.get(name, MISSING) is not item and name[0] not in ".":
                    return name.strip("()")
        return "".join(reversed(parts))

    @property
    def changed(self) -> bool:
        return not self.kind.same(self.state, self.kind.read(self.value))

    def restore(self) -> bool:
        """Undoes the changes. Returns False if that is not possible."""
        if self.kind.write is None:
            return False
        try:
            self.kind.write(self.value, self.state)
        except Exception:
            return False
        return not self.changed


class Snapshot:
    """Objects by id. All have the same origin, except those that are carried. Objects that `parent`
    holds are not repeated."""

    def __init__(self, origin: Origin, parent: Snapshot | None = None):
        self.origin = origin
        self.parent = parent
        self.entries: dict[int, Entry] = {}
        self.data: list[Entry] = []  # objects that calls can change: neither functions nor classes
        self.count = parent.count if parent else 0  # length of data, including the parents

    def add(self, roots: Iterable[tuple[Any, Any]]) -> None:
        """Adds everything reachable from the given values, each with its path."""
        waiting = deque(roots)  # breadth first, for short names
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
        """Adds a list or dictionary that control flow created. In Python it would be one of two
        existing objects, which other variables may refer to, so it must not change."""
        kind = object_kinds.kind_of(type(container))
        entry = Entry(container, kind, kind.read(container), None, Origin.CARRIED)
        self.entries[id(container)] = entry
        self.data.append(entry)
        self.count += 1

    def renew(self, value: Any) -> None:
        """Adds an object that may have changed since the parent held it."""
        if id(value) not in self.entries:
            kind = object_kinds.kind_of(type(value))
            held = self.find(value)
            path = held.path if held is not None else None
            entry = Entry(value, kind, kind.read(value), path, self.origin)
            self.entries[id(value)] = entry
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
        """Changed entries, without those of the parents."""
        return (entry for entry in self.entries.values() if entry.changed)

    def changed_in_region(self) -> Iterator[Entry]:
        """Changed entries. Of the parents' entries, only data is compared."""
        yield from self.changed()
        if self.parent is not None and self.parent.count:
            yield from (entry for entry in self.parent._all_data() if entry.changed)

    def changed_at_all(self) -> Iterator[Entry]:
        """Changed entries, including all those of the parents."""
        yield from self.changed()
        if self.parent is not None:
            yield from self.parent.changed_at_all()

    def present(self) -> dict[int, Entry]:
        """The objects that have changed since they were added, by id, with the states that they
        have now. Those from outside the function, which may not change, are not compared."""
        found: dict[int, Entry] = {}
        snapshot: Snapshot | None = self
        while snapshot is not None and snapshot.origin is not Origin.OUTSIDE:
            for entry in snapshot.changed():
                found[id(entry.value)] = entry._replace(state=entry.kind.read(entry.value))
            snapshot = snapshot.parent
        return found

    def restore(self, present: dict[int, Entry]) -> bool:
        """Undoes all changes since a parent's `present`. Returns False if that is not possible."""
        wanted = dict(present)
        for entry in self.changed_at_all():  # the newest of an object first
            wanted.setdefault(id(entry.value), entry)
        return all(not entry.changed or entry.restore() for entry in wanted.values())

    def reached_by(self, values: Iterable[Any]) -> list[Entry]:
        """The entries that a call may change; `values` are its function and arguments."""
        given = tuple(values)
        if self.count > FEW and (reached := self._reached(given)) is not None:
            return reached
        found = self._all_data()
        own = (self.find(value) for value in given)
        return [*found, *(entry for entry in own if entry and not entry.kind.is_data)]

    def _all_data(self) -> list[Entry]:
        found: list[Entry] = []
        snapshot: Snapshot | None = self
        while snapshot is not None:
            found += snapshot.data
            snapshot = snapshot.parent
        return found

    def _reached(self, values: Iterable[Any]) -> list[Entry] | None:
        """The entries that are reachable from values; None if these reach more objects than there
        are entries, whose comparison takes less time than to find out which."""
        found = []
        stack, passed = list(values), set()
        while stack:
            if len(passed) >= self.count:
                return None
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
    """A snapshot of everything reachable from a function and its arguments `values`."""
    made = Snapshot(Origin.OUTSIDE, parent)
    made.add([(value, ("an argument", None)) for value in values])
    # The paths of a function's names begin with the name.
    made.add([(function, None)])
    return made


# The variables of running functions that have many, by the ids of their frames: the function's
# code, which tells whether the frame is still the same, and the names and cells.
Variables = dict[int, tuple[types.CodeType, tuple[str, ...], tuple[types.CellType, ...]]]


def of_frames(
    frame: types.FrameType | None, end: types.CodeType, parent: Snapshot, known: Variables
) -> Snapshot:
    """A snapshot of everything reachable from the variables of running functions, from `frame`
    outwards to the frame of `end`, except what `parent` holds."""
    made = Snapshot(Origin.BEFORE, parent)
    roots: list[tuple[Any, Any]] = []
    tables, never = locations.TABLES, object_kinds.NEVER
    while frame is not None:
        code = frame.f_code
        if code is end:
            break
        table = tables.get(id(code))
        # Bodies of branches and loops share the variables of the enclosing function.
        if (table.user if table else locations.user_code(code)) and code.co_name[:6] != "__fly_":
            held = known.get(id(frame))
            if held is not None and held[0] is code:
                values = _contents(*held[1:])
            else:
                values = frame.f_locals
            for name, value in values.items():
                if type(value) not in never and name[:6] != "__fly_":
                    roots.append((value, (name, None)))
        frame = frame.f_back
    if roots:
        made.add(roots)
    return made


def _contents(names: tuple[str, ...], cells: tuple[types.CellType, ...]) -> dict[str, Any]:
    found = {}
    for name, cell in zip(names, cells, strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # no value yet
            continue
    return found
