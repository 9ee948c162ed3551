"""Helpers that are not traced, as in FlyDSL no helper is: those that assign to a global.

A program keeps there what it has made once while tracing, such as a type. The assignment is
Python's; a dynamic `if` in such a helper is an error, as it is in FlyDSL.
"""

from __future__ import annotations

import dis
from types import CodeType
from typing import Any

from fly_trace import rewrite


def is_plain(code: CodeType, space: dict[str, Any]) -> bool:
    """Whether a function of a program of FlyDSL's assigns to a global."""
    if not any(one.opname == "STORE_GLOBAL" for one in dis.get_instructions(code)):
        return False
    names = (str(getattr(value, "__name__", "")) for value in list(space.values()))
    return any(name.startswith("fly.flydsl.") for name in names)


rewrite.PLAIN.append(is_plain)
