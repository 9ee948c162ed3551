"""--list-plugins and --list-slots, as text and as JSON.

A listing imports the records of all plugins, and shows the error of one that can't be imported.
"""

from __future__ import annotations

from fly_common.errors import FlyError
from fly_common.quoting import shortened

from fly_plugin import built_in, discovery, options, slots
from fly_plugin.activation import Active
from fly_plugin.discovery import Resolved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


BUILT_IN = "built in"
_TABLES = (
    *("slots", "passes", "filters", "dialects", "namespaces", "atoms"),
    *("targets", "backends", "devices", "summaries", "pictures"),
)


def plugins(active: Iterable[Active]) -> list[dict[str, Any]]:
    """Returns what is known of each plugin: the active ones in their order, then the others, then
    what is built in."""
    rows = [_row(one.resolved, "active", one) for one in active]
    known = {row["id"] for row in rows}
    for name, entries in discovery.available().items():
        if name in known:
            continue
        for entry in entries:
            try:
                if len(entries) > 1:
                    discovery.of_name(name)  # the error that names both
                rows.append(_row(discovery.of_entry(entry), "available"))
            except FlyError as error:
                rows.append(_broken(name, entry, error))
    own = (Resolved(one, one.version, built_in.DISTRIBUTION, "") for one in built_in.plugins())
    return [*rows, *(_row(one, BUILT_IN) for one in own)]


def _row(one: Resolved, state: str, active: Active | None = None) -> dict[str, Any]:
    plugin = one.plugin
    row: dict[str, Any] = {
        "id": plugin.id,
        "version": one.version,
        "api": plugin.api,
        "distribution": one.distribution,
        "source": one.source,
        "state": state,
        "by": active.by if active else "",
        **{name: list(getattr(plugin, name)) for name in _TABLES},
        "options": [],
        "requires": list(plugin.requires),
        "error": "",
    }
    try:
        row["options"] = [
            {
                "flag": option.flag,
                "variable": option.variable,
                "type": option.kind.__name__,
                "default": option.default,
                "help": option.help,
                "value": getattr(active.options, option.name) if active else None,
            }
            for option in options.of(plugin)
        ]
    except Exception as error:
        row["state"], row["error"] = "broken", _reason(error)
    return row


def _broken(name: str, entry: Any, error: FlyError) -> dict[str, Any]:
    dist = entry.dist
    return {
        "id": name,
        "version": dist.version if dist else "",
        "api": None,
        "distribution": dist.name if dist else "",
        "source": entry.value,
        "state": "broken",
        "by": "",
        **{name: [] for name in _TABLES},
        "options": [],
        "requires": [],
        "error": error.message,
    }


def _reason(error: Exception) -> str:
    text = error.message if isinstance(error, FlyError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())


def plugins_text(active: Iterable[Active]) -> str:
    """Returns the listing of plugins for people."""
    rows = plugins(active)
    shown = [_plugin_text(row) for row in rows]
    if all(row["state"] == BUILT_IN for row in rows):
        shown.insert(0, "no plugins are installed\n")
    return "\n".join(shown)


def _plugin_text(row: dict[str, Any]) -> str:
    where = f"{row['distribution'] or row['source']} {row['version']}".strip()
    by = f", by {row['by']}" if row["by"] else ""
    lines = [f"{row['id']} ({where}): {row['state']}{by}"]
    lines += [f"  {name:<10} {', '.join(row[name])}" for name in _TABLES if row[name]]
    for option in row["options"]:
        value = option["default"] if option["value"] is None else option["value"]
        shown = f"{option['flag']}={str(value).lower() if isinstance(value, bool) else value}"
        lines.append(f"  {'option':<10} {shown}  {option['help']}".rstrip())
    if row["error"]:
        lines.append(f"  {'error':<10} {shortened(row['error'], 400)}")
    return "\n".join(lines) + "\n"


def slot_rows(active: Iterable[Active]) -> list[dict[str, Any]]:
    """Returns the slots in the order in which a kernel passes them, with who is there."""
    active = tuple(active)
    return [
        {
            "slot": slot.name,
            "stage": slot.stage,
            "holds": slot.holds,
            "invariant": slot.invariant,
            "plugins": [one.id for one in active if slot.name in one.plugin.slots],
        }
        for slot in slots.every()
    ]


def slots_text(active: Iterable[Active]) -> str:
    """Returns the listing of slots for people."""
    rows = slot_rows(active)
    width = max(len(row["slot"]) for row in rows)
    lines = []
    for row in rows:
        there = f"  [{', '.join(row['plugins'])}]" if row["plugins"] else ""
        what = f"{row['stage']:<10}  {row['holds']:<7}"
        lines.append(f"{row['slot']:<{width}}  {what}  {row['invariant']}{there}")
    return "\n".join(lines) + "\n"
