"""Reading and printing FlyDSL's text. Purely lexical: MLIR's own parser and printer do the rest.

MLIR reads and prints ops it has no syntax for in generic form, so two things differ:

    FlyDSL's                                        MLIR's generic form
    fly.make_layout(%s, %d) : (T, T) -> T           "fly.make_layout"(%s, %d) : (T, T) -> T
    fly.static {elems = [4 : i32]} : T              "fly.static"() {elems = [4 : i32]} : () -> T
    fly.get_dyn_shared() : T                        "fly.get_dyn_shared"() : () -> T

The reader also brings types into normal form (no white space, `(4, 8)` is `(4,8)`), because MLIR
compares them as texts. It takes generic form as well. Lines stay lines, so a place in what MLIR
parsed is found again in what the user wrote.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Any

from fly_common.errors import InputError, Place

from fly_dialect.op_table import OPS
from fly_dialect.types import parse_type

# What matters to the reader: strings and comments (passed over whole), fly types, and names of fly
# ops. A name after one of `!#@%."` or inside a word is something else.
_READ = re.compile(
    r"""
      "fly\.[A-Za-z_][\w.]*"\s*\([^()"]*\)\s*(?P<properties><\{)
    | "(?:[^"\\\n]|\\.)*"
    | //[^\n]*
    | (?P<type>!fly\.[A-Za-z_][\w.]*)
    | (?<![\w.$\-#!@%"])fly\.(?P<op>[A-Za-z_][\w.]*)(?=\s*[(<{:])
    """,
    re.VERBOSE,
)
_SHALLOW = re.compile(r"\s*<((?:[^<>\"-]|<[^<>\"-]*>)*)>")
_ANGLE = re.compile(r'->|[<>]|"(?:[^"\\\n]|\\.)*"')
_BRACE = re.compile(r'[{}]|"(?:[^"\\\n]|\\.)*"')
_SPACE = re.compile(r"\s*")
_NO_OPERANDS = re.compile(r"\s*\(\s*\)")

_WRITE = re.compile(
    r'"fly\.(?P<op>[A-Za-z_][\w.]*)"(?=\()|"(?:[^"\\\n]|\\.)*"',
)
_FUNCTIONAL = re.compile(r"\s*:\s*\(\)\s*->\s*")


class _Rewriter:
    """A text and changes to it; once `finish` has made them, it knows how positions moved."""

    def __init__(self, source: str):
        self.source = source
        self.changes: list[tuple[int, int, str]] = []
        self.moved_from: list[int] = []  # positions in the output, ascending …
        self.moved_to: list[int] = []  # … and the positions in the source they came from

    def put(self, start: int, end: int, replacement: str) -> None:
        """Notes that source[start:end] is to be replaced. Changes may come in any order, because
        an op's colon is found before the types in its attributes; they may not overlap."""
        self.changes.append((start, end, replacement))

    def finish(self) -> str:
        self.changes.sort()
        pieces: list[str] = []
        self.moved_from, self.moved_to = [0], [0]
        done = written = 0
        for start, end, replacement in self.changes:
            kept = self.source[done:start]
            pieces += kept, replacement
            written += len(kept) + len(replacement)
            done = end
            self.moved_from.append(written)
            self.moved_to.append(end)
        pieces.append(self.source[done:])
        return "".join(pieces)

    def origin(self, position: int) -> int:
        """The source position of an output position (of an insertion: where it was made)."""
        index = bisect_right(self.moved_from, position) - 1
        origin = self.moved_to[index] + position - self.moved_from[index]
        limit = self.moved_to[index + 1] if index + 1 < len(self.moved_to) else len(self.source)
        return min(origin, limit)


def read(text: str, context: Any, name: str = "<stdin>") -> Any:
    """The module that `text` spells; MLIR's verifier has seen it, `dialect.verify` has not.

    Raises InputError with file `name`, line, column and the line itself.
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


def write(module: Any, locations: bool = True) -> str:
    """The module in FlyDSL's text, with a newline at the end. `locations` prints `loc(…)`."""
    generic = module.operation.get_asm(
        enable_debug_info=locations,
        use_local_scope=locations,
        use_name_loc_as_prefix=True,
        assume_verified=True,
    )
    text = from_generic(generic)
    return text if text.endswith("\n") else text + "\n"


def to_generic(text: str, name: str = "<stdin>") -> _Rewriter:
    """FlyDSL's text → what MLIR parses. InputError for a fly type that can't be read."""
    out = _Rewriter(text)
    normal: dict[str, str] = {}
    position = 0
    while match := _READ.search(text, position):
        position = match.end()
        if match["type"] is not None:
            position = _read_type(out, match, normal, name)
        elif match["op"] is not None:
            _read_op(out, match)
        elif match["properties"] is not None:
            _read_properties(out, match)
    return out


def _read_type(out: _Rewriter, match: re.Match[str], normal: dict[str, str], name: str) -> int:
    """Replaces a type by its normal form; gives the position after it."""
    start, source = match.start(), out.source
    if shallow := _SHALLOW.match(source, match.end()):
        end = shallow.end()
    else:
        end = _closing_angle(source, match.end())
        if end is None:
            raise InputError(
                f"`{match['type']}<` is never closed", place=_place(source, start, name)
            )
    written = source[start:end]
    if written not in normal:
        try:
            text = str(parse_type(written))
        except ValueError as error:
            where = _place(source, start, name, len(written))
            raise InputError(f"in {match['type']}: {error}", place=where) from None
        # Lines must stay lines: a type that spans several keeps its line breaks after it.
        normal[written] = text + "\n" * written.count("\n")
    if normal[written] != written:
        out.put(start, end, normal[written])
    return end


def _closing_angle(source: str, position: int) -> int | None:
    """The position after the `>` that closes the `<` at `position`; `position` if there is none
    to close; None if it never closes. `->` is an arrow."""
    start = _SPACE.match(source, position).end()  # type: ignore[union-attr]
    if not source.startswith("<", start):
        return position
    depth = 0
    for token in _ANGLE.finditer(source, start):
        if token[0] == "<":
            depth += 1
        elif token[0] == ">":
            depth -= 1
            if depth == 0:
                return token.end()
    return None


def _read_op(out: _Rewriter, match: re.Match[str]) -> None:
    op = match["op"]
    info = OPS.get(op)
    form = info.form if info else "functional"
    if form == "functional":
        out.put(match.start(), match.end(), f'"fly.{op}"')
        return
    end = match.end()
    if operands := _NO_OPERANDS.match(out.source, end):
        end = operands.end()
    out.put(match.start(), end, f'"fly.{op}"()' + "\n" * out.source.count("\n", match.start(), end))
    colon = _after_attributes(out.source, end)
    if out.source.startswith(":", colon):
        after = _SPACE.match(out.source, colon + 1).end()  # type: ignore[union-attr]
        if not out.source.startswith("(", after):
            out.put(colon, colon + 1, ": () ->")


def _read_properties(out: _Rewriter, match: re.Match[str]) -> None:
    """Makes `<{…}>`, the properties of an op in generic form, its attributes: ops of an
    unregistered dialect have no properties. Attributes that follow join them."""
    start = match.start("properties")
    end = _closing_brace(out.source, start + 1)
    if end is None or not out.source.startswith(">", end):
        return
    out.put(start, start + 1, "")
    rest = _SPACE.match(out.source, end + 1).end()  # type: ignore[union-attr]
    if out.source.startswith("{", rest):
        out.put(end - 1, rest + 1, "," + "\n" * out.source.count("\n", end, rest))
    else:
        out.put(end, end + 1, "")


def _after_attributes(source: str, position: int) -> int:
    """The position after white space and an attribute dictionary, if there is one."""
    start = _SPACE.match(source, position).end()  # type: ignore[union-attr]
    if not source.startswith("{", start):
        return start
    end = _closing_brace(source, start)
    return len(source) if end is None else _SPACE.match(source, end).end()  # type: ignore[union-attr]


def _closing_brace(source: str, start: int) -> int | None:
    """The position after the `}` that closes the `{` at `start`; None if nothing does."""
    depth = 0
    for token in _BRACE.finditer(source, start):
        if token[0] == "{":
            depth += 1
        elif token[0] == "}":
            depth -= 1
            if depth == 0:
                return token.end()
    return None


def from_generic(text: str) -> str:
    """What MLIR prints → FlyDSL's text."""
    out = _Rewriter(text)
    position = 0
    while match := _WRITE.search(text, position):
        position = match.end()
        op = match["op"]
        if op is None:
            continue
        info = OPS.get(op)
        form = info.form if info else "functional"
        if form == "functional":
            out.put(match.start(), match.end(), f"fly.{op}")
            continue
        keep = "" if form == "static" else "()"
        operands = _NO_OPERANDS.match(text, match.end())
        if operands is None:
            continue
        colon = _after_attributes(text, operands.end())
        arrow = _FUNCTIONAL.match(text, colon)
        if arrow is None:
            continue
        out.put(match.start(), operands.end(), f"fly.{op}{keep}")
        out.put(colon, arrow.end(), ": ")
    return out.finish()


# -- errors ---------------------------------------------------------------------------------------
def _place(source: str, position: int, name: str, width: int = 1) -> Place:
    line = source.count("\n", 0, position) + 1
    start = source.rfind("\n", 0, position) + 1
    end = source.find("\n", position)
    text = source[start : end if end >= 0 else len(source)]
    return Place(name, line, position - start + 1, text, width)


def _parse_error(error: Any, rewriter: _Rewriter, generic: str, name: str) -> InputError:
    """MLIR's first diagnostic, at the place in the user's text."""
    from fly_dialect.dialect import PARSED_TEXT, file_position

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
        place = Place(*position)
    return InputError(message, place=place)


def _readable(message: str) -> str:
    return from_generic(message).replace("\n", " ")
