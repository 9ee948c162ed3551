"""The main program of those that kernel_quality.py runs: solves problems, and records the kernels.

    python PROGRAM TARGET FOLDER [NAME...]

Writes the code objects into FOLDER and prints JSON: by the problem's name, its launches (kernel,
file of the code object, bytes of LDS that the launch adds, and instructions that its waves
execute), the greatest error, or why there is no solution. The peers' runtimes launch their kernels
on the emulator, by `fly-run --hip`.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import util
from pathlib import Path
from typing import Any
from unittest.mock import patch

from kernel_problems import PROBLEMS, Problem

Solution = Callable[..., Any]


@contextmanager
def recorded(folder: Path, launches: list[tuple[str, str, int, int]]) -> Iterator[None]:
    """Appends each launch on an emulator to a list."""
    if util.find_spec("fly_run") is None:
        ctypes.CDLL("libamdhip64.so").hipInit(0)  # makes fly_run importable here
    from fly_run.emulator.machine import Emulator

    launch = Emulator.launch

    def launch_recorded(
        self: Any,
        function: Any,
        grid: Any,
        block: Any,
        packed: bytes,
        shared: int = 0,
        *rest: Any,
        **named: Any,
    ) -> None:
        before = self.instructions
        launch(self, function, grid, block, packed, shared, *rest, **named)
        image = function.loaded.code_object.data
        file = f"{hashlib.sha256(image).hexdigest()[:16]}.hsaco"
        (folder / file).write_bytes(image)
        launches.append((function.kernel.name, file, shared, self.instructions - before))

    with patch.object(Emulator, "launch", launch_recorded):
        yield


def solved(problem: Problem, solution: Solution, target: str, folder: Path) -> dict[str, Any]:
    launches: list[tuple[str, str, int, int]] = []
    made = problem.make(target)
    try:
        prepared = solution(*made)
        with recorded(folder, launches):
            found = prepared()
    except Exception as error:
        reason = str(error).strip().splitlines() or [""]
        return {"failed": f"{type(error).__name__}: {reason[0]}"}
    if not launches:
        return {"failed": "nothing was launched"}
    return {"launches": launches, "error": problem.error(found, made)}


def main(solutions: Mapping[str, Solution]) -> None:
    """Solves the problems that have a solution: a function that takes the problem's arguments, and
    returns one that launches the kernels and returns the results."""
    target, folder, *names = sys.argv[1:]
    chosen = [one for one in PROBLEMS if one.name in solutions and (not names or one.name in names)]
    unknown = set(solutions) - {one.name for one in PROBLEMS}
    assert not unknown, f"there is no problem {unknown}"
    found = {}
    for problem in chosen:
        print(problem.name, file=sys.stderr, flush=True)
        found[problem.name] = solved(problem, solutions[problem.name], target, Path(folder))
    json.dump(found, sys.stdout)
