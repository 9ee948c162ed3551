"""Runs ptxas: its command line, and its messages as one clear line with the line of the PTX."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fly_common.diagnostics import Warning
from fly_common.errors import InputError, MissingError, Place
from fly_common.programs import process
from fly_common.programs.toolchain import Crash

from fly_link.backends.nvidia.module import Module

if TYPE_CHECKING:
    from fly_common.diagnostics import Warn

LEVEL = "-O3"
INPUT, OUTPUT = "/dev/stdin", "/dev/stdout"
_MESSAGE = re.compile(
    r"^ptxas(?: (?P<file>\S+), line (?P<line>\d+);)? (?P<kind>error|fatal|warning) *: (?P<text>.*)",
    re.MULTILINE,
)
_ABORTED = "Ptx assembly aborted due to errors"


def words(module: Module, flags: Sequence[str]) -> list[str]:
    """Returns ptxas's arguments."""
    lines = ["-lineinfo"] if module.has_lines else []
    return [LEVEL, f"-arch={module.target}", "-v", *lines, *flags, INPUT, "-o", OUTPUT]


def compile(
    program: str, module: Module, flags: Sequence[str], warn: Warn | None
) -> tuple[bytes, str]:
    """Returns the cubin, and what ptxas says of its kernels."""
    done = run(program, words(module, flags), module.text.encode())
    stderr = done.stderr.decode(errors="replace")
    if done.returncode or not done.stdout:
        raise _refused(stderr, module)
    for message in _MESSAGE.finditer(stderr):
        if warn and message["kind"] == "warning":
            place = _place(module, message["line"]) if message["line"] else None
            warn(Warning(f"ptxas: {message['text']}", place=place))
    return done.stdout, stderr


def run(program: str, arguments: Sequence[str], data: bytes) -> process.Done:
    """Runs a program of the toolkit to its end. Raises Crash, an InputError, if a signal ended
    it."""
    try:
        done = process.run(program, arguments, data)
    except OSError as error:
        raise MissingError(f"{program} can't be run: {error.strerror}") from None
    if done.returncode < 0:
        name = os.path.basename(program)
        raise Crash(name, -done.returncode, done.stderr.decode(errors="replace"))
    return done


def _refused(stderr: str, module: Module) -> InputError:
    """Returns ptxas's first error, at its line of the PTX, and the number of the others."""
    found = [
        message
        for message in _MESSAGE.finditer(stderr)
        if message["kind"] != "warning" and message["text"] != _ABORTED
    ]
    if not found:
        reason = stderr.strip().splitlines()
        return InputError(
            f"ptxas: {reason[0] if reason else 'no reason given'}", place=Place(module.name)
        )
    first, *others = found
    more = f"and {len(others)} more error{'s' * (len(others) > 1)}" if others else None
    return InputError(f"ptxas: {first['text']}", place=_place(module, first["line"]), hint=more)


def _place(module: Module, line: str | None) -> Place:
    if line is None:
        return Place(module.name)
    number = int(line)
    lines = module.text.splitlines()
    if not 0 < number <= len(lines):
        return Place(module.name, number)
    text = lines[number - 1]
    column = len(text) - len(text.lstrip()) + 1
    return Place(module.name, number, column, text, len(text.strip()) or 1)
