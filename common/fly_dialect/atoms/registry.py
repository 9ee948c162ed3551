"""The instructions by the name of their type. A class joins by the decorator `register`."""

from __future__ import annotations

import difflib
from typing import TypeVar

from fly_dialect.atoms.interface import AtomOp

_FAMILIES: dict[str, type[AtomOp]] = {}
_Op = TypeVar("_Op", bound=type[AtomOp])


def register(family: _Op) -> _Op:
    """Makes `!NAME<…>` read as `family`."""
    _FAMILIES[family.NAME] = family
    return family


def families() -> tuple[type[AtomOp], ...]:
    """All families, in the order of their names."""
    return tuple(_FAMILIES[name] for name in sorted(_FAMILIES))


def is_family(name: str) -> bool:
    """Whether `name` ("fly.universal_copy", "fly_rocdl.cdna3.mfma") is an instruction's type."""
    return name in _FAMILIES


def family(name: str) -> type[AtomOp]:
    """The family of the type `name`. ValueError gives the nearest name there is."""
    if name not in _FAMILIES:
        near = difflib.get_close_matches(name, _FAMILIES, n=1)
        raise ValueError(
            f"there is no instruction !{name}{f'; !{near[0]} is the nearest name' if near else ''}"
        )
    return _FAMILIES[name]
