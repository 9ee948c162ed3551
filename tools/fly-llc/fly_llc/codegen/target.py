"""Reads the processor of a module from its LLVM IR text.

`llc` takes the processor of the ELF header, and of functions that name none, from `-mcpu`, and the
header's xnack and sramecc settings from `-mattr`, not from the functions' attributes. The IR
already contains all of it, so it is read here and passed on.

A module without functions (a host program that launches no kernel) names its processor in the
module flag `target-cpu`, which is read where no function names one.

The reader is lexical. It recognises strings and comments, so that a `define` inside one is ignored.
It only reads the attributes of function *definitions*: those of declarations do not affect code.
"""

from __future__ import annotations

import re

from fly_common.errors import InputError, Place
from fly_common.record import record

from fly_llc.codegen import points

HOW = "fly-opt-py --target writes the target into the IR"

_STRING = r'"[^"]*"'
# The constructs read at the top level. Strings and comments come first, to skip their contents.
_TOP = re.compile(
    rf"(?P<skip>;[^\n]*)|\btarget\s+triple\s*=\s*(?P<triple>{_STRING})"
    rf'|!\{{\s*i32\s+\d+\s*,\s*!"target-cpu"\s*,\s*!(?P<flag>{_STRING})\s*\}}'
    r"|\battributes\s+(?P<group>\#\d+)\s*=\s*\{"
    rf"|\bdefine\b[^@;]*(?P<name>@(?:{_STRING}|[\w.$-]+))\s*\(|{_STRING}"
)
_PIECE = re.compile(rf";[^\n]*|(?P<key>{_STRING})(?:\s*=\s*(?P<value>{_STRING}))?|#\d+|[(){{}}]")


@record
class Target:
    """`features` are those of the ELF header, as `+xnack` or `-xnack`, sorted."""

    triple: str
    cpu: str
    features: tuple[str, ...] = ()


@record
class _Function:
    name: str
    line: int
    attributes: dict[str, str]
    groups: tuple[str, ...]


def read_target(text: str, name: str) -> Target:
    """Returns the target of the module `text`, LLVM IR or the IR in a MIR file. `name` is the
    input's name in messages.

    Raises InputError if the triple is missing or not a supported GPU's, if neither a function nor
    the module names the processor, or if two functions name different ones.
    """
    triple, flag, functions = _scan(text)
    if triple is None:
        raise InputError("the module has no target triple", place=Place(name), hint=HOW)
    generation = points.of_triple(triple)
    if generation is None:
        known = ", ".join(one.triple for one in points.code_generations())
        raise InputError(
            f"the module is for {triple}; fly-llc generates code for {known}",
            place=Place(name),
            hint=HOW,
        )
    cpu = _agreed("target-cpu", functions, name, lambda function: function.get("target-cpu"))
    cpu = cpu or flag
    if cpu is None:
        raise InputError('no function has "target-cpu"', place=Place(name), hint=HOW)
    settings = (
        _agreed(f"setting of {feature}", functions, name, lambda f, key=feature: _setting(f, key))
        for feature in generation.header_features
    )
    features = tuple(sorted(setting for setting in settings if setting))
    return Target(triple, cpu, features or generation.default_features)


def _setting(attributes: dict[str, str], feature: str) -> str | None:
    """Returns the setting of the feature that matches the regular expression `feature`, with its
    sign, or None. The last mention wins, as in LLVM."""
    words = [word for word in attributes.get("target-features", "").split(",") if word]
    return next((word for word in reversed(words) if re.fullmatch(feature, word[1:])), None)


def _agreed(what, functions: list[_Function], name: str, value) -> str | None:
    """Returns the value that the functions have in common, or None if none has one."""
    first: _Function | None = None
    for function in functions:
        own = value(function.attributes)
        if own is None:
            continue
        if first is None:
            first = function
        elif own != value(first.attributes):
            raise InputError(
                f"the functions disagree on their {what}: {first.name} has "
                f"{value(first.attributes)}, {function.name} has {own}",
                place=Place(name, function.line),
                hint="an object contains code for one target: compile them separately",
            )
    return value(first.attributes) if first else None


def _scan(text: str) -> tuple[str | None, str | None, list[_Function]]:
    """Returns the triple, the module flag, and the defined functions with all their attributes."""
    triple: str | None = None
    flag: str | None = None
    groups: dict[str, dict[str, str]] = {}
    found: list[_Function] = []
    position = 0
    while match := _TOP.search(text, position):
        position = match.end()
        if match["triple"]:
            triple = match["triple"][1:-1]
        elif match["flag"]:
            flag = match["flag"][1:-1]
        elif match["group"]:
            groups[match["group"]], _, position = _attributes(text, position, "}")
        elif match["name"]:
            line = text.count("\n", 0, match.start()) + 1
            position = _past_parameters(text, position)
            own, used, position = _attributes(text, position, "{")
            found.append(_Function(match["name"], line, own, used))
    # Groups are defined after the functions that use them. A function's own attributes override
    # them.
    functions = []
    for function in found:
        merged: dict[str, str] = {}
        for group in function.groups:
            merged.update(groups.get(group, {}))
        merged.update(function.attributes)
        functions.append(_Function(function.name, function.line, merged, ()))
    return triple, flag, functions


def _past_parameters(text: str, position: int) -> int:
    """Returns the position after the `)` of a parameter list; `position` is after its `(`."""
    depth = 1
    for match in _PIECE.finditer(text, position):
        if match[0] in "()":
            depth += 1 if match[0] == "(" else -1
            if depth == 0:
                return match.end()
    return len(text)


def _attributes(text: str, position: int, end: str) -> tuple[dict[str, str], tuple[str, ...], int]:
    """Returns string attributes and group references up to `end`, and the position after it."""
    own: dict[str, str] = {}
    groups: list[str] = []
    for match in _PIECE.finditer(text, position):
        piece = match[0]
        if piece == end:
            return own, tuple(groups), match.end()
        if match["key"]:
            own[match["key"][1:-1]] = (match["value"] or '""')[1:-1]
        elif piece.startswith("#"):
            groups.append(piece)
    return own, tuple(groups), len(text)
