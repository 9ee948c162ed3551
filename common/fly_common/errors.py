"""The errors that reach a user, and how each one is worded.

    FlyError
    ├── InputError      exit 1   the input is wrong: a kernel, an IR file, an object, an array
    │   └── Fault       exit 1   the input is well formed, and went wrong when it ran
    ├── UsageError      exit 2   the call is wrong: a flag, an argument's name, a missing value
    └── MissingError    exit 3   the environment lacks something: LLVM, a device, disk space

Every one renders as one line, `tool: error: where: message`, then, where there is a source, the
source line with a caret, then what to do about it.
"""

from __future__ import annotations

from fly_common.record import record

LONGEST_EXCERPT = 160  # columns of a source line that are shown
LONGEST_PATH = 1024  # characters of a path in a message
LONGEST_MESSAGE = 1500  # characters; beyond that somebody quotes a damaged input whole


@record
class Place:
    """A position in a text: `file` as the user named it, 1-based `line` and `column`."""

    file: str
    line: int | None = None
    column: int | None = None
    text: str | None = None  # the source line, without its newline
    width: int = 1  # how many columns the caret covers

    def __str__(self) -> str:
        parts = [self.file, *(str(n) for n in (self.line, self.column) if n is not None)]
        return ":".join(parts)

    def excerpt(self) -> str:
        """The source line and a caret below it; empty where the source is not known."""
        if self.text is None or self.column is None:
            return ""
        text, column = _window(self.text, self.column)
        # Tabs are kept in the caret line, so that the caret stands right in any terminal.
        lead = "".join("\t" if char == "\t" else " " for char in text[: column - 1])
        room = max(1, len(text) - column + 1)
        return f"  {text}\n  {lead}^{'~' * (min(self.width, room) - 1)}"


def _window(text: str, column: int) -> tuple[str, int]:
    """The part of a line that a person can read, and the column in it: generated IR has lines of
    thousands of columns. Control characters become `?`."""
    text = _harmless(text)
    if len(text) <= LONGEST_EXCERPT:
        return text, column
    start = max(0, min(column - 1, len(text)) - LONGEST_EXCERPT // 2)
    end = start + LONGEST_EXCERPT
    before, after = "… " if start else "", " …" if end < len(text) else ""
    return f"{before}{text[start:end]}{after}", column - start + len(before)


def _bounded(message: str) -> str:
    """A message without words of more than 200 characters, paths of more than LONGEST_PATH: names,
    types and numbers of an input may be as long as it. Who quotes a value with spaces in it does so
    by `quoting.quoted`."""
    from fly_common.quoting import MOST, shortened

    if len(message) <= MOST:
        return message
    words = message.split(" ")
    return " ".join(shortened(word, LONGEST_PATH if "/" in word else MOST) for word in words)


def _harmless(text: str, kept: str = "\t") -> str:
    """The text without what a terminal would obey, and no stream could encode."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in kept else "?" for char in text)


class FlyError(Exception):
    """Anything a user can cause or mend. `hint` says what to do; it is printed on its own line."""

    exit_code = 1

    def __init__(self, message: str, *, place: Place | None = None, hint: str | None = None):
        super().__init__(message)
        self.message = message
        self.place = place
        self.hint = hint

    def render(self, tool: str) -> str:
        where = f"{self.place}: " if self.place else ""
        message = _harmless(_bounded(self.message), "\t\n")
        if len(message) > LONGEST_MESSAGE:
            message = f"{message[: LONGEST_MESSAGE - 200]} … {message[-190:]}"
        lines = [f"{tool}: error: {where}{message}"]
        if self.place and (excerpt := self.place.excerpt()):
            lines.append(excerpt)
        if self.hint:
            lines.append(f"  {self.hint}")
        return "\n".join(lines)

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        excerpt = f"\n{self.place.excerpt()}" if self.place and self.place.excerpt() else ""
        hint = f"\n  {self.hint}" if self.hint else ""
        return f"{where}{_bounded(self.message)}{excerpt}{hint}"


class InputError(FlyError):
    exit_code = 1


class Fault(InputError):
    """A kernel that did something forbidden while it ran. `pc` is the address of the instruction
    that did, in the code object's own numbering, where it was one."""

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
