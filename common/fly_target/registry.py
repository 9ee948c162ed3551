"""Looks chips up by name.

The built-in rows are searched first. For other names, installed packages are searched: an entry
point of the group `fly.targets` has the name of the chip and refers to its `Target`. Only the named
chip's package is imported, and none can replace a built-in row.

    [project.entry-points."fly.targets"]
    mychip = "my_package.chips:MYCHIP"

Active plugins (`fly_plugin`) add theirs for as long as they are active.
"""

from __future__ import annotations

from fly_common.errors import UsageError
from fly_common.quoting import quoted
from fly_plugin import active

from fly_target.amd.chips import CHIPS as AMD_CHIPS
from fly_target.nvidia.chips import CHIPS as NVIDIA_CHIPS
from fly_target.target import Target

TYPE_CHECKING = False  # importing it from typing costs 5 ms
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "fly.targets"
BUILT_IN: dict[str, Target] = {one.name: one for one in (*AMD_CHIPS, *NVIDIA_CHIPS)}
EMULATED: dict[str, Target] = {name: one for name, one in BUILT_IN.items() if one.emulated}
_loaded: dict[str, Target] = {}  # rows loaded from entry points


def get(name: str) -> Target | None:
    """Returns the row of `name`, or None if there is none. Raises MissingError for an entry point
    that cannot be loaded."""
    if name in BUILT_IN:
        return BUILT_IN[name]
    for one in active():
        if where := one.plugin.targets.get(name):
            from fly_common.resolve import resolve

            return resolve(where)
    if name not in _loaded:
        entry = _entry_points().get(name)
        if entry is None:
            return None
        from fly_common.resolve import load

        _loaded[name] = load(entry, "target", Target)
    return _loaded[name]


def find(name: str) -> Target:
    """Returns the row of `name`. UsageError suggests similar names, or lists all of them."""
    found = get(name)
    if found is None:
        raise UsageError(f"unknown target {quoted(name)}", hint=_did_you_mean(name))
    return found


def names() -> tuple[str, ...]:
    """Returns all names: the built-in ones, then those of installed packages."""
    others = (name for name in _entry_points() if name not in BUILT_IN)
    return (*BUILT_IN, *others, *(name for one in active() for name in one.plugin.targets))


def owner(name: str) -> str | None:
    """Returns who has the row `name`, besides plugins, for messages; None if nobody has."""
    return "fly-filters" if name in BUILT_IN else None


def with_trait(*traits: str) -> tuple[str, ...]:
    """Returns the names of the built-in chips that have one of `traits`."""
    return tuple(name for name, one in BUILT_IN.items() if not one.traits.isdisjoint(traits))


def listed() -> str:
    """Returns the built-in names, for a help text."""
    return ", ".join(BUILT_IN)


def _entry_points() -> dict[str, EntryPoint]:
    from fly_common.resolve import entry_points

    return {entry.name: entry for entry in entry_points(GROUP)}


def _did_you_mean(name: str) -> str:
    import difflib

    known = names()
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    return f"did you mean {', '.join(near)}?" if near else f"the targets are {', '.join(known)}"
