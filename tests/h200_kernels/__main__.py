"""Compiles the cases for a target, and writes what `run.py` needs.

python -m h200_kernels OUT/ [TARGET]
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from fly_host import text
from fly_image.nvidia import ptx

from h200_kernels import chain
from h200_kernels.assembler import find
from h200_kernels.cases import cases
from h200_kernels.recording import record


def main(out: str, target: str = "sm_90a") -> None:
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    assembler = find()
    rows = []
    for case in cases():
        name = case.entry
        code = chain.ptx(case.path, case.entry, target)
        (folder / f"{name}.ptx").write_bytes(code)
        if assembler:
            words = [assembler, f"-arch={target}", f"{folder}/{name}.ptx"]
            subprocess.run([*words, "-o", f"{folder}/{name}.cubin"], check=True)
        program = text.read(ptx.sections(code.decode())[".fly.manifest"])
        values = case.make()
        arrays: list[dict[str, Any]] = []
        expected = case.expect(values)
        recorded = record(program, values)
        # The names of arrays → what they are called among the expected ones.
        outputs = {key: key for key in values} | {recorded.result: case.returns}
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
        rows.append(
            {
                "name": name,
                "arrays": arrays,
                "launches": recorded.launches,
                "rtol": case.rtol,
                "atol": case.atol,
                "ulp": case.ulp,
            }
        )
        print(f"{name}: {len(rows[-1]['launches'])} launches")
    (folder / "manifest.json").write_text(json.dumps({"target": target, "cases": rows}, indent=1))
    shutil.copy(Path(__file__).with_name("run.py"), folder / "run.py")


if __name__ == "__main__":
    main(*sys.argv[1:])
