"""The plugins that are available, and how their records are loaded.

    hello               an entry point of the group `fly.plugins`
    my_module:PLUGIN    a reference, for a plugin that is not installed
    a `Plugin`          in `@fly.jit(plugins=[…])`

Finding names reads the metadata of the installed packages and imports nothing.
"""

from __future__ import annotations

import os
import sys

from fly_common.errors import FlyError, MissingError, UsageError
from fly_common.quoting import quoted
from fly_common.record import record
from fly_common.resolve import entry_points, resolve

from fly_plugin.manifest import BUILT_IN, Plugin, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "fly.plugins"


@record
class Resolved:
    """A plugin whose record has been imported and checked. `distribution` is the package that
    advertises it, "" if there is none. `source` says where the record is."""

    plugin: Plugin
    version: str
    distribution: str
    source: str

    @property
    def id(self) -> str:
        return self.plugin.id

    @property
    def stamp(self) -> str:
        return f"{self.id}@{self.version}"

    @property
    def named(self) -> str:
        """How messages name it: plugin 'hello' (fly-hello 0.1.0)."""
        return f"plugin {quoted(self.id)} ({self.distribution or self.source} {self.version})"


def available() -> dict[str, list[EntryPoint]]:
    """Maps each advertised id to its entry points: several if packages contradict each other."""
    found: dict[str, list[EntryPoint]] = {}
    for entry in sorted(entry_points(GROUP), key=lambda one: (one.name, one.value)):
        # A package may be found twice, in two folders of the search path.
        if all(entry.value != other.value for other in found.get(entry.name, ())):
            found.setdefault(entry.name, []).append(entry)
    return found


def of_name(name: str) -> Resolved:
    """Resolves an id or a reference `module:NAME`. UsageError if there is no such plugin,
    MissingError if it can't be loaded."""
    if ":" in name:
        return _of_reference(name)
    known = available()
    if name not in known:
        raise unknown(name, list(known))
    if len(known[name]) > 1:
        both = " and ".join(f"{_distribution(one)} ({one.value})" for one in known[name])
        raise UsageError(
            f"two packages have a plugin {quoted(name)}: {both}", hint="uninstall one of them"
        )
    return of_entry(known[name][0])


def of_entry(entry: EntryPoint) -> Resolved:
    """Resolves an entry point."""
    where = f"plugin {quoted(entry.name)} ({_distribution(entry)}): {entry.value}"
    found = _checked(where, _loaded(where, entry.load))
    if found.id != entry.name:
        raise MissingError(
            f"{where} has the id {quoted(found.id)}",
            hint="the entry point's name must be the plugin's id",
        )
    dist = entry.dist
    version = found.version or (dist.version if dist else "") or "0"
    return Resolved(found, version, dist.name if dist else "", entry.value)


def of_object(plugin: object) -> Resolved:
    """Resolves a record that was passed to a function."""
    found = _checked("plugins=", plugin)
    return Resolved(found, found.version or "0", "", "a record")


def _of_reference(text: str) -> Resolved:
    where = f"plugin {text}"
    if (folder := os.getcwd()) not in sys.path:
        # As `python -m` does: a plugin that is being written is in the current folder.
        sys.path.append(folder)
    found = _checked(where, _loaded(where, lambda: resolve(text)))
    return Resolved(found, found.version or "0", "", text)


def _loaded(where: str, load: object) -> object:
    try:
        return load()  # type: ignore[operator]
    except FlyError as error:
        error.message = f"{where}: {error.message}"
        raise
    except Exception as error:
        raise failed(where, error) from error


def failed(where: str, error: Exception) -> MissingError:
    """The error for code of a plugin that can't be imported or fails."""
    reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return MissingError(
        f"{where}: {reason}", hint="mend the package, or don't ask for it; FLY_DEBUG=1 shows where"
    )


def _checked(where: str, found: object) -> Plugin:
    if not isinstance(found, Plugin):
        raise MissingError(f"{where} is a {type(found).__name__}, not a fly_plugin.manifest.Plugin")
    try:
        check(found)
    except UsageError as error:
        raise UsageError(f"{where}: {error.message}", hint=error.hint) from None
    return found


def _distribution(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "no distribution"


def unknown(name: str, known: list[str], sign: str = "") -> UsageError:
    """The error for an id that nothing has."""
    if name in BUILT_IN:
        return UsageError(
            f"the plugin {quoted(name)} is built in",
            hint="it is always active: --plugin adds and removes others",
        )
    shown = ", ".join(known) or "none"
    return UsageError(
        f"there is no plugin {quoted(sign + name)}",
        hint=f"the installed plugins: {shown}; a module in this folder is named module:NAME",
    )
