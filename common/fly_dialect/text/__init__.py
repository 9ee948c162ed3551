"""Parses and prints FlyDSL's text. Purely lexical: the rest is done by MLIR's parser and printer.

MLIR parses and prints ops of an unregistered dialect in generic form. The differences are:

    FlyDSL's                                        MLIR's generic form
    fly.make_layout(%s, %d) : (T, T) -> T           "fly.make_layout"(%s, %d) : (T, T) -> T
    fly.static {elems = [4 : i32]} : T              "fly.static"() {elems = [4 : i32]} : () -> T
    fly.get_dyn_shared() : T                        "fly.get_dyn_shared"() : () -> T

and the forms of some other ops (`fly_dialect.text.forms`). The reader also normalizes types (no
white space, `(4, 8)` is `(4,8)`), because MLIR compares them as text. It accepts the generic form
as well. Line breaks are kept, so that a position in MLIR's input maps to the user's text.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from fly_common.errors import InputError, Place

from fly_dialect import handover
from fly_dialect.extension import plugins_dialects, plugins_type
from fly_dialect.op_table import find
from fly_dialect.text import forms, lexical, location_aliases
from fly_dialect.text.lexical import Rewriter
from fly_dialect.type_text import parse_type

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

# The tokens that the reader needs: strings and comments (which are skipped), fly types, and names
# of fly ops. A name after one of `!#@%."` or inside a word is something else. The first line saves
# most positions of a text from being tried with each alternative.
_NAMESPACE = "fly(?:_[a-z0-9]+)?"
_READ = rf"""
    (?=["/!]|NAMESPACE)
    (?: "NAMESPACE\.[A-Za-z_][\w.]*"\s*\([^()"]*\)\s*(?P<properties><\{{)
    | {lexical.STRING}
    | //[^\n]*
    | (?P<type>!NAMESPACE\.[A-Za-z_][\w.]*)
    | (?<![\w.$\-#!@%"])(?P<op>NAMESPACE\.[A-Za-z_][\w.]*)(?=\s*[(<{{:%])
    )"""
_SHALLOW = re.compile(r"\s*<((?:[^<>\"-]|<[^<>\"-]*>)*)>")

# `!mma = …` and `#buffer = …` at the start of a line, and uses of such names.
_ALIAS = re.compile(r"^[ \t]*([!#][A-Za-z_]\w*)[ \t]*=[ \t]*", re.MULTILINE)
_ALIASED = re.compile(r"[!#][A-Za-z_]\w*(?![\w.$])")
_DOTTED = re.compile(r"[!#][A-Za-z_][\w.]*")

_WRITE = rf'"(?P<op>NAMESPACE\.[A-Za-z_][\w.]*)"(?=\()|{lexical.STRING}'


@functools.cache
def _compiled(pattern: str, plugins: tuple[str, ...] = ()) -> re.Pattern[str]:
    """The pattern for the dialects of this project, and of plugins."""
    names = "|".join((_NAMESPACE, *plugins))
    return re.compile(pattern.replace("NAMESPACE", f"(?:{names})"), re.VERBOSE)


def read(text: str, context: ir.Context, name: str = "<stdin>") -> ir.Module:
    """Parses a module. MLIR's verifier has checked it; `dialect.verify` has not.

    Raises InputError with file `name`, line, column and the text of the line.
    """
    from fly_dialect.bindings import ir
    from fly_dialect.dialect import load

    rewriter = to_generic(text, name)
    generic = rewriter.finish()
    with load(context):
        try:
            return ir.Module.parse(generic, context)
        except ir.MLIRError as error:
            raise _parse_error(error, rewriter, generic, name) from None


def read_offered(offered: handover.Offer, name: str = "<stdin>") -> ir.Module | None:
    """`read` of a text that was made in this process. Returns None if it has to be read."""
    from fly_dialect.bindings import ir

    check_depth(offered.printed, name)
    try:
        return ir.Module.parse(offered.printed, offered.context)
    except ir.MLIRError:  # `read` tells the place
        return None


def write(module: ir.Module, locations: bool = True) -> str:
    """Prints the module in FlyDSL's text, with a trailing newline. `locations` prints `loc(…)`."""
    if locations:
        printed = location_aliases.asm(module)
        text, located = location_aliases.separated(printed)
        text = location_aliases.expanded(from_generic(text), located)
    else:
        printed = module.operation.get_asm(use_name_loc_as_prefix=True, assume_verified=True)
        text = from_generic(printed)
    text = text if text.endswith("\n") else text + "\n"
    if locations:
        handover.offer(text, printed, module.context)
    return text


def to_generic(text: str, name: str = "<stdin>") -> Rewriter:
    """FlyDSL's text → MLIR's generic form. Raises InputError for an invalid fly type."""
    check_depth(text, name)
    out = Rewriter(text)
    normal: dict[str, str] = {}
    aliases = _aliases(text)
    position = 0
    tokens = _compiled(_READ, tuple(plugins_dialects()))
    while match := tokens.search(text, position):
        position = match.end()
        if match["type"] is not None:
            position = _read_type(out, match, normal, aliases, name)
        elif match["op"] is not None:
            forms.read(out, form_of(match["op"]), match["op"], match.start(), match.end())
        elif match["properties"] is not None:
            _read_properties(out, match)
    return out


def check_depth(text: str, name: str) -> None:
    """Raises InputError for brackets within brackets that MLIR's parser has no stack for."""
    if (deep := lexical.too_deep(text)) is not None:
        raise InputError(
            f"brackets are nested more than {lexical.MOST_NESTED} levels deep",
            place=_place(text, deep, name),
        )


def _aliases(text: str) -> dict[str, str]:
    """The aliases of types and attributes. MLIR expands them, except inside fly types, whose text
    it does not parse."""
    found: dict[str, str] = {}
    for match in _ALIAS.finditer(text):
        end = text.find("\n", match.end())
        if dotted := _DOTTED.match(text, match.end()):
            end = lexical.closing_angle(text, dotted.end()) or end
        found[match[1]] = _expanded(text[match.end() : end if end >= 0 else len(text)], found)
    return found


def _expanded(text: str, aliases: dict[str, str]) -> str:
    return _ALIASED.sub(lambda use: aliases.get(use[0], use[0]), text)


def _read_type(
    out: Rewriter,
    match: re.Match[str],
    normal: dict[str, str],
    aliases: dict[str, str],
    name: str,
) -> int:
    """Replaces a type by its normal form. Returns the position after it."""
    start, source = match.start(), out.source
    if shallow := _SHALLOW.match(source, match.end()):
        end = shallow.end()
    else:
        end = lexical.closing_angle(source, match.end())
        if end is None:
            raise InputError(
                f"`{match['type']}<` is never closed", place=_place(source, start, name)
            )
    written = source[start:end]
    if written not in normal:
        try:
            plain = _expanded(written, aliases) if aliases else written
            namespace, _, rest = plain[1:].partition(".")
            text = str(plugins_type(namespace, rest) or parse_type(plain))
        except ValueError as error:
            where = _place(source, start, name, len(written))
            raise InputError(f"in {match['type']}: {error}", place=where) from None
        except RecursionError:
            where = _place(source, start, name)
            raise InputError(f"{match['type']} is nested too deeply", place=where) from None
        # Line breaks must be kept: those of a type that spans several lines are put after it.
        normal[written] = text + "\n" * written.count("\n")
    if normal[written] != written:
        out.put(start, end, normal[written])
    return end


def _read_properties(out: Rewriter, match: re.Match[str]) -> None:
    """Converts `<{…}>`, the properties of an op in generic form, to attributes, because ops of an
    unregistered dialect have no properties. Attributes that follow are merged."""
    start = match.start("properties")
    end = lexical.closing_brace(out.source, start + 1)
    if end is None or not out.source.startswith(">", end):
        return
    out.put(start, start + 1, "")
    rest = lexical.after_space(out.source, end + 1)
    if out.source.startswith("{", rest):
        out.put(end - 1, rest + 1, "," + "\n" * out.source.count("\n", end, rest))
    else:
        out.put(end, end + 1, "")


def from_generic(text: str) -> str:
    """MLIR's output → FlyDSL's text."""
    out = Rewriter(text)
    for match in _compiled(_WRITE, tuple(plugins_dialects())).finditer(text):
        if name := match["op"]:
            forms.write(out, form_of(name), name, match.start(), match.end())
    return out.finish()


def form_of(name: str) -> str:
    """The form of an op's text. An unknown op has the general form."""
    info = find(name)
    return info.form if info else "functional"


# -- errors ---------------------------------------------------------------------------------------
def _place(source: str, position: int, name: str, width: int = 1) -> Place:
    line = source.count("\n", 0, position) + 1
    start = source.rfind("\n", 0, position) + 1
    end = source.find("\n", position)
    text = source[start : end if end >= 0 else len(source)]
    return Place(name, line, position - start + 1, text, width)


def _parse_error(error: ir.MLIRError, rewriter: Rewriter, generic: str, name: str) -> InputError:
    """MLIR's first diagnostic, located in the user's text."""
    from fly_dialect.dialect import PARSED_TEXT, file_position, place_of

    diagnostics = list(error.error_diagnostics)
    if not diagnostics:
        return InputError(str(error), place=Place(name))
    first = diagnostics[0]
    notes = [note.message for note in first.notes if not note.message.startswith("see current op")]
    message = "; ".join([_readable(first.message), *notes[:2]])
    place = Place(name)
    position = file_position(first.location)
    if position and position[0] == PARSED_TEXT:
        start = 0
        for _ in range(position[1] - 1):
            start = generic.find("\n", start) + 1
        origin = rewriter.origin(start + max(0, position[2] - 1))
        place = _place(rewriter.source, origin, name)
    elif position:
        place = place_of(first.location) or place
    return InputError(message, place=place)


def _readable(message: str) -> str:
    return from_generic(message).replace("\n", " ")
