"""What a plugin puts into a slot.

A slot's reference is to the content, or to a function of the plugin's options (of nothing, if it
has none) that returns it. The content is, by what the slot holds:

    MLIR       the text of a pipeline, or a `Command` that reads and writes MLIR
    others     a function bytes → bytes, or a `Command`

"" or None is nothing. Functions of options must be pure: what they return is part of cache keys.
"""

from __future__ import annotations

import os

from fly_common.errors import FlyError, InputError, MissingError, UsageError
from fly_common.quoting import quoted
from fly_common.record import record
from fly_common.resolve import resolve

from fly_plugin import VERIFY, active, discovery, verification
from fly_plugin.manifest import Command
from fly_plugin.slots import Slot, find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from fly_plugin.activation import Active

    Content = str | Command | Callable[[bytes], bytes]


@record
class Seat:
    """What an active plugin has at a slot."""

    owner: Active
    slot: Slot
    content: Content

    @property
    def named(self) -> str:
        return f"{self.owner.named}: {self.slot.name}"


def seats(name: str) -> tuple[Seat, ...]:
    """Returns what the active plugins have at a slot, in the order of their activation."""
    found = (seat_of(one, name) for one in active() if name in one.plugin.slots)
    return tuple(seat for seat in found if seat is not None)


def seat_of(owner: Active, name: str) -> Seat | None:
    """Returns what a plugin has at a slot, or None for nothing."""
    slot = find(name)
    assert slot is not None, name  # checked by the activation
    where = f"{owner.named}: {name}"
    reference = owner.plugin.slots[name]
    try:
        content: Any = resolve(reference)
        if not isinstance(content, (str, Command)) and content is not None:
            make: Any = content
            content = make() if owner.options is None else make(owner.options)
    except FlyError as error:
        error.message = f"{where}: {error.message}"
        raise
    except Exception as error:
        raise discovery.failed(f"{where}: {reference}", error) from error
    if content is None or content == "":
        return None
    kinds = (str, Command) if slot.is_mlir else (Command,)
    if not isinstance(content, kinds) and (slot.is_mlir or not callable(content)):
        wanted = "the text of a pipeline" if slot.is_mlir else "a function bytes → bytes"
        raise UsageError(
            f"{where}: {reference} gives a {type(content).__name__}; the slot holds {slot.holds},"
            f" and takes {wanted} or a fly_plugin.manifest.Command"
        )
    kept: Any = content
    return Seat(owner, slot, kept)


def apply(name: str, data: bytes) -> bytes:
    """Runs the filters of the active plugins at a slot of bytes."""
    verifies = bool(os.environ.get(VERIFY))
    for number, seat in enumerate(seats(name)):
        if verifies and number == 0:
            verification.verify(seat.slot, data, f"{name}, before any plugin")
        data = run(seat, data)
        if verifies:
            verification.verify(seat.slot, data, seat.named)
    return data


def run(seat: Seat, data: bytes) -> bytes:
    """Runs one filter. Its errors name the plugin and the slot."""
    if isinstance(seat.content, Command):
        return run_command(seat.content, data, seat.named)
    assert callable(seat.content)
    with owned(seat.owner, seat.slot.name):
        made = seat.content(data)
    if not isinstance(made, bytes):
        raise InputError(f"{seat.named}: the filter returned {type(made).__name__}, not bytes")
    return made


class owned:
    """A context in which errors are those of a plugin's code, and name it."""

    def __init__(self, owner: Active, what: str):
        self.where = f"{owner.named}: {what}"

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, FlyError):
            if not error.message.startswith("plugin "):
                error.message = f"{self.where}: {error.message}"
        elif isinstance(error, Exception):
            made = unexpected(error)
            made.message = f"{self.where}: {made.message}"
            raise made from error


def unexpected(error: Exception) -> InputError:
    """Returns the error for an exception of a plugin's code. FLY_DEBUG=1 raises the exception."""
    from fly_common.filter import debugging

    if debugging():
        raise error
    reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return InputError(reason, hint="this is a bug in the plugin; FLY_DEBUG=1 shows where")


def find_program(command: Command, where: str) -> str:
    """Returns the path of the program. MissingError if there is none."""
    import shutil

    if not command.words:
        raise UsageError(f"{where}: the command has no words")
    path = shutil.which(command.words[0])
    if path is None:
        raise MissingError(
            f"{where}: there is no program {command.words[0]}",
            hint="give its full path, or put it on PATH",
        )
    return path


def run_command(command: Command, data: bytes, where: str) -> bytes:
    """Runs an external filter on `data`."""
    import sys

    from fly_common.programs import process

    path = find_program(command, where)
    try:
        done = process.run(path, command.words[1:], data)
    except process.TimedOut as error:
        error.message = f"{where}: {error.message}"
        raise
    except OSError as error:
        raise MissingError(f"{where}: {path} can't be run: {error.strerror}") from None
    said = done.stderr.decode(errors="replace").strip()
    if done.returncode:
        lines = said.splitlines() or ["it said nothing"]
        raise InputError(
            f"{where}: {command.words[0]} failed (exit status {done.returncode}): {lines[0]}",
            hint="\n  ".join(lines[1:12]) or None,
        )
    if said:
        print(said, file=sys.stderr)
    return done.stdout


def command_identity(command: Command, where: str) -> str:
    """Identifies a command: its words, and the contents of its program and of the files that the
    words or `depends` name."""
    from fly_store import file_digests

    named = [
        path for word in command.words[1:] for path in file_digests.named_in(word, os.getcwd())
    ]
    paths = (find_program(command, where), *named, *command.depends)
    return " ".join([quoted(command.words, 1000), *map(file_digests.digest_of, paths)])


def content_identity(seat: Seat) -> str:
    """Identifies a content, besides the plugin's sources and options."""
    if isinstance(seat.content, Command):
        return command_identity(seat.content, seat.named)
    return seat.content if isinstance(seat.content, str) else ""


def machine_seats() -> Iterator[tuple[str, Seat]]:
    """Yields the points of the machine pipeline, and what the active plugins have there."""
    from fly_plugin.slots import MACHINE, MIR

    for one in active():
        for name in one.plugin.slots:
            if name.startswith(MACHINE) and (slot := find(name)) and slot.holds == MIR:
                seat = seat_of(one, name)
                if seat is not None:
                    yield name.removeprefix(MACHINE), seat
