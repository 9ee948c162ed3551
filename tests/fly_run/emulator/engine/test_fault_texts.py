"""The whole text of every fault, with its source line: golden/faults.txt.

Kernels are compiled with -g, so that a fault says file, line and column; addresses and what a
target names its instructions differ from one to the next and are made the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emulator_support.engine import PRELUDE, launch
from fly_common.errors import Fault
from fly_common.programs import toolchain
from fly_image.amd.code_object import CodeObject

GOLDEN = Path(__file__).parent / "golden" / "faults.txt"
FAULT_TARGETS = ("gfx942", "gfx90a")
ADD = """__opencl_atomic_fetch_add((global atomic_int *)({}), n, __ATOMIC_RELAXED,
    __OPENCL_MEMORY_SCOPE_DEVICE);"""


@dataclass(frozen=True)
class Case:
    """A kernel's body with arguments A (100 ints) and n, and how it is launched."""

    body: str
    n: int = 0
    grid: int = 1
    block: int = 64
    options: dict[str, Any] = field(default_factory=dict)


CASES = {
    "past the end": Case("if (INDEX < n)\n    A[INDEX] = INDEX;", n=200, grid=2),
    "before the start": Case("A[n] = 1;", n=-3),
    "scalar load of nothing": Case("A[0] = *(constant int *)(0x1000ul + n);"),
    "read-only": Case("A[TID] = n;", options={"read_only": ("A",)}),
    "read-only arguments": Case(
        "*(global int *)(ulong)__builtin_amdgcn_kernarg_segment_ptr() = 1;"
    ),
    "misaligned atomic": Case(ADD.format("(global char *)A + 2"), n=1),
    "outside LDS": Case(
        "local int s[64];\n  s[TID] = TID;\n  BARRIER;\n  A[TID] = s[TID + n];", n=8
    ),
    "outside private memory": Case(
        "volatile int s[64];\n  for (int i = 0; i < 64; i++)\n    s[i] = i;\n  A[TID] = s[n];",
        n=100_000,
    ),
    "trap": Case("if (A[0] == 0)\n    __builtin_trap();\n  A[1] = 1;"),
    "jump outside the code": Case(
        '__asm__ volatile("s_movk_i32 s4, 0x1234\\n s_mov_b32 s5, 1\\n s_setpc_b64 s[4:5]"'
        '\n    ::: "s4", "s5");'
    ),
    "endless loop": Case(
        "volatile global int *flag = A;\n  while (*flag == 0);",
        options={"max_instructions": 10_000},
    ),
    "waves at a barrier": Case(
        "volatile global int *flag = A;\n  if (TID < 64)\n    while (*flag == 0);\n"
        "  __builtin_amdgcn_s_barrier();",
        grid=2,
        block=256,
        options={"max_instructions": 200_000},
    ),
}


def compile_with_lines(folder: Path, body: str, target: str) -> CodeObject:
    source = folder / "k.cl"
    prelude = folder / "prelude.h"
    prelude.write_text(PRELUDE)
    source.write_text(f"kernel void k(global int *A, int n) {{\n  {body}\n}}\n")
    words = ["-x", "cl", "-cl-std=CL2.0", "-nogpulib", "-target", "amdgcn-amd-amdhsa"]
    words += [f"-mcpu={target}", "-g", "-O1", "-cl-kernel-arg-info", "-include", str(prelude)]
    done = toolchain.run_program("clang", [*words, str(source), "-o", "-"], b"")
    assert done.returncode == 0, done.stderr.decode()
    return CodeObject.parse(done.stdout)


def told(folder: Path, case: Case, target: str) -> str:
    """The rendered fault without what differs between targets and compilers."""
    code = compile_with_lines(folder, case.body, target)
    arguments = [np.zeros(100, "i4"), np.int32(case.n)]
    with pytest.raises(Fault) as caught:
        launch(code, arguments, case.grid, case.block, **case.options)
    text = caught.value.render("fly-run")
    text = re.sub(r"0x7f[0-9a-f]{10}", "ADDRESS", text)
    text = re.sub(r"at 0x[0-9a-f]+, lane 0", "at OFFSET, lane 0", text)
    text = re.sub(r"pc 0x[0-9a-f]+ '[^']*'", "pc PC 'TEXT'", text)
    text = re.sub(r"0x[0-9a-f]{4} +\S.*?(?=  k\.cl:)", "PC TEXT", text)
    text = re.sub(r"\d+ wave-instructions", "N wave-instructions", text)
    return re.sub(r" {2,}(?=PC TEXT|k\.cl:\d|instruction|line)", "  ", text)


def golden() -> list[tuple[str, str]]:
    found = []
    for part in ("\n" + GOLDEN.read_text()).split("\n== ")[1:]:
        name, _, text = part.partition("\n")
        found.append((name, text.rstrip("\n")))
    return found


def test_each_case_has_a_text() -> None:
    assert [name for name, _ in golden()] == list(CASES)


@pytest.mark.parametrize("target", FAULT_TARGETS)
@pytest.mark.parametrize(("name", "expected"), golden())
def test_text(
    name: str, expected: str, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert told(tmp_path, CASES[name], target) == expected
