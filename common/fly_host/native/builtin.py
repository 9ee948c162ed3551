"""A native function as a builtin of Python's own kind.

Its `self` is a Launcher: a bytearray whose bytes are the table of slots, and whose attributes keep
alive what the slots point at. The builtin holds its `self`, so that all lives as long as it does.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

METH_FASTCALL = 0x0080


class Launcher(bytearray):
    """The table of slots of a launcher, and what it needs."""

    kept: tuple[Any, ...]


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("ml_name", ctypes.c_char_p),
        ("ml_meth", ctypes.c_void_p),
        ("ml_flags", ctypes.c_int),
        ("ml_doc", ctypes.c_char_p),
    )


@dataclass(frozen=True)
class Held:
    """An object in a slot."""

    value: Any


def builtin(name: str, function: Any, table: list[object], kept: tuple[Any, ...]) -> Any:
    """A builtin of a function of a loaded library. The table holds addresses and objects (Held)."""
    address = ctypes.cast(function, ctypes.c_void_p).value
    words = [id(item.value) if isinstance(item, Held) else item for item in table]
    owner = Launcher((ctypes.c_uint64 * len(words))(*words))
    definition = _MethodDef(name.encode(), address, METH_FASTCALL, None)
    owner.kept = (definition, table, kept)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return make(ctypes.addressof(definition), owner, None)
