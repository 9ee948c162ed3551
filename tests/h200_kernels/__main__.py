"""Compiles the cases for a target, and writes what `run.py` needs.

python -m h200_kernels OUT/ [TARGET]
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from fly_host import text
from fly_image.nvidia import ptx

from h200_kernels import calls, chain
from h200_kernels.assembler import find
from h200_kernels.cases import cases
from h200_kernels.recording import record


def main(out: str, target: str = "sm_90a") -> None:
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for case in cases():
        code = chain.ptx(case.path, case.entry, target)
        values = case.make()
        expected = dict(case.expect(values))
        if case.returns:
            expected = {
                "returns" if key == case.returns else key: one for key, one in expected.items()
            }
        rows.append(written(folder, target, case.entry, code, values, expected, case))
    for call in calls.CALLS:
        code, values, expected = calls.recorded(call, target)
        rows.append(written(folder, target, call.name, code, values, expected, call))
    (folder / "manifest.json").write_text(json.dumps({"target": target, "cases": rows}, indent=1))
    shutil.copy(Path(__file__).with_name("run.py"), folder / "run.py")


def written(
    folder: Path,
    target: str,
    name: str,
    code: bytes,
    values: Mapping[str, Any],
    expected: Mapping[str, np.ndarray],
    allowed: Any,
) -> dict[str, Any]:
    """Writes a case's code, arguments and expected arrays; returns its row of the manifest.

    `expected` has arguments, and results by "returns", "returns1", ….
    """
    (folder / f"{name}.ptx").write_bytes(code)
    if assembler := find():
        words = [assembler, f"-arch={target}", f"{folder}/{name}.ptx"]
        subprocess.run([*words, "-o", f"{folder}/{name}.cubin"], check=True)
    program = text.read(ptx.sections(code.decode())[".fly.manifest"])
    arrays: list[dict[str, Any]] = []
    recorded = record(program, values)
    # The names of arrays → what they are called among the expected ones.
    outputs = {key: key for key in values}
    for number, result in enumerate(recorded.results):
        outputs[result] = f"returns{number or ''}"
    for key, value in values.items():
        if isinstance(value, np.ndarray):
            np.save(folder / f"{name}.{key}.npy", np.ascontiguousarray(value))
            arrays.append({"name": key})
    arrays += [made._asdict() for made in recorded.made]
    for one in arrays:
        one["expected"] = outputs.get(one["name"])
        if one["expected"] not in expected:
            one["expected"] = None
    found = {one["expected"] for one in arrays} - {None}
    assert found == set(expected), f"{name}: {set(expected) - found} is nothing it makes"
    for key, array in expected.items():
        np.save(folder / f"{name}.{key}.expected.npy", array)
    print(f"{name}: {len(recorded.launches)} launches")
    return {
        "name": name,
        "arrays": arrays,
        "launches": recorded.launches,
        "rtol": allowed.rtol,
        "atol": allowed.atol,
        "ulp": allowed.ulp,
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
