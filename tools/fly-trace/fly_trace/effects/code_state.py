"""Reads, compares and restores the state of functions and classes.

The state of a function that outlives a trace includes the values of its names: globals, closure
variables, and the attributes of modules that it names.
"""

from __future__ import annotations

import types
from typing import Any

from fly_common.code_tables import code_of

from fly_trace.effects import user_code
from fly_trace.effects.object_state import MISSING, Kind, Members, no_state, same_names


def _function_children(value: Any) -> Members:
    yield from ((".__defaults__", item) for item in value.__defaults__ or ())
    yield from ((".__kwdefaults__", item) for item in (value.__kwdefaults__ or {}).values())
    yield from ((f".{name}", item) for name, item in value.__dict__.items())
    for name, cell in zip(code_of(value).co_freevars, value.__closure__ or (), strict=True):
        yield name, _contents(cell)
    yield from _named(value)


def _named(value: Any) -> Members:
    """The global variables that a function names, and the attributes of modules among them. Those
    of this project's functions are not followed: they hold no objects of the user's, but lead to
    most of the project."""
    if user_code.is_own(value.__module__):
        return
    names = user_code.names_of(code_of(value))
    space = value.__globals__
    for name in names:
        item = space.get(name, MISSING)
        if item is not MISSING:
            yield name, item
            if type(item) is types.ModuleType:
                yield from _module_members(name, item, names)


def _module_members(path: str, module: Any, names: tuple[str, ...], depth: int = 2) -> Members:
    if user_code.is_own(module.__name__):
        return
    space = vars(module)
    for name in names:
        item = space.get(name, MISSING)
        if item is MISSING:
            continue
        yield f"{path}.{name}", item
        if type(item) is types.ModuleType and depth:
            yield from _module_members(f"{path}.{name}", item, names, depth - 1)


def _read_function(value: Any) -> dict[str, Any]:
    found = {f".{name}": getattr(value, name) for name in _FUNCTION_PARTS}
    found[".__code__"] = code_of(value)
    found.update((f".__dict__[{name!r}]", item) for name, item in value.__dict__.items())
    for name, item in (value.__kwdefaults__ or {}).items():
        found[f".__kwdefaults__[{name!r}]"] = item
    return found


_FUNCTION_PARTS = ("__defaults__", "__kwdefaults__", "__dict__")


def _read_names(value: Any) -> dict[str, Any]:
    """The function's own state, and the values of its names."""
    found = _read_function(value)
    found.update(_named(value))
    for name, cell in zip(code_of(value).co_freevars, value.__closure__ or (), strict=True):
        found[f"({name})"] = _contents(cell)
    return found


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not yet assigned
        return MISSING


def _write_function(value: Any, state: dict[str, Any]) -> None:
    now = _read_names(value)
    for name in now.keys() - state.keys():
        if name.startswith(".__dict__["):
            del value.__dict__[name[11:-2]]
    for name, item in state.items():
        if now.get(name, MISSING) is item:
            continue
        if name.startswith(".__dict__["):
            value.__dict__[name[11:-2]] = item
        elif name.startswith(".__kwdefaults__["):
            value.__kwdefaults__[name[17:-2]] = item
        elif name.startswith("."):
            setattr(value, name[1:], item)
        elif name.startswith("("):
            value.__closure__[code_of(value).co_freevars.index(name[1:-1])].cell_contents = item
        else:
            first, *path = name.split(".")
            space = value.__globals__
            for attribute in path:
                space, first = vars(space[first]), attribute
            space[first] = item


def _read_class(value: type) -> dict[str, Any]:
    """A class's attributes, without those that Python adds on demand (`__annotations__`) and those
    that Enum keeps."""
    return {
        name: item for name, item in vars(value).items() if name[:1] != "_" or name[-2:] != "__"
    }


def _write_class(value: type, state: dict[str, Any]) -> None:
    for name in _read_class(value):
        if name not in state:
            type.__delattr__(value, name)
    for name, item in state.items():
        if vars(value).get(name, MISSING) is not item:
            type.__setattr__(value, name, item)


def _class_children(value: type) -> Members:
    if user_code.is_own(value.__module__):
        return
    for name, item in vars(value).items():
        if name not in user_code.CLASS_MACHINERY:
            yield f"{value.__name__}.{name}", item
    for base in value.__mro__[1:]:
        yield base.__name__, base


FUNCTION = Kind(
    _read_function,
    same_names,
    _write_function,
    _function_children,
    is_data=False,
    whole=Kind(_read_names, same_names, _write_function, _function_children, is_data=False),
    applies=lambda value: user_code.is_users_function(value),
)
CLASS = Kind(
    _read_class,
    same_names,
    _write_class,
    _class_children,
    is_data=False,
    applies=lambda value: user_code.is_users_class(value),
)


def held(*names: str) -> Kind:
    """The kind of objects without state of their own, which hold others in these attributes."""

    def children(value: Any) -> Members:
        for name in names:
            item = getattr(value, name, None)
            if isinstance(item, dict):
                yield from ((f".{name}", part) for part in item.values())
            elif isinstance(item, tuple):
                yield from ((f".{name}", part) for part in item)
            else:
                yield f".{name}", item

    return Kind(no_state, children=children)


DECORATED = held("function")
