"""The errors that users see, and their format.

    FlyError
    ├── InputError      exit 1   the input is wrong: a kernel, an IR file, an object, an array
    │   └── Fault       exit 1   the input is well formed, and failed at run time
    ├── UsageError      exit 2   the call is wrong: a flag, an argument's name, a missing value
    └── MissingError    exit 3   the environment lacks something: LLVM, a device, disk space

Each is printed as one line, `tool: error: where: message`, followed by the source line with a caret
if there is a source, by the calls that lead there, and by a hint.
"""

from __future__ import annotations

from fly_common.record import record

TYPE_CHECKING = False  # importing it from typing costs 5 ms
if TYPE_CHECKING:
    from fly_common.diagnostics import Warning

LONGEST_EXCERPT = 160  # columns shown of a source line
LONGEST_PATH = 1024  # characters shown of a path
LONGEST_MESSAGE = 1500  # characters; a longer message quotes a damaged input


@record
class Place:
    """A position in a text: `file` as named by the user, 1-based `line` and `column`."""

    file: str
    line: int | None = None
    column: int | None = None
    text: str | None = None  # the source line, without its newline
    width: int = 1  # columns that the caret covers
    calls: tuple[Place, ...] = ()  # the calls of functions that lead there, innermost first

    def __str__(self) -> str:
        parts = [self.file, *(str(n) for n in (self.line, self.column) if n is not None)]
        return ":".join(parts)

    def excerpt(self) -> str:
        """The source line with a caret below it, or "" if the source is not known."""
        if self.text is None or self.column is None:
            return ""
        text, column = _window(self.text, self.column)
        # Tabs are kept in the caret line, so that the caret is aligned in any terminal.
        lead = "".join("\t" if char == "\t" else " " for char in text[: column - 1])
        room = max(1, len(text) - column + 1)
        return f"  {text}\n  {lead}^{'~' * (min(self.width, room) - 1)}"


def _window(text: str, column: int) -> tuple[str, int]:
    """Returns a readable part of a line and the column in it. Generated IR has lines of thousands
    of columns. Control characters become `?`."""
    text = _printable(text)
    if len(text) <= LONGEST_EXCERPT:
        return text, column
    start = max(0, min(column - 1, len(text)) - LONGEST_EXCERPT // 2)
    end = start + LONGEST_EXCERPT
    before, after = "… " if start else "", " …" if end < len(text) else ""
    return f"{before}{text[start:end]}{after}", column - start + len(before)


@record
class Related:
    """Another place that belongs to an error: a call on the way to it."""

    message: str
    place: Place

    def line(self) -> str:
        """The place as a line of text."""
        text = (self.place.text or "").strip()
        where = f"{self.message} at {self.place}"
        return f"{where}: {_printable(text[:LONGEST_EXCERPT])}" if text else where


def related_of(said: FlyError | Warning) -> tuple[Related, ...]:
    """The calls that lead to an error or a warning, innermost first."""
    if said.related or said.place is None:
        return said.related or ()
    return tuple(Related("called", call) for call in said.place.calls)


MOST_RELATED = 8  # lines of text


def related_lines(related: tuple[Related, ...]) -> list[str]:
    """The lines for an error's related places. A recursion's are one line."""
    counts: list[tuple[str, int]] = []
    for one in related:
        line = f"  {one.line()}"
        if counts and counts[-1][0] == line:
            counts[-1] = line, counts[-1][1] + 1
        else:
            counts.append((line, 1))
    found = [line if count == 1 else f"{line} ({count} times)" for line, count in counts]
    if len(found) > MOST_RELATED:
        half = MOST_RELATED // 2
        found = [*found[:half], f"  … {len(found) - 2 * half} more calls", *found[-half:]]
    return found


def rendered(tool: str, severity: str, said: FlyError | Warning) -> str:
    """An error or a warning as text."""
    where = f"{said.place}: " if said.place else ""
    message = _printable(_bounded(said.message), "\t\n")
    if len(message) > LONGEST_MESSAGE:
        message = f"{message[: LONGEST_MESSAGE - 200]} … {message[-190:]}"
    lines = [f"{tool}: {severity}: {where}{message}"]
    if said.place and (excerpt := said.place.excerpt()):
        lines.append(excerpt)
    lines += related_lines(related_of(said))
    if said.hint:
        lines.append(f"  {said.hint}")
    return "\n".join(lines)


def _bounded(message: str) -> str:
    """Shortens words of more than 200 characters, and paths of more than LONGEST_PATH: names, types
    and numbers may be as long as the input. Values with spaces are shortened by
    `quoting.quoted`."""
    from fly_common.quoting import MOST, shortened

    if len(message) <= MOST:
        return message
    words = message.split(" ")
    return " ".join(shortened(word, LONGEST_PATH if "/" in word else MOST) for word in words)


def _printable(text: str, kept: str = "\t") -> str:
    """Replaces characters that a terminal would interpret or that a stream cannot encode."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in kept else "?" for char in text)


class FlyError(Exception):
    """An error that a user can cause or fix. `hint` says how, and is printed on its own line.
    `related` are the calls of helpers on the way to `place`, innermost first; None if nobody has
    looked for them yet. `kernel` is the name of the only kernel that the error can be about, where
    nothing tells more: who has its source adds the place."""

    exit_code = 1
    related: tuple[Related, ...] | None = None
    kernel: str | None = None

    def __init__(self, message: str, *, place: Place | None = None, hint: str | None = None):
        super().__init__(message)
        self.message = message
        self.place = place
        self.hint = hint

    def render(self, tool: str) -> str:
        return rendered(tool, "error", self)

    def parts(self) -> tuple[FlyError, ...]:
        """The errors that this one stands for."""
        return (self,)

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        excerpt = f"\n{self.place.excerpt()}" if self.place and self.place.excerpt() else ""
        calls = "".join(f"\n{line}" for line in related_lines(related_of(self)))
        hint = f"\n  {self.hint}" if self.hint else ""
        return f"{where}{_bounded(self.message)}{excerpt}{calls}{hint}"


class InputError(FlyError):
    exit_code = 1


class Fault(InputError):
    """A kernel's invalid operation at run time. `pc` is the address of the faulting instruction
    relative to the code object, if there is one."""

    def __init__(
        self,
        message: str,
        *,
        place: Place | None = None,
        hint: str | None = None,
        pc: int | None = None,
    ):
        super().__init__(message, place=place, hint=hint)
        self.pc = pc


class UsageError(FlyError):
    exit_code = 2


class MissingError(FlyError):
    exit_code = 3
