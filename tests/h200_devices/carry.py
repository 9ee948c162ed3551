"""Compiles the examples for a machine that has no compiler.

    python -m h200_devices.carry OUT [TARGET]

OUT/NAME.image, OUT/NAME.npz (arguments, and expected arrays as "=NAME"), OUT/cases.json. Examples
with instructions that the target lacks are left out, and named.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from fly_common.errors import FlyError
from fly_trace.session.load import find_entry, load_file

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "examples"))
LARGEST = 16 << 20  # bytes of a case's arguments


def main(out: str, target: str = "sm_90a") -> None:
    from example_cases import CASES
    from hopper_cases import HOPPER

    folder, rows = Path(out), []
    folder.mkdir(parents=True, exist_ok=True)
    for case in (*CASES, *HOPPER):
        if case.traits:
            print(f"left out: {case.name}, which needs {' or '.join(case.traits)}")
            continue
        path = str(ROOT / "examples" / case.file)
        values = case.make()
        if sum(np.asarray(value).nbytes for value in values.values()) > LARGEST:
            print(f"left out: {case.name}, whose arrays are too large to carry")
            continue
        try:
            compiled = find_entry(load_file(path), path, case.entry).compile(target=target)
        except FlyError as error:
            print(f"left out: {case.name}: {error.message.splitlines()[0]}")
            continue
        compiled.save(folder / f"{case.name}.image")
        expected = {f"={name}": array for name, array in case.expect(values).items()}
        np.savez(folder / f"{case.name}.npz", **values, **expected)
        bounds = {"rtol": case.rtol, "atol": case.atol}
        rows.append({"name": case.name, "returns": case.returns, **bounds})
        print(f"compiled: {case.name}")
    (folder / "cases.json").write_text(json.dumps({"target": target, "cases": rows}, indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
