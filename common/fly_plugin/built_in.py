"""What this project has itself, as records of the same kind as those of other packages.

The registries keep their built-in entries in tables of their own, so that no run of a tool imports
a record. These records name the same entries; only --list-plugins and messages ask for them. They
are always active.
"""

from __future__ import annotations

from collections.abc import Mapping

from fly_common.resolve import resolve

from fly_plugin.manifest import Plugin

DISTRIBUTION = "fly-filters"
# The tables of the registries. They keep tools out of this package's imports.
BACKENDS = "fly_backend.registry:BUILT_IN"
TARGETS = "fly_target.registry:BUILT_IN"
DEVICES = "fly_run.devices.registry:DEVICES"
FILTERS = "fly_llc.insertion.filters:SHIPPED"
PICTURES = "fly_draw.pictures:BUILT_IN"


def plugins() -> tuple[Plugin, ...]:
    """Returns the records: each backend with its targets, the devices, fly-llc's machine passes and
    the pictures."""
    return (
        *(_backend(name, where) for name, where in resolve(BACKENDS).items()),
        Plugin(id="devices", version=_version(), devices=resolve(DEVICES)),
        Plugin(id="machine-passes", version=_version(), filters=_functions(resolve(FILTERS))),
        Plugin(id="pictures", version=_version(), pictures=resolve(PICTURES)),
    )


def _backend(name: str, where: str) -> Plugin:
    rows = resolve(TARGETS)
    targets = {chip: TARGETS for chip, row in rows.items() if row.backend == name}
    return Plugin(id=name, version=_version(), backends={name: where}, targets=targets)


def _functions(modules: Mapping[str, str]) -> dict[str, str]:
    """The references of shipped filters, whose table has their modules."""
    return {name: f"{module}:main" for name, module in modules.items()}


def _version() -> str:
    from fly_common import __version__

    return __version__
