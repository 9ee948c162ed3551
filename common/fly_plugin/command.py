"""The flags of the tools about plugins. They are taken from a command line before the tool reads
the rest:

    --plugin ID|-ID|module:NAME   --ID-FIELD=VALUE   --list-plugins [--json]
    --list-slots [--json]         --verify-slots
"""

from __future__ import annotations

import os

from fly_common import filter
from fly_common.errors import UsageError

from fly_plugin import VERIFY, activated, activation, options
from fly_plugin.activation import Active, Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from fly_common.command_line.command import Command

PLUGIN = "--plugin"
HELP = (
    ("--plugin ID", "Activate a plugin: its id, -ID to remove it, or module:NAME. Repeatable."),
    ("--list-plugins", "List the plugins; with --json as JSON."),
    ("--list-slots", "List the slots and the plugins in them; with --json as JSON."),
    ("--verify-slots", "Check what holds at each slot, around each plugin."),
)
DIAGNOSTICS = (  # `fly_common.diagnostics` takes this flag from all command lines
    "--diagnostics FORMAT",
    "text, or json: errors and warnings as one JSON object a line.",
)


def chosen_by(words: Sequence[str]) -> tuple[Active, ...]:
    """Returns the plugins that the environment and a tool's words ask for."""
    _, requests, rest = _split(words)
    return activation.activate([*activation.in_environment(), *requests], _flags(rest))


def run(command: Command, tool: str, words: Sequence[str]) -> int:
    """Runs a tool's command with the plugins that the environment and `words` ask for."""
    switches, _, rest = _split(words)
    chosen = chosen_by(words)
    if "--list-plugins" in switches or "--list-slots" in switches:
        _list(switches, chosen)
        return 0
    if "--verify-slots" in switches:
        os.environ[VERIFY] = "1"
    _check_flags(command, tool, chosen)
    rest = _without_options(rest, chosen)
    command.sections = (
        ("Diagnostics", [DIAGNOSTICS]),
        ("Plugins", list(HELP)),
        *map(_section, chosen),
    )
    with activated(chosen):
        return command(tool, rest)


def _split(words: Sequence[str]) -> tuple[set[str], list[Request], list[str]]:
    """Separates the flags about plugins from the other words."""
    switches: set[str] = set()
    requests: list[Request] = []
    rest: list[str] = []
    reader = iter(words)
    for word in reader:
        if word == "--":
            rest += [word, *reader]
        elif word == PLUGIN or word.startswith(f"{PLUGIN}="):
            value = next(reader, None) if word == PLUGIN else word.partition("=")[2]
            if not value:
                raise UsageError(f"{PLUGIN} needs the id of a plugin", hint="see --list-plugins")
            requests.append(Request(value, PLUGIN))
        elif word in ("--list-plugins", "--list-slots", "--verify-slots"):
            switches.add(word)
        else:
            rest.append(word)
    if "--json" in rest and switches & {"--list-plugins", "--list-slots"}:
        rest.remove("--json")
        switches.add("--json")
    return switches, requests, rest


def _flags(words: Sequence[str]) -> dict[str, list[str]]:
    """Maps each long flag to its values. A value may be the next word, and a switch has none."""
    found: dict[str, list[str]] = {}
    for word, after in zip(words, (*words, "--")[1:], strict=True):
        if word.startswith("--") and len(word) > 2:
            name, equals, text = word[2:].partition("=")
            if not equals:
                text = "true" if after.startswith("--") else after
            found.setdefault(name, []).append(text)
    return found


def _without_options(words: Sequence[str], chosen: Sequence[Active]) -> list[str]:
    """Returns the words without those that are options of plugins."""
    known = {option.flag: option for one in chosen for option in options.of(one.plugin)}
    rest: list[str] = []
    reader = iter(words)
    for word in reader:
        option = known.get(word.partition("=")[0])
        if option is None:
            rest.append(word)
        elif "=" not in word and option.kind is not bool and next(reader, None) is None:
            raise UsageError(f"{option.flag} needs a value: {option.metavar}")
    return rest


def _check_flags(command: Command, tool: str, chosen: Sequence[Active]) -> None:
    """Raises UsageError for an option of a plugin that is one of the tool's."""
    own = command.flags()
    for one in chosen:
        for option in options.of(one.plugin):
            if option.flag in own:
                raise UsageError(f"{option.flag} is an option of the {one.named} and of {tool}")


def _section(one: Active) -> tuple[str, list[tuple[str, str]]]:
    """Returns the part of the help about a plugin's options."""
    rows = []
    for option in options.of(one.plugin):
        default = "" if option.required else f" [{option.default}]"
        rows.append((f"{option.flag} {option.metavar}", f"{option.help}{default}"))
    return f"Options of the {one.named}", rows or [("(none)", "")]


def _list(switches: set[str], chosen: Sequence[Active]) -> None:
    from fly_plugin import listing

    if "--list-plugins" in switches:
        made: Any = listing.plugins(chosen)
        text = listing.plugins_text
    else:
        made, text = listing.slot_rows(chosen), listing.slots_text
    if "--json" in switches:
        import json

        shown = json.dumps(made, indent=2, default=str) + "\n"
    else:
        shown = text(chosen)
    filter.write_output(shown.encode(), None)
