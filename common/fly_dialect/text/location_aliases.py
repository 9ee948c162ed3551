"""Prints a module with its locations at the ops, in half of the time that MLIR takes for it.

MLIR hands what it prints to Python in pieces, and the name of a file one character at a time. With
aliases (`loc(#loc3)`, and `#loc3 = loc("k.py":2:5)` outside of the module) it prints each location
once. They are expanded here.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from fly_common.programs import process

from fly_dialect.text.lexical import STRING

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

# They begin with a line break, which the engine finds faster than starts of lines.
_DEFINITION = re.compile(r"\n(#loc\d*) = loc\((.*)\)(?=\n)")
# Aliases of other attributes, and locations in lists or as attributes, are left to MLIR.
_OTHER = re.compile(r"\n[#!](?!loc\d* )[A-Za-z_]\w* = ")
_USES = ("= #loc", ", #loc", "[#loc", "<#loc")
_ALIAS = re.compile(rf"#loc\d*(?![\w.])|{STRING}")


def asm(module: ir.Module) -> str:
    """MLIR's text of a module, with aliases of locations if only they have aliases in it."""
    text = _printed(module, aliases=True)
    return _printed(module, aliases=False) if _has_others(text) else text


def _has_others(text: str) -> bool:
    # Apart, as one expression with these alternatives takes half as long as the printing.
    return any(use in text for use in _USES) or _OTHER.search(f"\n{text}") is not None


def separated(text: str) -> tuple[str, dict[str, str]]:
    """Such a text without the definitions of aliases, and the locations that these stand for."""
    located: dict[str, str] = {}
    lines = f"\n{text}"
    for alias, location in _DEFINITION.findall(lines):
        located[alias] = expanded(location, located)  # its parts are defined before it
    return _DEFINITION.sub("", lines)[1:], located


def expanded(text: str, located: dict[str, str]) -> str:
    """The text with the locations in place of their aliases, except in strings."""
    return _ALIAS.sub(lambda found: located.get(found[0], found[0]), text)


def _printed(module: ir.Module, aliases: bool) -> str:
    # MLIR writes to a file by itself, in half of the time.
    data = _written(module, aliases)
    if data is not None:
        return data.decode()
    return module.operation.get_asm(
        enable_debug_info=True,
        use_local_scope=not aliases,
        use_name_loc_as_prefix=True,
        assume_verified=True,
    )


def _written(module: ir.Module, aliases: bool) -> bytes | None:
    """The same as a file in memory has it; None if there is no memory for it, or no /proc."""
    try:
        handle = process.in_memory()
    except OSError:
        return None
    try:
        module.operation.print(
            file=f"/proc/self/fd/{handle}",
            enable_debug_info=True,
            use_local_scope=not aliases,
            use_name_loc_as_prefix=True,
            assume_verified=True,
        )
        return os.pread(handle, os.fstat(handle).st_size, 0)
    except (OSError, ValueError):
        return None
    finally:
        os.close(handle)
