"""Loops have one entry in LLVM IR.

MLIR's driver of patterns merges equal blocks, of a loop and of what is before it, too. LLVM 22
compiled a loop that thereby had three entries for AMDGPU so that it did not end.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fly_common.programs import toolchain
from fly_opt import Options, compile
from fly_trace.session.trace import trace_file

PROGRAM = """
import fly
import fly.expr as fx


def steps(v):
    n = fx.Int32(0)
    while True:
        n = n + 1
        if v == 1 or n > 12:
            return n
        v = v // 2 if v % 2 == 0 else v + 1


@fly.kernel
def kernel(I: fx.Tensor, a: fx.Int32, b: fx.Int32):
    k = fx.Int32(0)
    for x in [a, b]:
        k = k + min(x, steps(b & 15))
    I[0] = k


@fly.jit
def entry(I: fx.Tensor[fx.Int32, 8], a: fx.Int32, b: fx.Int32):
    kernel(I, a, b).launch(grid=1, block=1)
"""


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1100", "sm_90a"])
def test_loops_have_one_entry(target: str, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    module = compile(
        trace_file(str(path), "entry", {}, target=target).encode(), Options(target=target)
    )
    words = ["-passes=print<cycles>", "-disable-output", "-"]
    done = toolchain.run_program("opt", words, module)
    cycles = re.findall(r"entries\(([^)]*)\)", done.stderr.decode())
    assert cycles, "LLVM finds the loop"
    assert all(len(entries.split()) == 1 for entries in cycles), cycles
