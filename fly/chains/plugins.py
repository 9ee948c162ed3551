"""A chain with plugins: its stages run with the same active plugins, which are in the fingerprints
of the stages that they touch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from fly_common.errors import UsageError
from fly_common.programs import prefetch
from fly_common.quoting import quoted
from fly_common.record import replace
from fly_plugin import activated, activation, contents, identity, options, slots
from fly_plugin.activation import Active, Request
from fly_plugin.manifest import Command, Plugin

from fly.chains.stage import Stage

if TYPE_CHECKING:
    from fly.chains.chain import Chain

BY = "plugins="
# The stages of the chain, by the tools whose slots they have.
_TOOLS = {"opt-py": slots.OPT, "llc": slots.LLC, "link": slots.LINK}


def with_plugins(plugins: Iterable[object], make: Callable[[], Chain]) -> Chain:
    """Returns the chain that `make` makes, with these plugins after those of the environment."""
    chosen = activation.activate([*activation.in_environment(), *requests(plugins)])
    if not chosen:
        return make()
    with activated(chosen):
        made = make()
        stages = tuple(_active(stage, chosen) for stage in made.stages)
    return replace(made, stages=stages, plugins=chosen)


def requests(plugins: Iterable[object]) -> list[Request]:
    """Converts the elements of `plugins=`. UsageError for one that is none."""
    if isinstance(plugins, (str, Plugin)):
        raise UsageError(f"plugins={quoted(plugins)}: must be a list")
    made = []
    for one in plugins:
        what, given = one if isinstance(one, tuple) and len(one) == 2 else (one, None)
        if not isinstance(what, (str, Plugin)) or what == "":
            raise UsageError(
                f"plugins: {quoted(one)} is not a plugin",
                hint="an id, module:NAME, a fly_plugin.manifest.Plugin, or a pair (one, options)",
            )
        made.append(Request(what, BY, given))
    return made


def asked(plugins: Iterable[object]) -> tuple[str, ...]:
    """Returns the ids that a program asks for, as a module names them."""
    found = (request.what for request in requests(plugins))
    names = [what.id if isinstance(what, Plugin) else what.removeprefix("+") for what in found]
    return tuple(name for name in names if ":" not in name and not name.startswith("-"))


def _active(stage: Stage, chosen: tuple[Active, ...]) -> Stage:
    """Returns a stage that runs with these plugins."""
    tool = _TOOLS.get(stage.name)
    if tool is None:
        return stage

    def run(data: bytes) -> bytes:
        with activated(chosen):
            return stage.run(data)

    def fingerprint() -> str:
        with activated(chosen):
            own = stage.fingerprint if isinstance(stage.fingerprint, str) else stage.fingerprint()
            added = identity.of_stage(tool)
        return f"{own}\n{added}" if added else own

    def ahead() -> prefetch.Command | None:
        with activated(chosen):
            return stage.ahead() if stage.ahead else None

    lines = stage.with_lines
    flags = (word for one in chosen for word in one.flags)
    with activated(chosen):
        settled = stage.settled and not _runs_commands(chosen)
    return replace(
        stage,
        run=run,
        fingerprint=fingerprint,
        words=(*stage.words, *flags),
        with_lines=lines and (lambda: _active(lines(), chosen)),
        ahead=ahead,
        settled=settled,
    )


def _runs_commands(chosen: tuple[Active, ...]) -> bool:
    """Whether a program, which the user may change at any time, is at a slot."""
    seats = (contents.seat_of(one, name) for one in chosen for name in one.plugin.slots)
    return any(seat is not None and isinstance(seat.content, Command) for seat in seats)


def variables(chosen: tuple[Active, ...]) -> tuple[str, ...]:
    """Returns the environment variables of the plugins' options."""
    return tuple(name for one in chosen for name in options.variables(one.plugin))


def trace_identity(chosen: tuple[Active, ...]) -> str:
    """Identifies what the plugins do while a function is traced."""
    with activated(chosen):
        return identity.of_stage(slots.TRACE)
