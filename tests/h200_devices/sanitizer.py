"""Runs a command under compute-sanitizer's memcheck and synccheck.

    python -m h200_devices.sanitizer COMMAND …

compute-sanitizer comes with the CUDA toolkit. Where there is none, this says so and where it was
looked for, and exits with 3. Otherwise the exit status is the number of tools that found something.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

NAME = "compute-sanitizer"
TOOLS = ("memcheck", "synccheck")
FOUND, MISSING = 9, 3  # exit statuses: of the sanitizer for an error, of this program


def places() -> Iterator[Path]:
    """Folders where toolkits and packages have it."""
    for root in ("/usr/local", "/opt", "/opt/nvidia"):
        yield from sorted(Path(root).glob("cuda*/bin"), reverse=True)
        yield from sorted(Path(root).glob("cuda*/compute-sanitizer"), reverse=True)
    for entry in filter(None, sys.path):
        yield from sorted(Path(entry).glob("nvidia/*/bin"))
        yield from sorted(Path(entry).glob("triton/backends/nvidia/bin"))
        yield from sorted(Path(entry).glob("torch/bin"))


def find() -> str | None:
    """Its path: that on the PATH, or in one of the `places`."""
    found = shutil.which(NAME)
    if found:
        return found
    return next((str(folder / NAME) for folder in places() if (folder / NAME).is_file()), None)


def check(program: str, command: list[str]) -> int:
    """Runs the command under each tool; the number of those that found something."""
    failed = 0
    for tool in TOOLS:
        words = [program, "--tool", tool, "--error-exitcode", str(FOUND), *command]
        status = subprocess.run(words).returncode
        told = "clean" if not status else "found errors" if status == FOUND else f"exit {status}"
        print(f"{tool}: {told}", flush=True)
        failed += bool(status)
    return failed


def main(command: list[str]) -> int:
    if not command:
        print(__doc__, file=sys.stderr)
        return 2
    program = find()
    if program is None:
        looked = ", ".join(dict.fromkeys(map(str, places())))
        print(f"{NAME} was not found: neither on the PATH nor in {looked or 'a CUDA toolkit'}")
        return MISSING
    return check(program, command)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
