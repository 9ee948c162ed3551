"""Compiles kernels with Triton, runs them on the emulator, and compares the results with NumPy.

    PYTHONPATH=tests python -m triton_suite --triton .peers/bin/python
    PYTHONPATH=tests python -m triton_suite --triton … --targets gfx942 --only 'matmul|sort'
    PYTHONPATH=tests python -m triton_suite --triton … --targets gfx942 --launcher

`make triton` installs Triton there. Prints a line for each kernel with wrong results or that Triton
does not compile, and a sum. The exit status is 1 if any is wrong. With --launcher, Triton itself
loads and launches the kernels, with the HIP library whose device is the emulator (`own_launcher`).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from fly_common.errors import FlyError
from fly_image.amd.code_object import CodeObject
from fly_run.devices.options import Options
from fly_run.emulator.machine import Emulator
from kernels import launching
from kernels.case import TARGETS, check

from triton_suite import cases
from triton_suite.case import Case

TRITON = {"PYTHONPATH": "", "TRITON_DEFAULT_FP_FUSION": "1"}
MOST = 20_000_000  # limit of instructions per launch, for those that would not end
LIMIT = "FLY_HIP_MAX_INSTRUCTIONS"
KERNELS = Path(__file__).with_name("kernels.py")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="triton_suite", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--triton", required=True, metavar="PYTHON", help="one that has Triton")
    parser.add_argument("--targets", default=",".join(TARGETS), metavar="LIST")
    parser.add_argument("--only", default="", metavar="REGEX", help="cases so named")
    parser.add_argument("--strict", action="store_true", help="as fly-run's")
    parser.add_argument("--launcher", action="store_true", help="Triton's own")
    parser.add_argument("--keep", metavar="FOLDER", help="leave the code objects there")
    return parser.parse_args()


def build(python: str, chosen: Sequence[tuple[Case, str]], folder: Path) -> dict[str, Any]:
    requests = [
        [key(case, target), case.kernel, target, case.types, case.constants, case.options]
        for case, target in chosen
    ]
    done = subprocess.run(
        [python, KERNELS, folder],
        input=json.dumps(requests),
        env={**os.environ, **TRITON, "TRITON_CACHE_DIR": str(folder / "cache")},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def key(case: Case, target: str) -> str:
    return f"{case.name}-{target}"


def run(case: Case, target: str, path: Path, told: dict[str, Any], strict: bool) -> str:
    """Returns what is wrong, or the empty string."""
    launch = case.launch(told["block"], target)
    try:
        code = CodeObject.parse(path.read_bytes(), path.name)
        # Triton appends pointers to scratch memory, which are null here.
        added = len(code.kernel(told["name"]).arguments) - len(launch.arguments)
        launch.arguments.extend([np.uint64(0)] * added)
        device = Emulator(target, Options(max_instructions=MOST, strict=strict))
        launching.run(device, code, told["name"], launch, told["lds"])
    except FlyError as error:
        return error.render("fly-run")
    except AssertionError as error:
        return str(error)
    return ""


def launched(python: str, target: str, chosen: Sequence[Case], folder: Path) -> dict[str, str]:
    """Has Triton launch the cases; returns what is wrong with each, or the empty string."""
    launches = {case.name: case.launch(0, target) for case in chosen}
    requests = []
    for case in chosen:
        launch, arguments = launches[case.name], []
        for position, (name, value) in enumerate(zip(case.types, launch.arguments, strict=True)):
            if isinstance(value, np.ndarray):
                path = f"{case.name}-{position}.bin"
                (folder / path).write_bytes(value.tobytes())
                arguments.append([path, case.types[name].lstrip("*")])
            else:
                arguments.append(value.item())
        more = case.constants, case.options, launch.grid
        requests.append([case.name, case.kernel, arguments, *more])
    tool = Path(sys.executable).with_name("fly-run")
    command = [tool, "--hip", target, "--", python, KERNELS.with_name("own_launcher.py"), folder]
    done = subprocess.run(
        command,
        input=json.dumps(requests),
        env={**os.environ, **TRITON, "TRITON_CACHE_DIR": str(folder / "cache"), LIMIT: str(MOST)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    answer = json.loads(done.stdout)
    print(f"{target}: Triton's launcher, with {answer['tensors']}", flush=True)
    found = {}
    for case in chosen:
        launch = launches[case.name]
        before = launch.arrays()
        after = {
            position: np.frombuffer(
                (folder / f"{case.name}-{position}.bin").read_bytes(), array.dtype
            ).reshape(array.shape)
            for position, array in before.items()
        }
        try:
            found[case.name] = answer["told"][case.name] or ""
            if not found[case.name]:
                check(launch, before, after)
        except AssertionError as error:
            found[case.name] = str(error)
    return found


def main() -> int:
    asked = options()
    only = re.compile(asked.only)
    targets = asked.targets.split(",")
    chosen = [
        (case, target)
        for case in cases.every()
        for target in case.targets
        if target in targets and only.search(case.name)
    ]
    sums: Counter[str] = Counter()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(asked.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if asked.launcher:
            for target in targets:
                cases_of = [case for case, name in chosen if name == target]
                for name, wrong in launched(asked.triton, target, cases_of, folder).items():
                    sums["wrong" if wrong else "right"] += 1
                    if wrong:
                        print(f"{name} {target}: {wrong}", flush=True)
            return _ended(len(chosen), sums)
        built = build(asked.triton, chosen, folder)
        print(f"compiled in {time.perf_counter() - start:.0f} s", flush=True)
        for case, target in chosen:
            told = built[key(case, target)]
            if "error" in told:
                sums["not compiled"] += 1
                print(f"{case.name} {target}: Triton: {told['error']}", flush=True)
                continue
            wrong = run(case, target, folder / f"{key(case, target)}.hsaco", told, asked.strict)
            sums["wrong" if wrong else "right"] += 1
            if wrong:
                print(f"{case.name} {target}: {wrong}", flush=True)
    return _ended(len(chosen), sums)


def _ended(count: int, sums: Counter[str]) -> int:
    print(f"{count} launches: " + ", ".join(f"{n} {what}" for what, n in sums.items()))
    return 1 if sums["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
