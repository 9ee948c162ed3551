"""Support for inputs of several parts and for expected errors, as in MLIR's tests.

    // RUN: fly-opt-py %s --split-input-file --verify-diagnostics
    // expected-error@below {{operand #0 must be}}
    …
    // -----
    …

`expected-error` and `expected-note` refer to their own line or to a relative one: `@+2`, `@-1`,
`@above`, `@below`; the text in double braces must occur in the message.
"""

from __future__ import annotations

import re

from fly_common.errors import FlyError, InputError, Place
from fly_common.record import record

from fly_opt.pipeline.options import Options
from fly_opt.pipeline.stage import run as run_one
from fly_opt.pipeline.text import Nest
from fly_opt.reporting.observer import Observer

MARKER = "// -----"
_SPLIT = re.compile(r"^// -----[^\n]*(?:\n|\Z)", re.MULTILINE)
_EXPECTED = re.compile(
    r"expected-(?P<kind>error|note)\s*(?:@(?P<where>[+-]\d+|above|below))?\s*\{\{(?P<text>.*?)\}\}"
)


@record
class Expected:
    kind: str
    line: int
    text: str


class PartErrors(InputError):
    """The errors of several parts, each with its location."""

    def __init__(self, errors: list[InputError]):
        first = errors[0]
        super().__init__(first.message, place=first.place, hint=first.hint)
        self.errors = errors

    def render(self, tool: str) -> str:
        return "\n".join(error.render(tool) for error in self.errors)

    def parts(self) -> tuple[FlyError, ...]:
        return tuple(self.errors)


def run(
    data: bytes,
    pipeline: Nest,
    options: Options,
    name: str,
    observer: Observer,
    split: bool,
    verify: bool,
) -> bytes:
    """Compiles each part. With `verify`, the errors of each part must be the expected ones, and
    nothing is printed; otherwise the errors of all parts are reported together."""
    outputs, errors = [], []
    for part, first_line in parts(data) if split else [(data, 1)]:
        try:
            output = run_one(part, pipeline, options, name, observer, first_line)
        except InputError as error:
            if verify:
                compare(part, name, first_line, diagnostics_of(error))
            else:
                errors.append(error)
        else:
            outputs.append(output)
            if verify:
                compare(part, name, first_line, [])
    if errors:
        raise errors[0] if len(errors) == 1 else PartErrors(errors)
    return b"" if verify else f"{MARKER}\n".encode().join(outputs)


def parts(data: bytes) -> list[tuple[bytes, int]]:
    """Returns the parts of an input, each with the line on which it starts."""
    text = data.decode(errors="surrogateescape")
    found, start, line = [], 0, 1
    for match in [*_SPLIT.finditer(text), None]:
        end = match.start() if match else len(text)
        found.append((text[start:end].encode(errors="surrogateescape"), line))
        if match:
            line += text.count("\n", start, match.end())
            start = match.end()
    return found


def expectations(text: str, first_line: int) -> list[Expected]:
    """Returns the diagnostics that the comments of a part expect."""
    found = []
    for number, line in enumerate(text.split("\n"), first_line):
        for match in _EXPECTED.finditer(line):
            where = match["where"]
            offset = {"above": -1, "below": 1, None: 0}.get(where)
            # Python refuses to read thousands of digits; ten are a line that no input has.
            at = number + (int(where[:11]) if offset is None else offset)
            found.append(Expected(match["kind"], at, match["text"]))
    return found


def diagnostics_of(error: InputError) -> list[Expected]:
    """Returns an error and its notes in the form that is compared with the expectations."""
    line = error.place.line if error.place and error.place.line else 0
    notes = getattr(error, "notes", ())
    return [Expected("error", line, error.message), *(Expected("note", *note) for note in notes)]


def compare(part: bytes, name: str, first_line: int, found: list[Expected]) -> None:
    """Raises InputError for the first error that is unexpected, or expected and missing. Unexpected
    notes are allowed, as in MLIR."""
    text = part.decode(errors="replace")
    open_ = list(found)
    for wanted in expectations(text, first_line):
        match = next(
            (
                one
                for one in open_
                if (one.kind, one.line) == (wanted.kind, wanted.line) and wanted.text in one.text
            ),
            None,
        )
        if match is None:
            raise InputError(
                f'expected {wanted.kind} "{wanted.text}" was not produced',
                place=Place(name, wanted.line),
            )
        open_.remove(match)
    if left := next((one for one in open_ if one.kind == "error"), None):
        raise InputError(f"unexpected error: {left.text}", place=Place(name, left.line or None))
