"""References to Python objects, resolved on use: "module:attribute", and entry points.

Tables use them so that nothing unused is imported. Installed packages use the same syntax
(`importlib.metadata`, "Entry points").
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # importing it from typing costs 5 ms
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
    from typing import Any


def resolve(reference: str) -> Any:
    """Returns the object that "package.module:attribute" refers to."""
    module, _, attribute = reference.partition(":")
    return getattr(importlib.import_module(module), attribute)


def entry_points(group: str) -> tuple[EntryPoint, ...]:
    """The entry points of a group. It reads the metadata of every installed package: some
    milliseconds, so ask only where the built-in table has no answer."""
    from importlib import metadata

    return tuple(metadata.entry_points(group=group))
