"""Activation: available → resolved → bound → active.

Requests are read in order, those of FLY_PLUGINS first, then those of the call. `hello` adds a
plugin, `-hello` removes it. The first request for a plugin sets its position. Only what is asked
for in the end is imported; it is then checked against the other plugins, and its options are read.
"""

from __future__ import annotations

import os
import re

from fly_common.errors import UsageError
from fly_common.quoting import quoted
from fly_common.record import record
from fly_common.resolve import resolve

from fly_plugin import VARIABLE, discovery, options, slots
from fly_plugin.discovery import Resolved
from fly_plugin.manifest import Plugin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

# What a tool defines itself, by table of `Plugin`: references to functions that say who defines a
# name, or None. They keep tools out of this package's imports.
_OWNERS = {
    "passes": "fly_opt.pipeline.registry:owner",
    "filters": "fly_llc.insertion.filters:owner",
    "targets": "fly_target.registry:owner",
    "backends": "fly_backend.registry:owner",
    "devices": "fly_run.devices.registry:owner",
    "pictures": "fly_draw.pictures:owner",
}
# Names that two plugins can't both have.
_UNIQUE = (
    *("dialects", "namespaces", "passes", "filters", "targets", "backends", "devices"),
    *("summaries", "atoms", "pictures"),
)

_SINGULAR = {"passes": "pass", "summaries": "summary"}


@record
class Request:
    """`what` is an id, a reference, or a record. `by` is who asks, for messages. `options` is the
    plugin's dataclass, or None to read them from flags and the environment."""

    what: str | Plugin
    by: str
    options: Any = None


@record
class Active:
    """An active plugin: its record with version and distribution, its options (None if it has
    none), and who asked for it."""

    resolved: Resolved
    options: Any
    by: str

    @property
    def plugin(self) -> Plugin:
        return self.resolved.plugin

    @property
    def id(self) -> str:
        return self.resolved.plugin.id

    @property
    def stamp(self) -> str:
        return self.resolved.stamp

    @property
    def named(self) -> str:
        return self.resolved.named

    @property
    def flags(self) -> list[str]:
        """The flags that activate it like this."""
        source = self.id if self.resolved.distribution else self.resolved.source
        return [f"--plugin={source}", *options.flags(self.id, self.options)]


def in_environment() -> list[Request]:
    """Returns the requests of FLY_PLUGINS, separated by commas or white space."""
    words = re.split(r"[,\s]+", os.environ.get(VARIABLE, ""))
    return [Request(word, VARIABLE) for word in words if word]


def activate(
    requests: Iterable[Request], given: Mapping[str, Sequence[str]] | None = None
) -> tuple[Active, ...]:
    """Returns the plugins that the requests ask for, in order. `given` maps flags without dashes
    ("hello-factor") to their values; it is emptied of those that are options of these plugins.

    UsageError for unknown ids, contradictions and wrong options, MissingError for a plugin that
    can't be loaded.
    """
    kept = _resolved(_asked(requests))
    found = [one for one, _ in kept]
    for one in found:
        _check_requirements(one, found)
        _check_slots(one)
    _check_names(found)
    _check_flags(found)
    return tuple(Active(one, _bound(one, request, given), request.by) for one, request in kept)


def resolve_all(requests: Iterable[Request]) -> list[tuple[Resolved, Request]]:
    """Returns the records of what the requests ask for, without binding options."""
    return _resolved(_asked(requests))


def _asked(requests: Iterable[Request]) -> dict[str, Request]:
    """Returns what is asked for in the end, by name: an id, or a reference."""
    kept: dict[str, Request] = {}
    for request in requests:
        if isinstance(request.what, Plugin):
            _add_record(kept, request.what, request)
            continue
        name = request.what.removeprefix("+")
        if not name.startswith("-"):
            if name not in kept or request.options is not None:
                kept[name] = request
            continue
        _remove(kept, name[1:])
    return kept


def _add_record(kept: dict[str, Request], plugin: Plugin, request: Request) -> None:
    """Adds a record, in the position of an earlier request for its id."""
    earlier = kept.get(plugin.id)
    if earlier is None or isinstance(earlier.what, str) or request.options is not None:
        kept[plugin.id] = request
    elif earlier.what != plugin:
        kept[f"{plugin.id}, a second time"] = request  # reported when both are resolved


def _remove(kept: dict[str, Request], name: str) -> None:
    """Removes `name`. UsageError if there is no such plugin, so that a misspelt name is seen."""
    if kept.pop(name, None) is not None:
        return
    for key in [key for key in kept if ":" in key]:
        if discovery.of_name(key).id == name:
            del kept[key]
            return
    if ":" in name:
        discovery.of_name(name)  # an error if there is none
    elif name not in (known := discovery.available()):
        raise discovery.unknown(name, list(known), "-")


def _resolved(kept: dict[str, Request]) -> list[tuple[Resolved, Request]]:
    # Ids of plugins that are given by references or records are not looked up.
    direct = {name: one for name, request in kept.items() if (one := _direct(request.what))}
    given = {one.id for one in direct.values()}
    found: dict[str, tuple[Resolved, Request]] = {}
    for name, request in kept.items():
        if name in given and isinstance(request.what, str) and name not in direct:
            continue
        one = direct.get(name) or discovery.of_name(name)
        if one.id in found:
            other, earlier = found[one.id]
            if other.plugin is one.plugin or other.plugin == one.plugin:
                continue
            raise UsageError(
                f"two plugins have the id {quoted(one.id)}: {other.source} (by {earlier.by}) and"
                f" {one.source} (by {request.by})"
            )
        found[one.id] = one, request
    return list(found.values())


def _direct(what: str | Plugin) -> Resolved | None:
    if isinstance(what, Plugin):
        return discovery.of_object(what)
    return discovery.of_name(what.removeprefix("+")) if ":" in what else None


def _check_requirements(one: Resolved, others: list[Resolved]) -> None:
    here = {other.id for other in others}
    for name in one.plugin.requires:
        if name not in here:
            raise UsageError(
                f"{one.named} requires the plugin {quoted(name)}, which is not active",
                hint=f"add --plugin={name}",
            )


def _check_slots(one: Resolved) -> None:
    for name in one.plugin.slots:
        if slots.find(name) is None:
            error = slots.unknown(name)
            error.message = f"{one.named}: {error.message}"
            raise error


def _check_names(found: list[Resolved]) -> None:
    """Raises UsageError for a name that two plugins define, or a plugin and the project."""
    for table in _UNIQUE:
        seen: dict[str, Resolved] = {}
        for one in found:
            for name in getattr(one.plugin, table):
                what = f"{_SINGULAR.get(table, table[:-1])} {quoted(name)}"
                if name in seen:
                    raise UsageError(f"{seen[name].named} and {one.named} both define the {what}")
                seen[name] = one
                owner = resolve(_OWNERS[table])(name) if table in _OWNERS else None
                if owner is not None:
                    raise UsageError(f"{one.named} defines the {what}, which {owner} defines too")


def _check_flags(found: list[Resolved]) -> None:
    """Raises UsageError for a flag with two meanings: options of two plugins, or an option and a
    pass, which is a flag of fly-opt-py."""
    meanings = {
        f"--{name}": f"the pass {quoted(name)} of the {one.named}"
        for one in found
        for name in one.plugin.passes
    }
    for one in found:
        try:
            known = options.of(one.plugin)
        except Exception:  # reported when they are bound
            continue
        for option in known:
            if option.flag in meanings:
                raise UsageError(
                    f"{option.flag} is an option of the {one.named} and {meanings[option.flag]}"
                )
            meanings[option.flag] = f"an option of the {one.named}"


def _bound(one: Resolved, request: Request, given: Mapping[str, Sequence[str]] | None) -> Any:
    try:
        return options.bind(one.plugin, request.options, given or {})
    except UsageError as error:
        error.message = f"{one.named}: {error.message}"
        raise
    except Exception as error:
        raise discovery.failed(f"{one.named}: its options", error) from error
