"""The instructions by the name of their type. A class joins by the decorator `register`.

Modules of families that come with the dialect are imported when one of their types is met: most
programs use few of them.
"""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import TypeVar

from fly_dialect.atoms.interface import AtomOp

# Module of this package → the types whose families are there.
_MODULES = {
    "universal": ("fly.universal_atomic", "fly.universal_copy", "fly.universal_fma"),
    "mfma": ("fly_rocdl.cdna3.mfma", "fly_rocdl.cdna4.mfma_scale"),
    "wmma": (
        "fly_rocdl.gfx11.wmma",
        "fly_rocdl.gfx120x.wmma",
        "fly_rocdl.gfx1250.wmma",
        "fly_rocdl.gfx1250.wmma_scale",
    ),
    "buffer": (
        "fly_rocdl.cdna3.buffer_atomic",
        "fly_rocdl.cdna3.buffer_copy",
        "fly_rocdl.cdna3.buffer_copy_lds",
        "fly_rocdl.cdna4.buffer_load_async_lds",
        "fly_rocdl.cdna4.global_load_async_lds",
    ),
    "lds_transpose": ("fly_rocdl.cdna4.lds_read_trans",),
    "tdm": ("fly_rocdl.gfx1250.tdm",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}
_FAMILIES: dict[str, type[AtomOp]] = {}
_Op = TypeVar("_Op", bound=type[AtomOp])


def register(family: _Op) -> _Op:
    """Makes `!NAME<…>` read as `family`."""
    _FAMILIES[family.NAME] = family
    return family


def families() -> tuple[type[AtomOp], ...]:
    """All families, in the order of their names."""
    for module in _MODULES:
        import_module(f"fly_dialect.atoms.{module}")
    return tuple(_FAMILIES[name] for name in sorted(_FAMILIES))


def is_family(name: str) -> bool:
    """Whether `name` ("fly.universal_copy", "fly_rocdl.cdna3.mfma") is an instruction's type."""
    return name in _FAMILIES or name in _HOMES


def family(name: str) -> type[AtomOp]:
    """The family of the type `name`. ValueError gives the nearest name there is."""
    if name not in _FAMILIES and name in _HOMES:
        import_module(f"fly_dialect.atoms.{_HOMES[name]}")
    if name not in _FAMILIES:
        near = difflib.get_close_matches(name, {*_FAMILIES, *_HOMES}, n=1)
        raise ValueError(
            f"there is no instruction !{name}{f'; !{near[0]} is the nearest name' if near else ''}"
        )
    return _FAMILIES[name]
