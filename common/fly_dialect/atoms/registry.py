"""The instructions by type name. Classes are registered with the decorator `register`.

The dialect's own modules of families are imported when one of their types is first used, because
most programs use few of them.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Mapping
from importlib import import_module
from typing import TypeVar

from fly_common.errors import MissingError
from fly_common.resolve import resolve

from fly_dialect.atoms.interface import AtomOp
from fly_dialect.extension import extension_of, extensions, plugins_atoms
from fly_dialect.types import read_body

_UNIVERSAL = {
    "fly_dialect.atoms.universal": (
        "fly.universal_atomic",
        "fly.universal_copy",
        "fly.universal_fma",
    )
}
_TYPE = re.compile(r"!([a-z]\w*(?:\.\w+)+)(?:<(.*)>)?", re.DOTALL)
_FAMILIES: dict[str, type[AtomOp]] = {}
_Op = TypeVar("_Op", bound=type[AtomOp])


def register(family: _Op) -> _Op:
    """Registers `family` as the class of the type `!NAME<…>`."""
    _FAMILIES[family.NAME] = family
    return family


def families() -> tuple[type[AtomOp], ...]:
    """All families, sorted by name."""
    for module in set(homes().values()):
        import_module(module)
    return tuple(_FAMILIES[name] for name in sorted(_FAMILIES))


def is_family(name: str) -> bool:
    """Whether `name` ("fly.universal_copy") is the type of an instruction."""
    return name in _FAMILIES or name in _homes(name)


def family(name: str) -> type[AtomOp]:
    """The family of the type `name`. Raises ValueError, which suggests the nearest name."""
    if name not in _FAMILIES and (home := _homes(name).get(name)) is not None:
        import_module(home)
    if name not in _FAMILIES:
        near = difflib.get_close_matches(name, sorted({*_FAMILIES, *_homes(name)}), n=1)
        raise ValueError(
            f"unknown instruction !{name}{f'; did you mean !{near[0]}?' if near else ''}"
        )
    return _FAMILIES[name]


def of_plugin(text: str) -> AtomOp | None:
    """The instruction of an active plugin with the type `text`, as "!hello.mma<16>". None if no
    plugin has one of this name. Raises ValueError if its class doesn't read the text, MissingError
    if there is no such class."""
    match = _TYPE.fullmatch(text)
    reference = plugins_atoms().get(match[1]) if match else None
    if match is None or reference is None:
        return None
    found, name = resolve(reference), match[1]
    if not isinstance(found, type) or not issubclass(found, AtomOp) or name != found.NAME:
        raise MissingError(f"{reference} is not the class of an instruction with NAME {name}")
    return read_body(found.read, match[2] or "")


def homes() -> dict[str, str]:
    """Maps each type, those of all built-in backends too, to the module that defines its family."""
    return _by_type(_UNIVERSAL, *(extension.atoms for extension in extensions()))


@functools.cache
def _homes(name: str) -> dict[str, str]:
    """Maps types to the modules that define their families: the universal ones, and those of the
    dialect that `name` belongs to."""
    extension = extension_of(name)
    return _by_type(_UNIVERSAL, {} if extension is None else extension.atoms)


def _by_type(*tables: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    return {name: module for table in tables for module, names in table.items() for name in names}
