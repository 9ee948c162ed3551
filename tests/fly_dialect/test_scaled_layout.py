"""The operand layout of CDNA4's scaled matrix instructions: FlyDSL's in its text, and the
instruction's."""

from __future__ import annotations

import pytest
from fly_dialect.atoms.amd.mfma import MfmaScale
from fly_dialect.type_text import parse_type

TEXT = "!fly_rocdl.cdna4.mfma_scale<{}, ({}, {}) -> f32, opselA = 0, opselB = 0{}>"


@pytest.mark.parametrize(
    ("shape", "element", "runs", "layout"),
    [
        # FlyDSL 0.4.2, of its wheel: `tiled_mma.tv_layout_A_tiled`.
        ("16x16x128", "f8E4M3FN", 1, "((16,4),32):((1,512),16)"),
        ("32x32x64", "f8E5M2", 1, "((32,2),32):((1,1024),32)"),
        ("16x16x128", "f4E2M1FN", 1, "((16,4),32):((1,512),16)"),
        # CDNA4 ISA manual, 7.1.5: two runs of 16, half of K apart.
        ("16x16x128", "f8E4M3FN", 2, "((16,4),(16,2)):((1,256),(16,1024))"),
        ("32x32x64", "f8E5M2", 2, "((32,2),(16,2)):((1,512),(32,1024))"),
    ],
)
def test_the_layout_of_an_operand(shape: str, element: str, runs: int, layout: str):
    text = TEXT.format(shape, element, element, "" if runs == 1 else f", runs = {runs}")
    found = parse_type(f"!fly.mma_atom<{text}>")
    assert str(found) == f"!fly.mma_atom<{text}>"
    assert isinstance(found.op, MfmaScale)
    assert str(found.op.thr_val_layout_a) == str(found.op.thr_val_layout_b) == layout


def test_other_runs_are_refused():
    text = TEXT.format("16x16x128", "f8E4M3FN", "f8E4M3FN", ", runs = 3")
    with pytest.raises(ValueError, match="runs must be 1 or 2, got 3"):
        parse_type(f"!fly.mma_atom<{text}>")
