"""The process that benchmarks time for FlyDSL's own kernels ends with the code of the first one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
sys.path.insert(0, "benchmarks/peers")
import flydsl_cases
flydsl_cases.stop_ours()
import numpy as np
import flydsl.compiler as flyc
import flydsl.expr as fx

@flyc.kernel
def double(Out: fx.Tensor):
    Out[fx.thread_idx.x] = Out[fx.thread_idx.x] * 2

@flyc.jit
def launch(Out: fx.Tensor):
    double(Out).launch(grid=(1, 1, 1), block=(64, 1, 1))

try:
    launch(np.ones(64, np.int32))
except flydsl_cases.Compiled as stop:
    sys.stdout.buffer.write(stop.args[0])
"""


def test_our_side_ends_with_the_code(tmp_path: Path) -> None:
    file = tmp_path / "program.py"  # traced functions have a file
    file.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(file)],
        cwd=ROOT,
        env={"PATH": str(Path(sys.executable).parent), "HOME": str(tmp_path),
             "FLYDSL_GPU_ARCH": "gfx942", "COMPILE_ONLY": "1"},
        capture_output=True,
    )  # fmt: skip
    assert done.stdout[:4] == b"\x7fELF", done.stderr.decode()
