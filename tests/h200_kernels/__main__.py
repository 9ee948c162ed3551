"""Compiles the cases for a target, and writes what `run.py` needs.

python -m h200_kernels OUT/ [TARGET]
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
from fly_host import text
from fly_image.nvidia import ptx

from h200_kernels.cases import cases
from h200_kernels.recording import launches

TOOLS = Path(sys.executable).parent


def compiled(path: Path, entry: str, target: str) -> bytes:
    """Runs the chain of filters, as a shell would."""
    data = b""
    for words in (
        ["fly-trace", f"{path}:{entry}", "--target", target],
        ["fly-opt-py", "--target", target],
        ["opt", "-S", "-O3"],
        ["fly-llc"],
    ):
        program = TOOLS / words[0]
        words[0] = str(program) if program.exists() else words[0]
        data = subprocess.run(words, input=data, stdout=subprocess.PIPE, check=True).stdout
    return data


def ptxas() -> str | None:
    """Returns the path of ptxas: FLY_PTXAS, that of PyPI's package, or that on the PATH."""
    packages = (Path(root, "nvidia/cu13/bin/ptxas") for root in sys.path)
    found = next((str(path) for path in packages if path.is_file()), None)
    return os.environ.get("FLY_PTXAS") or found or shutil.which("ptxas")


def main(out: str, target: str = "sm_90a") -> None:
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    assembler = ptxas()
    rows = []
    for case in cases():
        name = case.entry
        code = compiled(case.path, case.entry, target)
        (folder / f"{name}.ptx").write_bytes(code)
        if assembler:
            words = [assembler, f"-arch={target}", f"{folder}/{name}.ptx"]
            subprocess.run([*words, "-o", f"{folder}/{name}.cubin"], check=True)
        program = text.read(ptx.sections(code.decode())[".fly.manifest"])
        values = case.make()
        arrays = []
        expected = case.expect(values)
        for key, value in values.items():
            if isinstance(value, np.ndarray):
                np.save(folder / f"{name}.{key}.npy", np.ascontiguousarray(value))
                if key in expected:
                    np.save(folder / f"{name}.{key}.expected.npy", expected[key])
                arrays.append({"name": key, "expected": key in expected})
        rows.append(
            {
                "name": name,
                "arrays": arrays,
                "launches": launches(program, values),
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
