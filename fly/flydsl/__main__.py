"""Runs a program that imports `flydsl`: `python -m fly.flydsl program.py …` or `-m module …`. With
`--cpu` first, torch's device `cuda` is the CPU, for the emulator."""

from __future__ import annotations

import importlib.util
import runpy
import sys
import traceback
from pathlib import Path

from fly_common.diagnostics import print_error
from fly_common.errors import FlyError, UsageError

from fly.flydsl.install import install

USAGE = "python -m fly.flydsl [--cpu] PROGRAM.py [ARGUMENTS…], or -m MODULE [ARGUMENTS…]"


def main() -> int:
    arguments = sys.argv[1:]
    on_cpu = arguments[:1] == ["--cpu"]
    arguments = arguments[on_cpu:]
    module = arguments[:1] == ["-m"]
    if len(arguments) < (2 if module else 1) or arguments[0] in ("-h", "--help"):
        print(f"usage: {USAGE}", file=sys.stderr)
        return 0 if arguments[:1] in (["-h"], ["--help"]) else 2
    install()
    if on_cpu:
        from fly.flydsl import cuda

        cuda.install()
    try:
        if module:
            sys.path.insert(0, "")
            if not _is_there(arguments[1]):
                raise UsageError(f"there is no module {arguments[1]}", hint=USAGE)
            sys.argv = arguments[1:]
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            if not Path(arguments[0]).is_file():
                is_option = arguments[0].startswith("-")
                what = "unknown option" if is_option else "there is no program"
                raise UsageError(f"{what} {arguments[0]}", hint=USAGE)
            sys.argv = arguments
            sys.path.insert(0, str(Path(arguments[0]).resolve().parent))
            runpy.run_path(arguments[0], run_name="__main__")
    except FlyError as error:
        print_error(error, "fly.flydsl")
        return getattr(error, "exit_code", 1)
    except Exception as error:
        # As Python prints it, without this module's lines and those of runpy.
        frames = error.__traceback__
        while frames is not None and _is_runner(frames.tb_frame.f_code.co_filename):
            frames = frames.tb_next
        traceback.print_exception(type(error), error, frames)
        return 1
    return 0


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of its package
        return False


def _is_runner(file: str) -> bool:
    return file in (__file__, "<frozen runpy>") or Path(file).name == "runpy.py"


if __name__ == "__main__":
    sys.exit(main())
