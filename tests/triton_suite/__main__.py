"""Compiles kernels with Triton, runs them on the emulator, and compares the results with NumPy.

    PYTHONPATH=tests python -m triton_suite --triton .peers/bin/python
    PYTHONPATH=tests python -m triton_suite --triton … --targets gfx942 --only 'matmul|sort'

`make triton` installs Triton there. Prints a line for each kernel with wrong results or that Triton
does not compile, and a sum. The exit status is 1 if any is wrong.
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
from kernels.case import TARGETS

from triton_suite import cases
from triton_suite.case import Case

TRITON = {"PYTHONPATH": "", "TRITON_DEFAULT_FP_FUSION": "1"}
MOST = 20_000_000  # limit of instructions per launch, for those that would not end
KERNELS = Path(__file__).with_name("kernels.py")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="triton_suite", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--triton", required=True, metavar="PYTHON", help="one that has Triton")
    parser.add_argument("--targets", default=",".join(TARGETS), metavar="LIST")
    parser.add_argument("--only", default="", metavar="REGEX", help="cases so named")
    parser.add_argument("--strict", action="store_true", help="as fly-run's")
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
    print(f"{len(chosen)} launches: " + ", ".join(f"{n} {what}" for what, n in sums.items()))
    return 1 if sums["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
