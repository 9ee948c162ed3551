"""Converts MLIR's diagnostics to this project's errors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fly_common.errors import InputError, Place
from fly_common.record import record

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

_SEE_CURRENT = re.compile(r"see current operation: (.*)", re.DOTALL)


@record
class Source:
    """The text that is being compiled, and its name in messages."""

    name: str
    text: str
    first_line: int = 1  # of `text` in the input; more than 1 in a split input

    def place(self, line: int, column: int | None) -> Place:
        lines = self.text.split("\n")
        text = lines[line - 1] if 0 < line <= len(lines) else None
        return Place(self.name, line + self.first_line - 1, column, text)

    def place_of(self, location: ir.Location) -> Place | None:
        """Returns the place of an `ir.Location`: in this text, or in the file it names."""
        from fly_dialect.dialect import PARSED_TEXT, place_of

        found = place_of(location, name=PARSED_TEXT)
        return found and self.named(found)

    def named(self, found: Place) -> Place:
        """Returns a place in the text that MLIR read, with the input's name."""
        from fly_dialect.dialect import PARSED_TEXT

        if found.file != PARSED_TEXT or found.line is None:
            return found
        return self.place(found.line, found.column)


def located(error: InputError, source: Source, who: str | None = None) -> InputError:
    """Returns the error with the input's name for MLIR's unnamed text, and the rejecting pass
    `who`."""
    where = error.place and source.named(error.place)
    message = f"{who}: {error.message}" if who else error.message
    return type(error)(message, place=where, hint=error.hint)


class Diagnosed(InputError):
    """An MLIR error, with its notes as (line, message); the line is 0 if a note has none."""

    notes: tuple[tuple[int, str], ...] = ()


def from_mlir(error: Exception, source: Source, who: str | None = None) -> InputError:
    """Converts an `ir.MLIRError`: its first diagnostic is the error, the rest become notes."""
    diagnostics: list[ir.DiagnosticInfo] = list(getattr(error, "error_diagnostics", None) or [])
    if not diagnostics:
        first = str(error).strip().splitlines() or ["MLIR gave no reason"]
        return InputError(f"{who}: {first[0]}" if who else first[0])
    # The operation in "see current operation" is at the place shown, and may be pages long.
    notes = [
        note
        for diagnostic in diagnostics
        for note in diagnostic.notes
        if not _SEE_CURRENT.match(note.message)
    ]
    lines = [f"also: {_where(one, source)}{_one_line(one.message)}" for one in diagnostics[1:]]
    lines += [f"note: {_where(note, source)}{_one_line(note.message)}" for note in notes]
    message = _one_line(diagnostics[0].message)
    made = Diagnosed(
        f"{who}: {message}" if who else message,
        place=source.place_of(diagnostics[0].location),
        hint="\n  ".join(lines) or None,
    )
    made.notes = tuple((_line(note, source), _one_line(note.message)) for note in notes)
    return made


def _line(diagnostic: ir.DiagnosticInfo, source: Source) -> int:
    found = source.place_of(diagnostic.location)
    return (found and found.line) or 0


def _where(diagnostic: ir.DiagnosticInfo, source: Source) -> str:
    found = source.place_of(diagnostic.location)
    return f"{found}: " if found else ""


def _one_line(message: str) -> str:
    return " ".join(message.split())
