"""Runs kernels with FlyDSL and its own runtime, on the HIP library whose device is the emulator.

    PYTHONPATH=tests python -m flydsl_suite --flydsl .peers/bin/python
    PYTHONPATH=tests python -m flydsl_suite --flydsl … --examples FlyDSL/examples

What FlyDSL traces goes through the pipe as well, from `fly-trace --frontend flydsl` to `fly-run`.
`make flydsl` installs FlyDSL there. --examples also runs FlyDSL's examples 01 to 03 and 05, with
CPU tensors: only the lines that name a device or a stream are changed. The exit status is 1 if
anything is wrong.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from fly_common import paths
from fly_common.programs import toolchain

TARGETS = ("gfx942", "gfx950")
PROGRAM = Path(__file__).with_name("program.py")
EXAMPLES = ("01-vectorAdd", "02-tiledCopy", "03-tiledMma", "05-gather_scatter")
CHANGES = (
    (r"\.cuda\(\)", ""),
    (r", stream=torch\.cuda\.(Stream|current_stream)\(\)", ""),
    (r"torch\.cuda\.synchronize\(\)", "pass"),
    (r'torch\.device\("cuda"\)', 'torch.device("cpu")'),
)


def run(python: str, script: Path, target: str, folder: Path) -> str:
    """Returns what a program prints, or its error."""
    rocm = folder / "rocm/llvm/bin"  # where FlyDSL looks for its linker
    if not rocm.exists():
        rocm.mkdir(parents=True)
        (rocm / "ld.lld").symlink_to(os.path.realpath(toolchain.find_program("ld.lld")))
    tool = Path(sys.executable).with_name("fly-run")
    variables = {
        "ROCM_PATH": str(folder / "rocm"),
        "FLYDSL_GPU_ARCH": target,
        "FLYDSL_RUNTIME_CACHE_DIR": str(folder / "cache"),
        "HOME": str(folder),
        "FLY_CACHE_DIR": paths.cache_dir(),
        "PYTHONPATH": "",
    }
    done = subprocess.run(
        [tool, "--hip", target, "--", python, script],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=600,
    )
    return done.stdout if done.returncode == 0 and not done.stderr else done.stdout + done.stderr


def piped(python: str, target: str, folder: Path) -> str:
    """The host function `scale` of the program through the pipe: "right", or what is wrong."""
    rng = np.random.default_rng(7)
    a = rng.standard_normal((37, 52), dtype=np.float32)
    np.save(folder / "a.npy", a)
    np.save(folder / "b.npy", np.zeros_like(a))
    tools = Path(sys.executable).parent
    signature = "A: f32[M,N], B: f32[M,N], factor: f32"
    commands = (
        [tools / "fly-trace", "--frontend", "flydsl", "--python", python, "--target", target,
         f"{PROGRAM}:scale", "--sig", signature],
        [tools / "fly-opt-py", "--target", target],
        [toolchain.find_program("opt"), "-S", "-O3"],
        [tools / "fly-llc"],
        [tools / "fly-link"],
        [tools / "fly-run", "--device", "emulator", "-", f"A={folder}/a.npy", "factor=2.5",
         f"B={folder}/b.npy:{folder}/b.npy"],
    )  # fmt: skip
    data = b""
    for command in commands:
        done = subprocess.run(command, input=data, capture_output=True, timeout=600)
        if done.returncode:
            return done.stderr.decode()
        data = done.stdout
    same = np.array_equal(np.load(folder / "b.npy"), a * np.float32(2.5))
    return "right" if same else "other numbers"


def main() -> int:
    parser = argparse.ArgumentParser(prog="flydsl_suite", description=__doc__.split("\n")[0])
    parser.add_argument("--flydsl", required=True, metavar="PYTHON", help="one that has FlyDSL")
    parser.add_argument("--examples", type=Path, metavar="FOLDER", help="FlyDSL's examples")
    asked = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for target in TARGETS:
            said = run(asked.flydsl, PROGRAM, target, folder)
            names = ("scale", "reverse 256", "reverse 128")
            right = said == "".join(f"{name}: right\n" for name in names) + f"chip: {target}\n"
            wrong += not right
            print(f"{PROGRAM.name} {target}: {'right' if right else said}", flush=True)
            said = piped(asked.flydsl, target, folder)
            wrong += said != "right"
            print(f"through the pipe {target}: {said}", flush=True)
        for name in EXAMPLES if asked.examples else ():
            source = (asked.examples / f"{name}.py").read_text()
            for pattern, new in CHANGES:
                source = re.sub(pattern, new, source)
            (folder / f"{name}.py").write_text(source)
            said = run(asked.flydsl, folder / f"{name}.py", TARGETS[0], folder)
            right = ("PASS" in said or "True" in said) and not re.search("FAIL|False|Error", said)
            wrong += not right
            print(f"{name}: {'right' if right else said}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
