"""The fields of the user's objects: instances of plain classes, data classes, classes with slots,
and SimpleNamespace. Branches and loops carry them field by field, as a new object of the class."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterable
from typing import Any

from fly_trace.core import tracing
from fly_trace.effects import object_kinds, object_state
from fly_trace.effects.snapshots import Origin

ATTRIBUTES = object_state.ATTRIBUTES


def is_object(value: Any) -> bool:
    """Whether a value is an object whose only state are its attributes."""
    kind = type(value)
    found = object_kinds.BY_TYPE.get(kind) or object_kinds.kind_of(kind)
    return found is ATTRIBUTES


def is_own_object(value: Any) -> bool:
    """Whether the traced function made an object. One from outside is the same at each launch, and
    what it holds stays known while tracing."""
    return is_own(value) and _is_tree(value, set())


def is_own(value: Any) -> bool:
    """As `is_own_object`; the object may hold itself."""
    return is_object(value) and not is_outside(value)


def holds_itself_by(value: Any, name: str) -> bool:
    """Whether an object can be reached from its attribute `name`."""
    held = read(value)
    return name in held and not _is_tree(held[name], {id(value)})


def is_in_place(value: Any) -> bool:
    """Whether a branch or loop that is traced changes a container in place. It is then carried as
    what it is, and not as a part of other values (see `in_place`)."""
    builder = tracing.active()
    return builder is not None and id(value) in builder.carried


def is_outside(value: Any) -> bool:
    """Whether an object existed before the traced function ran."""
    builder = tracing.active()
    entry = builder.frozen.find(value) if builder is not None else None
    return entry is not None and entry.origin is Origin.OUTSIDE


def _is_tree(value: Any, above: set[int]) -> bool:
    """Whether an object does not hold itself."""
    if isinstance(value, (list, tuple)):
        members: list[Any] = [*value]
    elif isinstance(value, dict):
        members = [*value.values()]
    elif is_object(value):
        members = [*ATTRIBUTES.read(value).values()]
    else:
        return True
    if id(value) in above:
        return False
    inside = above | {id(value)}
    return all(_is_tree(one, inside) for one in members)


def read(value: Any) -> dict[str, Any]:
    """An object's attributes by name, slots included."""
    return ATTRIBUTES.read(value)


def take_defaults(value: Any, names: Iterable[str]) -> None:
    """Gives an object the attributes among `names` that only its class has, as a method's
    `self.count += 1` does: a branch or loop carries the object's own."""
    held = read(value)
    for name in names:
        if name not in held and (found := default(value, name)) is not None:
            object.__setattr__(value, name, found)


def default(value: Any, name: str) -> Any:
    """The attribute of an object's class that the object has as long as it has none of its own;
    None without one."""
    found = inspect.getattr_static(type(value), name, None)
    return None if hasattr(type(found), "__get__") else found


def rebuilt(like: Any, fields: dict[str, Any]) -> Any:
    """A new object of the same class with these attributes. `__init__` does not run."""
    kind = type(like)
    made = kind() if kind is types.SimpleNamespace else object.__new__(kind)
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made
