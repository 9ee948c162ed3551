"""References to Python objects, resolved on use: "module:attribute", and entry points.

Tables use them so that nothing unused is imported. Installed packages use the same syntax
(`importlib.metadata`, "Entry points").
"""

from __future__ import annotations

import importlib

from fly_common.errors import MissingError

TYPE_CHECKING = False  # importing it from typing costs 5 ms
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
    from typing import Any, TypeVar

    Named = TypeVar("Named")


def resolve(reference: str) -> Any:
    """Returns the object that "package.module:attribute" refers to."""
    module, _, attribute = reference.partition(":")
    return getattr(importlib.import_module(module), attribute)


def entry_points(group: str) -> tuple[EntryPoint, ...]:
    """The entry points of a group. It reads the metadata of every installed package: some
    milliseconds, so ask only where the built-in table has no answer."""
    from importlib import metadata

    return tuple(metadata.entry_points(group=group))


def load(entry: EntryPoint, what: str, kind: type[Named]) -> Named:
    """Returns the object that an entry point refers to: a `kind` with the entry point's name,
    called a `what` in messages. Raises MissingError if it cannot be loaded, or is something else.
    """
    where = f"{what} {entry.name}: the entry point {entry.value} of {entry.group}"
    try:
        found = entry.load()
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"[:200]
        hint = "mend the package that has it, or uninstall it"
        raise MissingError(f"{where} can't be loaded: {reason}", hint=hint) from error
    name = found.name if isinstance(found, kind) else None  # type: ignore[attr-defined]
    if name != entry.name:
        is_what = type(found).__name__ if name is None else f"the {what} {name}"
        raise MissingError(
            f"{where} is {is_what}, not the {what} {entry.name}",
            hint=f"it must refer to a {kind.__module__}.{kind.__name__} of that name",
        )
    return found
