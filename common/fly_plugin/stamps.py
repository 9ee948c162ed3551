"""The plugins that a module was made with, as a later stage finds them.

On an MLIR module, `fly.plugins = ["hello@0.1.0"]`; without a version if a program asks for a plugin
that was not active. In LLVM IR, the named metadata `!fly.plugins`, only with the plugins that have
something in a later stage. In objects, the section `.fly.plugins`, only with those that have
something at a slot of the link; it has each stamp with a ";" behind it. A stage compares them with
its active plugins. It never imports one because its input names it.
"""

from __future__ import annotations

import re

from fly_common.errors import InputError, Place

from fly_plugin import VARIABLE, active
from fly_plugin.slots import LINK, LLC, find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

ATTRIBUTE = "fly.plugins"
LATER = "fly.later_plugins"  # those that LLVM IR is stamped with
LINKED = "fly.linked_plugins"  # those that objects are stamped with
SECTION = ".fly.plugins"
_IN_MLIR = re.compile(
    r"^(?:builtin\.)?module\b[^\n]*?attributes \{[^\n]*?\bfly\.plugins = \[([^\]\n]*)\]",
    re.MULTILINE,
)
_NAMED = re.compile(rb"^!fly\.plugins = !\{(.*)\}$", re.MULTILINE)
_STRING = re.compile(rb'^!(\d+) = !\{!"([^"]*)"\}$', re.MULTILINE)


def of_active() -> list[str]:
    """Returns the stamps of the active plugins."""
    return [one.stamp for one in active()]


def of_later() -> list[str]:
    """Returns the stamps of the active plugins that have something behind fly-opt-py."""
    return [one.stamp for one in active() if _is_in(one.plugin.slots, LLC, LINK)]


def of_linked() -> list[str]:
    """Returns the stamps of the active plugins that have something at a slot of the link."""
    return [one.stamp for one in active() if _is_in(one.plugin.slots, LINK)]


def _is_in(names: Iterable[str], *stages: str) -> bool:
    found = (find(name) for name in names)
    return any(slot is not None and slot.stage in stages for slot in found)


def section(stamps: Iterable[str]) -> str:
    """Returns the text of an object's section."""
    return "".join(f"{stamp};" for stamp in stamps)


def in_section(data: bytes) -> list[str]:
    """Returns the stamps of an object's section; several objects' sections may be one."""
    return [stamp for stamp in data.decode(errors="replace").split(";") if stamp.strip()]


def check(stamps: Iterable[str], where: str, stage: str, what: str = "module") -> None:
    """Raises InputError if one of the plugins is not active, or active with another version. `what`
    has the stamps."""
    versions = {one.id: one.resolved.version for one in active()}
    for stamp in stamps:
        name, at, version = stamp.partition("@")
        if name not in versions:
            made = "was made with" if at else "asks for"
            raise InputError(
                f"the {what} {made} the plugin {stamp}, which is not active",
                place=Place(where),
                hint=f"{stage} --plugin={name}, or {VARIABLE}={name} for all stages",
            )
        if at and versions[name] != version:
            raise InputError(
                f"the {what} was made with the plugin {stamp}, and {name}@{versions[name]} is"
                " active",
                place=Place(where),
                hint=f"make the {what} again with this version",
            )


def in_mlir(text: str) -> list[str]:
    """Returns the stamps of a module's text, without parsing it: it may need their dialects."""
    found = _IN_MLIR.search(text)
    return re.findall(r'"([^"]*)"', found[1]) if found else []


def in_llvm(data: bytes) -> list[str]:
    """Returns the stamps of LLVM IR text."""
    named = _NAMED.search(data)
    if named is None:
        return []
    strings = {match[1]: match[2].decode() for match in _STRING.finditer(data)}
    nodes = (node.strip().removeprefix(b"!") for node in named[1].split(b","))
    return [strings[node] for node in nodes if node in strings]


def stamped_llvm(text: str, stamps: list[str]) -> str:
    """Returns LLVM IR text with the stamps."""
    if not stamps:
        return text
    used = [int(number) for number in re.findall(r"^!(\d+) = ", text, re.MULTILINE)]
    first = max(used, default=-1) + 1
    nodes = ", ".join(f"!{first + n}" for n in range(len(stamps)))
    lines = [f"!fly.plugins = !{{{nodes}}}"]
    lines += [f'!{first + n} = !{{!"{stamp}"}}' for n, stamp in enumerate(stamps)]
    return f"{text.rstrip()}\n\n" + "\n".join(lines) + "\n"
