"""Each step of docs/tutorials/gemm.md computes NumPy's product, on MFMA and on WMMA.

Under --strict's checks: a barrier that is missing is an error, not luck.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fly_run.devices.options import Options
from fly_trace.session.load import find_entry, load_file

STEPS = Path(__file__).parents[2] / "examples" / "gemm_tutorial"
# The steps on matrix instructions, and those on FMA, which are the same for all targets.
PLAIN, MATRIX = ("step1", "step2", "step3"), ("step4", "step5", "step6", "step7")
# M, N and K. The checks make lanes' own accesses slow.
EXTENTS = {"step1": (32, 16, 48), "step2": (32, 16, 48), "step3": (64, 64, 64)}
USUAL = (128, 64, 192)
ENTRIES = [
    *((step, "gemm", target) for step in PLAIN for target in ("gfx942", "gfx1201")),
    *((step, "gemm_mfma", "gfx942") for step in MATRIX),
    *((step, "gemm_wmma", "gfx1201") for step in MATRIX),
    *((step, "gemm_wmma", "gfx1100") for step in MATRIX[:-1]),
]


def preshuffled(b: np.ndarray, depth: int) -> np.ndarray:
    """An N×K matrix in blocks of 16 rows by `depth` of K, in which a row's eight adjacent values
    are followed by those of the next row. Element by element, unlike the example's own function."""
    n, k = b.shape
    flat = np.empty(n * k, b.dtype)
    for row in range(n):
        for column in range(k):
            block = (row // 16) * (k // depth) + column // depth
            inside = (column % depth // 8) * 128 + row % 16 * 8 + column % 8
            flat[block * 16 * depth + inside] = b[row, column]
    return flat.reshape(n, k)


@pytest.mark.parametrize(("step", "entry", "target"), ENTRIES)
def test_steps_compute_numpys_product(step: str, entry: str, target: str):
    random = np.random.default_rng(50)
    m, n, k = EXTENTS.get(step, USUAL)
    a = random.standard_normal((m, k)).astype(np.float16)
    b = random.standard_normal((n, k)).astype(np.float16)
    expected = a.astype(np.float64) @ b.astype(np.float64).T
    given = b
    if step == "step7":
        given = preshuffled(b, {"gfx942": 32, "gfx1201": 16}[target])
    path = str(STEPS / f"{step}.py")
    compiled = find_entry(load_file(path), path, entry).compile(target=target)
    made = compiled.run({"A": a, "B": given}, options=Options(strict=True)).results
    np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-4)


def test_all_steps_are_tested():
    assert {path.stem for path in STEPS.glob("*.py")} == {*PLAIN, *MATRIX}


@pytest.mark.parametrize("groups", [2, 4])
def test_the_steps_own_shuffle(groups: int):
    b = np.arange(32 * 64, dtype=np.float16).reshape(32, 64)
    made = load_file(str(STEPS / "step7.py")).shuffled(b, groups)
    np.testing.assert_array_equal(made, preshuffled(b, 8 * groups))
