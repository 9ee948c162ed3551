"""fly-run --hip TARGET -- COMMAND: runs a program with the HIP runtime library of the emulator."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

from fly_common.errors import UsageError

from fly_run.hip_runtime import injected, library
from fly_run.hip_runtime.interface import NAME, PYTHON
from fly_run.hip_runtime.settings import TARGET, targets

LOADER = "LD_LIBRARY_PATH"
TRITON = "TRITON_LIBHIP_PATH"  # where Triton looks first


def folder() -> Path:
    """Returns the folder with the library, which is built if necessary."""
    return library.folder()


def environment(target: str, given: dict[str, str]) -> dict[str, str]:
    """Returns the variables with which programs find the library, added to `given`."""
    targets(target)
    injected.parse(given.get(injected.VARIABLE, ""))
    made = folder()
    paths = [str(made), *filter(None, given.get(LOADER, "").split(":"))]
    added = {LOADER: ":".join(paths), TARGET: target, TRITON: str(made / NAME)}
    python = library.shared_python()
    if python is not None:
        added[PYTHON] = given.get(PYTHON, python)
    return {**given, **added}


def run(target: str, command: tuple[str, ...]) -> NoReturn:
    """Replaces this process by the command. UsageError if it can't be run."""
    if not command:
        raise UsageError(
            "--hip needs a command", hint="for example, fly-run --hip gfx942 -- python3 program.py"
        )
    try:
        os.execvpe(command[0], command, environment(target, dict(os.environ)))
    except OSError as error:
        raise UsageError(f"{command[0]} can't be run: {error.strerror}") from None
