"""The text form of each op, and its conversion to and from MLIR's generic form.

    functional   fly.op(%a, %b) {…} : (A, B) -> R         "fly.op"(%a, %b) {…} : (A, B) -> R
    static       fly.op {…} : R                           "fly.op"() {…} : () -> R
    nullary      fly.op() {…} : R                         "fly.op"() {…} : () -> R
    bare         fly.op %a {…} : <…:…> -> R               "fly.op"(%a) {…} : (!fly.memref<…:…>) -> R
    others       fly.op(%a, 3) : (A) -> R                 "fly.op"(%a) {n = 3 : i32} : (A) -> R

The others write some attributes among the operands, in angle brackets before them, or an operand
after them, as described by `Form`. Columns change, line breaks are kept.
"""

from __future__ import annotations

import re

from fly_common.record import record

from fly_dialect.text import lexical
from fly_dialect.text.lexical import Rewriter

_VALUE = re.compile(r"%[\w.$-]+(?:#\d+)?")
_ARROW_ONLY = re.compile(r"\s*:\s*\(\)\s*->\s*")
_NO_OPERANDS = re.compile(r"\s*\(\s*\)")
_ENTRY = re.compile(r"([\w.$-]+)\s*=\s*")
_BARE = re.compile(r"!fly\.(?:memref|ptr)(?=<)")  # the type of a bare op's operand


@record
class Inline:
    """An attribute that is written among the operands.

    `place` is its position there, None for the end. It is written as `label = value`, or as the
    value alone. The attribute is the value between `opening` and `closing`.
    """

    attribute: str
    place: int | None = None
    label: str = ""
    opening: str = ""
    closing: str = ""

    def read(self, text: str) -> str:
        """Converts the text among the operands to the attribute."""
        if self.label:
            text = re.sub(rf"^{self.label}\s*=\s*", "", text)
        if self.opening and text.startswith("#"):
            return text
        return f"{self.opening}{text}{self.closing}"

    def write(self, attribute: str) -> str:
        """Converts the attribute to the text among the operands."""
        value = attribute.removeprefix(self.opening).removesuffix(self.closing)
        return f"{self.label} = {value}" if self.label else value


@record
class Form:
    """The text of an op: `inlines` are written among its operands, `angle` in angle brackets before
    them. If there are more than `trailing[0]` operands, the last is written after them as
    `trailing[1] = %x`. `gap` is written before the bracket."""

    inlines: tuple[Inline, ...] = ()
    angle: Inline | None = None
    trailing: tuple[int, str] | None = None
    gap: str = ""


def _enum(name: str) -> tuple[str, str]:
    return f"#fly<{name} ", ">"


_OPERAND = Inline("operand_id", 0, "", *_enum("mma_operand"))
_PADDED = Form(angle=Inline("n", closing=" : i32"), gap=" ")
FORMS: dict[str, Form] = {
    "functional": Form(),
    "set_value": Form((Inline("field", 1),)),
    "partition": Form((_OPERAND,)),
    "make_fragment": Form((_OPERAND, Inline("stages", label="stages", closing=" : i32"))),
    "fragment_like": Form((Inline("dtype"),)),
    "padded": _PADDED,
    "gemm": Form(trailing=(5, "traversalLayout")),
}
# Forms without a list of operands, or without their types.
UNTYPED = ("static", "nullary", "bare")


# -- FlyDSL's text → generic form -----------------------------------------------------------------
def read(out: Rewriter, form: str, name: str, start: int, end: int) -> None:
    """Rewrites the op whose name is source[start:end]. Text that does not match the form is left
    for MLIR's parser to report."""
    source = out.source
    if form in ("static", "nullary"):
        _read_untyped(out, name, start, end)
        return
    if form == "bare":
        _read_bare(out, name, start, end)
        return
    shape = FORMS[form]
    attributes: list[tuple[str, str]] = []
    position = lexical.after_space(source, end)
    if shape.angle and source.startswith("<", position):
        close = lexical.closing_angle(source, position)
        if close is None:
            return
        value = source[position + 1 : close - 1].strip()
        attributes.append((shape.angle.attribute, shape.angle.read(value)))
        out.put(start, close, f'"{name}"' + "\n" * source.count("\n", start, close))
        position = lexical.after_space(source, close)
    else:
        out.put(start, end, f'"{name}"')
    if form == "functional" or not source.startswith("(", position):
        return
    listed = lexical.items(source, position)
    if listed is None:
        return
    found, close = listed
    attributes += _take_inlines(out, shape, found)
    if shape.trailing:
        close = _read_trailing(out, shape.trailing[1], close)
    if attributes:
        _add_attributes(out, close, attributes)


def _take_inlines(out: Rewriter, form: Form, found: list[tuple[int, int]]) -> list[tuple[str, str]]:
    """Removes the inline attributes from the list of operands, and returns them."""
    given = [index for index, (first, _) in enumerate(found) if out.source[first] != "%"]
    attributes: list[tuple[str, str]] = []
    for index, inline in zip(given, form.inlines, strict=False):
        first, last = found[index]
        attributes.append((inline.attribute, inline.read(out.source[first:last])))
        if index + 1 < len(found):
            out.drop(first, found[index + 1][0])
        else:
            out.drop(found[index - 1][1] if index else first, last)
    return attributes


def _read_trailing(out: Rewriter, label: str, close: int) -> int:
    """Moves `label = %x` into the list that ends before `close`. Returns the position after it."""
    source = out.source
    match = re.compile(rf"\s*{label}\s*=\s*({_VALUE.pattern})").match(source, close)
    if match is None:
        return close
    out.put(close - 1, close, f", {match[1]})")
    out.drop(close, match.end())
    return match.end()


def _add_attributes(out: Rewriter, position: int, attributes: list[tuple[str, str]]) -> None:
    """Adds attributes to the dictionary after `position`, or creates one."""
    text = ", ".join(f"{name} = {value}" for name, value in attributes)
    start = lexical.after_space(out.source, position)
    if out.source.startswith("{", start):
        empty = out.source.startswith("}", lexical.after_space(out.source, start + 1))
        out.put(start + 1, start + 1, text if empty else f"{text}, ")
    else:
        out.put(position, position, f" {{{text}}}")


def _read_untyped(out: Rewriter, name: str, start: int, end: int) -> None:
    source = out.source
    if operands := _NO_OPERANDS.match(source, end):
        end = operands.end()
    out.put(start, end, f'"{name}"()' + "\n" * source.count("\n", start, end))
    colon = after_attributes(source, end)
    if source.startswith(":", colon):
        after = lexical.after_space(source, colon + 1)
        if not source.startswith("(", after):
            out.put(colon, colon + 1, ": () ->")


def _read_bare(out: Rewriter, name: str, start: int, end: int) -> None:
    source = out.source
    value = _VALUE.match(source, lexical.after_space(source, end))
    if value is None:
        out.put(start, end, f'"{name}"')
        return
    out.put(start, value.start(), f'"{name}"(' + "\n" * source.count("\n", start, value.start()))
    out.put(value.end(), value.end(), ")")
    colon = after_attributes(source, value.end())
    arrow = source.find("->", colon)
    if source.startswith(":", colon) and arrow >= 0:
        first = lexical.after_space(source, colon + 1)
        last = first + len(source[first:arrow].rstrip())
        out.put(first, first, f"({_left_out(source[first:last])}")
        out.put(last, last, ")")


def _left_out(text: str) -> str:
    """The name that MLIR leaves out of the type of a bare op's operand: of a memref, which has a
    layout, or of a pointer. It may be written as well."""
    if not text.startswith("<"):
        return ""
    return "!fly.memref" if ":" in text else "!fly.ptr"


def after_attributes(source: str, position: int) -> int:
    """The position after white space and an optional attribute dictionary."""
    start = lexical.after_space(source, position)
    if not source.startswith("{", start):
        return start
    end = lexical.closing_brace(source, start)
    return len(source) if end is None else lexical.after_space(source, end)


# -- generic form → FlyDSL's text -----------------------------------------------------------------
def write(out: Rewriter, form: str, name: str, start: int, end: int) -> None:
    """Rewrites the op in generic form whose quoted name is source[start:end]."""
    source = out.source
    if form in UNTYPED:
        _write_untyped(out, form, name, start, end)
        return
    shape = FORMS[form]
    listed = lexical.items(source, end)
    if form == "functional" or listed is None:
        out.put(start, end, f"{name}{shape.gap}")
        return
    found, close = listed
    operands = [source[first:last] for first, last in found]
    tail = ""
    if shape.trailing and len(operands) > shape.trailing[0]:
        tail = f" {shape.trailing[1]} = {operands.pop()}"
    attributes, kept, stop = _attributes(source, close)
    for inline in shape.inlines:
        if (value := attributes.get(inline.attribute)) is not None:
            place = len(operands) if inline.place is None else inline.place
            operands.insert(place, inline.write(value))
    angle = ""
    if shape.angle and (value := attributes.get(shape.angle.attribute)) is not None:
        angle = f"<{shape.angle.write(value)}>"
    own = {inline.attribute for inline in (*shape.inlines, shape.angle) if inline}
    rest = [text for key, text in kept if key not in own]
    dictionary = f" {{{', '.join(rest)}}}" if rest else ""
    out.put(start, stop, f"{name}{angle}{shape.gap}({', '.join(operands)}){tail}{dictionary}")


def _attributes(source: str, position: int) -> tuple[dict[str, str], list[tuple[str, str]], int]:
    """The attributes after `position`: by name, in order with their text, and their end."""
    start = lexical.after_space(source, position)
    listed = lexical.items(source, start) if source.startswith("{", start) else None
    if listed is None:
        return {}, [], position
    found, stop = listed
    values: dict[str, str] = {}
    texts: list[tuple[str, str]] = []
    for first, last in found:
        text = source[first:last]
        entry = _ENTRY.match(text)
        key = entry[1] if entry else text
        values[key] = text[entry.end() :] if entry else ""
        texts.append((key, text))
    return values, texts, stop


def _write_untyped(out: Rewriter, form: str, name: str, start: int, end: int) -> None:
    source = out.source
    listed = lexical.items(source, end)
    if listed is None:
        return
    found, close = listed
    colon = after_attributes(source, close)
    if form == "bare":
        types = lexical.items(source, lexical.after_space(source, colon + 1))
        if len(found) != 1 or types is None or len(types[0]) != 1:
            return
        out.put(start, close, f"{name} {source[slice(*found[0])]}")
        out.put(colon, types[1], f": {_BARE.sub('', source[slice(*types[0][0])])}")
        return
    arrow = _ARROW_ONLY.match(source, colon)
    if found or arrow is None:
        return
    out.put(start, close, f"{name}()" if form == "nullary" else name)
    out.put(colon, arrow.end(), ": ")
