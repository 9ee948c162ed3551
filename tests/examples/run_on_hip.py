"""Runs every example by the `hip` device, which uses the HIP library of the process.

    fly-run --hip gfx942 -- python run_on_hip.py gfx942

Prints a line for each: its name, and right or the error.
"""

from __future__ import annotations

import sys
from pathlib import Path

from example_cases import CASES, check
from fly_trace.session.load import find_entry, load_file

EXAMPLES = Path(__file__).parents[2] / "examples"


def main() -> None:
    target = sys.argv[1]
    for case in CASES:
        if target not in case.targets:
            continue
        path = str(EXAMPLES / case.file)
        compiled = find_entry(load_file(path), path, case.entry).compile(target=target)
        arguments = case.make()
        expected = case.expect(arguments)
        try:
            returned = compiled.run(arguments, device="hip").results
            check(case, case.after(arguments, returned), expected)
            print(f"{case.name}: right", flush=True)
        except Exception as error:
            print(f"{case.name}: {type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    main()
