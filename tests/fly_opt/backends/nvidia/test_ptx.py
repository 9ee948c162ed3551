"""The PTX of every kernel for every target: ptxas accepts it, and nothing is spilled."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from chosen_targets import NVIDIA, chosen_nvidia
from h200_kernels import assembler, chain
from h200_kernels.cases import cases

CASES = {case.entry: case for case in cases()}
EXAMPLES = Path(__file__).parents[4] / "examples"
# libdevice's sin and cos of large f64 have a table of their own.
WITH_STACK = ("math_f64",)


def needs(name: str) -> str:
    """Returns the trait that a case's target needs, or ""."""
    return "sm_89+" if name == "narrow_floats" else ""


@pytest.mark.parametrize(
    ("name", "target"),
    [(n, t) for n in CASES for t in chosen_nvidia() if needs(n) in ("", *NVIDIA[t].traits)],
)
def test_ptxas_accepts_it(name, target, tmp_path):
    case = CASES[name]
    ptx = chain.ptx(case.path, case.entry, target)
    assert f".target {target}\n".encode() in ptx
    said = assembler.assemble(ptx, target, tmp_path / "k.cubin")
    assert assembler.spilled(said) == 0
    if name not in WITH_STACK:
        assert assembler.stack(said) == 0
        assert not re.search(rb"^\s*(ld|st)\.local", ptx, re.MULTILINE)


@pytest.mark.parametrize(
    ("file", "entry", "expected"),
    [
        ("tiled_copy.py", "transpose_tiled", ["ld.global.v4", "st.shared.v4", "st.global.v4"]),
        ("gather_scatter.py", "gather_rows", ["ld.global.v4", "st.global.v4"]),
        ("gather_scatter.py", "scatter_rows", ["ld.global.v4", "st.global.v4"]),
        ("matmul.py", "matmul", ["ld.shared.v4"]),
    ],
)
def test_accesses_are_vectors(file, entry, expected):
    ptx = chain.ptx(EXAMPLES / file, entry, "sm_90a").decode()
    for instruction in expected:
        assert instruction in ptx
