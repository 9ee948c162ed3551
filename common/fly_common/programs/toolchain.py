"""Finds LLVM's programs and library, in the same way for every tool.

The search order is: `FLY_LLVM_DIR` (an install prefix; if set, nothing else is searched), ROCm's
LLVM (`ROCM_PATH` or `/opt/rocm`), `/usr/lib/llvm-N` for the newest N, then `NAME-N` and `NAME` on
PATH. LLVM 22 is the oldest supported version.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Sequence

from fly_common.errors import InputError, MissingError

# Every run of a tool imports this module; pathlib, shutil and subprocess would add 25 ms.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from fly_common.programs.process import Done, Running

OLDEST = 22
HOW_TO_GET = (
    "install LLVM 22 or newer (Debian: apt-get install llvm-22 lld-22), or set FLY_LLVM_DIR to an"
    " install prefix that has bin/{name}"
)


class Crash(InputError):
    """A program that was ended by a signal. `stderr` is its whole standard error."""

    def __init__(self, name: str, signal: int, stderr: str):
        super().__init__(
            f"{name} crashed (signal {signal}) on this input", hint=_most_informative_line(stderr)
        )
        self.signal = signal
        self.stderr = stderr


def find_program(name: str) -> str:
    """Returns the path of LLVM's `name` (`opt`, `llc`, `ld.lld`, …), or raises MissingError."""
    return _find_program(name, *_surroundings())


# The variables that a search depends on; results are cached while they are unchanged.
VARIABLES = ("FLY_LLVM_DIR", "ROCM_PATH", "PATH")


def _surroundings() -> tuple[str | None, ...]:
    return tuple(os.environ.get(key) for key in VARIABLES)


@functools.cache
def _find_program(name: str, chosen: str | None, *_: str | None) -> str:
    if chosen:
        path = os.path.join(chosen, "bin", name)
        if not os.path.isfile(path):
            raise MissingError(
                f"FLY_LLVM_DIR={chosen} has no bin/{name}", hint=HOW_TO_GET.format(name=name)
            )
        return path
    for prefix in _prefixes():
        path = os.path.join(prefix, "bin", name)
        if os.path.isfile(path):
            return path
    from shutil import which

    for candidate in [*(f"{name}-{n}" for n in range(40, OLDEST - 1, -1)), name]:
        found = which(candidate)
        if found and version_of(found) >= OLDEST:
            return found
    raise MissingError(f"LLVM's {name} was not found", hint=HOW_TO_GET.format(name=name))


def _prefixes() -> list[str]:
    """Returns the install prefixes in search order."""
    rocm = os.path.join(os.environ.get("ROCM_PATH") or "/opt/rocm", "llvm")
    versions = sorted(map(int, _matches("/usr/lib", r"llvm-(\d+)")), reverse=True)
    debian = [f"/usr/lib/llvm-{version}" for version in versions if version >= OLDEST]
    # ROCm's version numbers are not LLVM's, so its llc is queried, if there is one.
    llc = os.path.join(rocm, "bin", "llc")
    return [rocm, *debian] if os.path.isfile(llc) and version_of(llc) >= OLDEST else debian


def _matches(folder: str, pattern: str) -> list[str]:
    """Returns the pattern's group in the names of a folder's files."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [match[1] for name in sorted(names) if (match := re.fullmatch(pattern, name))]


def version_of(program: str) -> int:
    """Returns the major LLVM version that a program reports, or 0."""
    import subprocess

    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = re.search(r"(?:LLVM version|LLD) (\d+)", done.stdout)
    return int(match[1]) if match else 0


def find_library() -> str:
    """Returns the path of LLVM's shared library, whose disassembler the emulator uses."""
    return _find_library(*_surroundings())


@functools.cache
def _find_library(chosen: str | None, *_: str | None) -> str:
    for prefix in [chosen] if chosen else _prefixes():
        for folder in ("lib", "lib64"):
            for pattern in (r"(libLLVM-.*\.so)", r"(libLLVM\.so.*)"):
                if found := _matches(os.path.join(prefix, folder), pattern):
                    return os.path.realpath(os.path.join(prefix, folder, found[-1]))
    if chosen:
        raise MissingError(
            f"FLY_LLVM_DIR={chosen} has no lib/libLLVM.so",
            hint="name a prefix that was built with LLVM_BUILD_LLVM_DYLIB, or unset it",
        )
    for folder in _matches("/usr/lib", r"(.*-linux-gnu)"):
        versions = _matches(f"/usr/lib/{folder}", r"libLLVM\.so\.(\d+\.\d+)")
        newest = max(versions, key=lambda text: tuple(map(int, text.split("."))), default="0")
        if int(newest.partition(".")[0]) >= OLDEST:
            return os.path.realpath(f"/usr/lib/{folder}/libLLVM.so.{newest}")
    raise MissingError(
        "LLVM's shared library (libLLVM.so) was not found",
        hint="install LLVM 22 or newer (Debian: apt-get install llvm-22), or set FLY_LLVM_DIR",
    )


def start_program(
    name: str, arguments: Sequence[str], data: bytes | None, *, pass_fds: Sequence[int] = ()
) -> Running:
    """Starts LLVM's `name` with `data` on its standard input."""
    program = find_program(name)
    try:
        return _start(program, arguments, data or b"", pass_fds)
    except OSError as error:
        raise MissingError(f"{program} can't be run: {error.strerror}") from None


def run_program(
    name: str, arguments: Sequence[str], data: bytes | None, *, pass_fds: Sequence[int] = ()
) -> Done:
    """Runs LLVM's `name` to its end. The caller checks the exit status. Raises Crash, an
    InputError, if a signal ended the program."""
    done = start_program(name, arguments, data, pass_fds=pass_fds).wait()
    if done.returncode < 0:
        raise Crash(name, -done.returncode, done.stderr.decode(errors="replace"))
    return done


def _start(program: str, arguments: Sequence[str], data: bytes, pass_fds: Sequence[int]) -> Running:
    import sys

    # Programs were only started ahead if that module has been imported.
    if not pass_fds and (ahead := sys.modules.get("fly_common.programs.prefetch")):
        return ahead.start(program, arguments, data)
    from fly_common.programs import process

    return process.start(program, arguments, data, pass_fds)


def _most_informative_line(stderr: str) -> str | None:
    """Returns the most informative line of a crash report, or the first line."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    signs = ("LLVM ERROR", "Assertion", "UNREACHABLE")
    told = [line for line in lines if any(sign in line for sign in signs)]
    return next(iter([*told, *lines]), None)
