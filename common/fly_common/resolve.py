"""Names of Python objects, resolved on use: "module:attribute", and entry points.

Tables name what they hold this way, so that nothing is imported that is not used, and packages from
outside come in by the same words (`importlib.metadata`, "Entry points").
"""

from __future__ import annotations

import importlib

from fly_common.errors import MissingError

TYPE_CHECKING = False  # typing's own costs 5 ms
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
    from typing import Any, TypeVar

    Named = TypeVar("Named")


def resolve(reference: str) -> Any:
    """What "package.module:attribute" names."""
    module, _, attribute = reference.partition(":")
    return getattr(importlib.import_module(module), attribute)


def entry_points(group: str) -> tuple[EntryPoint, ...]:
    """The entry points of a group. It reads the metadata of every installed package: some
    milliseconds, so ask only where the built-in table has no answer."""
    from importlib import metadata

    return tuple(metadata.entry_points(group=group))


def load(entry: EntryPoint, what: str, kind: type[Named]) -> Named:
    """What an entry point refers to: a `kind` of the entry point's name, called a `what` in
    messages. MissingError for one that can't be loaded, or is something else."""
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
