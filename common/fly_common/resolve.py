"""Names of Python objects, resolved on use: "module:attribute", and entry points.

Tables name what they hold this way, so that nothing is imported that is not used, and packages from
outside come in by the same words (`importlib.metadata`, "Entry points").
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # typing's own costs 5 ms
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
    from typing import Any


def resolve(reference: str) -> Any:
    """What "package.module:attribute" names."""
    module, _, attribute = reference.partition(":")
    return getattr(importlib.import_module(module), attribute)


def entry_points(group: str) -> tuple[EntryPoint, ...]:
    """The entry points of a group. It reads the metadata of every installed package: some
    milliseconds, so ask only where the built-in table has no answer."""
    from importlib import metadata

    return tuple(metadata.entry_points(group=group))
