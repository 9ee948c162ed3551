"""Which processor a module is for, read out of its LLVM IR text.

`llc` takes the processor of the ELF header, and of functions that name none, from `-mcpu`, and the
xnack and sramecc settings of the header from `-mattr`, not from the functions' attributes. The IR
says all of it already, so nobody should have to say it again: it is read here and passed on.

The reader is lexical. It knows strings and comments, so that a `define` inside one is none, and
takes the attributes of function *definitions* only: a declaration's mean nothing for the code.
"""

from __future__ import annotations

import re

from fly_common.errors import InputError, Place
from fly_common.record import record

from fly_llc.codegen import points

HOW = "fly-opt-py --target writes the target into the IR"

_STRING = r'"[^"]*"'
# What matters at the top level. Strings and comments come first: they hide what is in them.
_TOP = re.compile(
    rf"(?P<skip>;[^\n]*)|\btarget\s+triple\s*=\s*(?P<triple>{_STRING})"
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
    """The target of the module `text`, LLVM IR or the IR in a MIR file. `name` is the input's name
    in messages.

    Raises InputError where the triple is missing or not AMD GPU's, where no function names its
    processor, and where two functions name different ones.
    """
    triple, functions = _scan(text)
    if triple is None:
        raise InputError("the module has no target triple", place=Place(name), hint=HOW)
    known = points.code_generations()
    generation = next((one for one in known if re.match(one.triples, triple)), None)
    if generation is None:
        raise InputError(
            f"the module is for {triple}; fly-llc generates code for"
            f" {', '.join(one.triple for one in known)}",
            place=Place(name),
            hint=HOW,
        )
    cpu = _agreed("target-cpu", functions, name, lambda function: function.get("target-cpu"))
    if cpu is None:
        raise InputError('no function has "target-cpu"', place=Place(name), hint=HOW)
    settings = (
        _agreed(f"setting of {feature}", functions, name, lambda f, key=feature: _setting(f, key))
        for feature in generation.header_features
    )
    return Target(triple, cpu, tuple(sorted(setting for setting in settings if setting)))


def _setting(attributes: dict[str, str], feature: str) -> str | None:
    """`+xnack`, `-xnack` or None; the last mention counts, as in LLVM."""
    words = [word for word in attributes.get("target-features", "").split(",") if word]
    return next((word for word in reversed(words) if word[1:] == feature), None)


def _agreed(what, functions: list[_Function], name: str, value) -> str | None:
    """The one value that all functions which have any give; None where none does."""
    first: _Function | None = None
    for function in functions:
        said = value(function.attributes)
        if said is None:
            continue
        if first is None:
            first = function
        elif said != value(first.attributes):
            raise InputError(
                f"the functions disagree on their {what}: {first.name} has "
                f"{value(first.attributes)}, {function.name} has {said}",
                place=Place(name, function.line),
                hint="an object contains code for one target: compile them separately",
            )
    return value(first.attributes) if first else None


def _scan(text: str) -> tuple[str | None, list[_Function]]:
    """The triple, and the defined functions with all their attributes."""
    triple: str | None = None
    groups: dict[str, dict[str, str]] = {}
    found: list[_Function] = []
    position = 0
    while match := _TOP.search(text, position):
        position = match.end()
        if match["triple"]:
            triple = match["triple"][1:-1]
        elif match["group"]:
            groups[match["group"]], _, position = _attributes(text, position, "}")
        elif match["name"]:
            line = text.count("\n", 0, match.start()) + 1
            position = _past_parameters(text, position)
            own, used, position = _attributes(text, position, "{")
            found.append(_Function(match["name"], line, own, used))
    # Groups stand below the functions that use them; a function's own word wins over its groups'.
    functions = []
    for function in found:
        merged: dict[str, str] = {}
        for group in function.groups:
            merged.update(groups.get(group, {}))
        merged.update(function.attributes)
        functions.append(_Function(function.name, function.line, merged, ()))
    return triple, functions


def _past_parameters(text: str, position: int) -> int:
    """The position after the `)` that closes a parameter list whose `(` lies behind."""
    depth = 1
    for match in _PIECE.finditer(text, position):
        if match[0] in "()":
            depth += 1 if match[0] == "(" else -1
            if depth == 0:
                return match.end()
    return len(text)


def _attributes(text: str, position: int, end: str) -> tuple[dict[str, str], tuple[str, ...], int]:
    """String attributes and group references up to `end`, and the position after it."""
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
