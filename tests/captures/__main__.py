"""What hardware gave, against the emulator: rocjitsu's captures of gfx1201.

    PYTHONPATH=tests python -m captures gfx1201_cases.h

The file is emulation/rocjitsu/tests/fixtures/float_dot/gfx1201_cases.h of ROCm/rocm-systems, and is
not kept here. It has v_dot2_f32_f16 and v_dot2_f32_bf16 (A, B, C, result) and dense matrix
products: a row of A, a column of B, C, and the results in waves of 32 and of 64. Every row of a
matrix is the same here. The payload of a NaN is open. Exit status 1: some result differs.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "fly_run"))
from engine_support import compile_opencl, launch  # pyright: ignore[reportMissingImports]

TARGET = "gfx1201"
DOT = """kernel void k(global uint *A, global uint *B, global uint *C, global uint *D, int n) {{
  int t = INDEX;
  if (t < n)
    __asm volatile("v_dot2_f32_{form} %0, %1, %2, %3"
                   : "=v"(D[t]) : "v"(A[t]), "v"(B[t]), "v"(C[t])); }}"""
# A lane of the first half has k 0 to 7 as that file counts them, one of the second half the others.
MATRIX = """
typedef {element} v8 __attribute__((ext_vector_type(8)));
typedef float f8 __attribute__((ext_vector_type(8)));
kernel void k(global v8 *A, global v8 *B, float c, global f8 *D) {{
  f8 all = c;
  D[TID] = __builtin_amdgcn_wmma_f32_16x16x16_{form}_w32_gfx12(A[TID / 16], B[TID / 16], all); }}"""
ELEMENTS = {"f16": "half", "bf16": "short"}


def rows(text: str, name: str, width: int) -> np.ndarray:
    """The numbers of the array called `name`, `width` to a row."""
    part = re.search(rf"{name} = {{{{(.*?)}}}};", text, re.DOTALL)
    if part is None:
        raise SystemExit(f"captures: the file has no {name}")
    return np.array([int(n, 16) for n in re.findall(r"0x[0-9a-f]+", part[1])], "u4").reshape(
        -1, width
    )


def same(found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    both_nan = np.isnan(found.view("f4")) & np.isnan(wanted.view("f4"))
    return (found == wanted) | both_nan


def dots(cases: np.ndarray, form: str) -> np.ndarray:
    a, b, c, wanted = np.ascontiguousarray(cases.T)
    found = np.zeros_like(wanted)
    arguments = [a, b, c, found, np.int32(len(found))]
    launch(_compiled(DOT.format(form=form)), arguments, -(-len(found) // 64), 64)
    return same(found, wanted)


def matrices(cases: np.ndarray, form: str) -> np.ndarray:
    code = _compiled(MATRIX.format(form=form, element=ELEMENTS[form]))
    right = []
    for case in cases:
        a, b = (np.ascontiguousarray(part.astype("u2")) for part in (case[:16], case[16:32]))
        found = np.zeros(256, "u4")
        launch(code, [a, b, case[32:33].view("f4")[0], found], 1, 32)
        right.append(same(found, np.full(256, case[33])).all())
    return np.array(right)


def _compiled(source: str) -> Any:
    return compile_opencl(source, TARGET, "-O1")


def main() -> int:
    text = Path(sys.argv[1]).read_text()
    wrong = 0
    for form in ELEMENTS:
        name = form.upper()
        for what, right in (
            ("dot products", dots(rows(text, f"kGfx12Dot{name}Cases", 4), form)),
            ("matrices", matrices(rows(text, f"kGfx12Wmma{name}Cases", 35), form)),
        ):
            print(f"{TARGET} {form} {what}: {right.sum()} of {len(right)} equal")
            wrong += int((~right).sum())
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
