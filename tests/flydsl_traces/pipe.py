"""A module of FlyDSL's through the pipe, and its launches with fly-run.

    python pipe.py MODULE.mlir FOLDER

is what `fly.flydsl.frontend.program` calls for a launch: FOLDER has the arguments, and gets what
the kernels wrote. Beside the module a file .json says how far it came, and why no further. Nothing
of FlyDSL's compiler has a part in it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

STAGES = ("traced", "fly-opt-py", "opt", "fly-llc", "fly-link", "fly-run")
SECONDS = 900
# Bytes around arrays that kernels may read: FlyDSL's fetch ahead, into what a GPU has mapped there.
MARGIN = 1 << 20
# torch's types that NumPy lacks → the type of their bits.
BITS = {"bfloat16": "uint16"}


def tool(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def compiled(module: Path, target: str) -> str:
    """The last stage that a module passes; its object is beside it. Once for each module."""
    told = module.with_suffix(".json")
    if told.exists():
        return json.loads(told.read_text())["stage"]
    from fly_common.programs import toolchain

    commands = (
        [tool("fly-opt-py"), "--target", target],
        [str(toolchain.find_program("opt")), "-S", "-O3"],
        [tool("fly-llc")],
        [tool("fly-link")],
    )
    data, stage, reason = module.read_bytes(), STAGES[0], ""
    for name, command in zip(STAGES[1:], commands, strict=False):
        done = subprocess.run(command, input=data, capture_output=True, timeout=SECONDS)
        if done.returncode:
            reason = first_error(done.stderr.decode())
            break
        data, stage = done.stdout, name
    if stage == "fly-link":
        module.with_suffix(".image").write_bytes(data)
    told.write_text(json.dumps({"stage": stage, "reason": reason, "launches": 0}))
    return stage


def first_error(said: str) -> str:
    lines = said.strip().splitlines()
    return next((line for line in lines if "error" in line), lines[-1] if lines else "")


def launched(module: Path, folder: Path) -> str:
    """Launches with the arguments of a folder, and stores what changes there. Returns the error."""
    arguments = []
    told: dict[str, Any] = json.loads((folder / "arguments.json").read_text())
    for name, one in told.items():
        if "value" in one:
            value = one["value"]
            arguments.append(f"{name}={int(value) if isinstance(value, bool) else value}")
            continue
        flat = np.frombuffer((folder / f"{name}.bin").read_bytes(), dtype_of(one["dtype"]))
        array = flat
        if not one["pointer"]:
            steps = [flat.itemsize * stride for stride in one["strides"]]
            array = np.lib.stride_tricks.as_strided(flat, one["shape"], steps)
            if not (array.flags.c_contiguous or array.flags.f_contiguous):
                return f"{name} is not contiguous, which a .npy file can't hold"
        np.save(folder / f"{name}.npy", array)
        kind = "address:" if one.get("address") else ""
        arguments.append(f"{name}={kind}{folder}/{name}.npy:{folder}/{name}.npy")
    command = [tool("fly-run"), "--device", "emulator", "-q", "--margin", str(MARGIN)]
    command += [str(module.with_suffix(".image")), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode:
        return first_error(done.stderr)
    print(done.stdout, end="", file=sys.stderr)
    for name, one in told.items():
        if "value" not in one and (folder / f"{name}.npy").exists():
            array = np.load(folder / f"{name}.npy")
            order = "C" if array.flags.c_contiguous else "F"
            (folder / f"{name}.bin").write_bytes(array.tobytes(order))
    return ""


def dtype_of(name: str) -> str:
    if name.startswith(("float8", "float4")):
        return "uint8"
    return BITS.get(name, name)


def main() -> int:
    module, folder = map(Path, sys.argv[1:3])
    compiled(module, os.environ["FLYDSL_GPU_ARCH"])
    if module.with_suffix(".image").exists():
        error = launched(module, folder)
        told = json.loads(module.with_suffix(".json").read_text())
        told["launches"] += 1
        told["reason"] = told["reason"] or error
        told["stage"] = "fly-link" if told["reason"] else "fly-run"
        module.with_suffix(".json").write_text(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main())
