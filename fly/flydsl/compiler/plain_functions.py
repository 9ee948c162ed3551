"""Helpers that are not traced, as in FlyDSL no helper is: those that assign to a global.

A program keeps there what it has made once while tracing, such as a type. The assignment is
Python's; a dynamic `if` in such a helper is an error, as it is in FlyDSL.
"""

from __future__ import annotations

from opcode import opmap
from types import CodeType
from typing import Any

from fly_trace import rewrite

_STORE = opmap["STORE_GLOBAL"]


def is_plain(code: CodeType, space: dict[str, Any]) -> bool:
    """Whether a function of a program of FlyDSL's assigns to a global."""
    if _STORE not in code.co_code[::2]:  # operations are every other byte; inline caches are 0
        return False
    names = (str(getattr(value, "__name__", "")) for value in list(space.values()))
    return any(name.startswith("fly.flydsl.") for name in names)


rewrite.PLAIN.append(is_plain)
