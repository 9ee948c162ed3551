"""v_cvt_pknorm: the product is rounded once, also where it is nearly halfway."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from emulator_support.rows import LANES, run

FACTORS = {"i16": 32767, "u16": 65535}


def told_apart(factor: int) -> np.ndarray:
    """float32[64]: numbers whose product in f32 is halfway, or rounds to another integer."""
    middles = ((np.arange(1, factor) + 0.5) / factor).astype(np.float32)
    near = np.concatenate([middles, np.nextafter(middles, np.float32(0))])
    twice = np.rint(near * np.float32(factor))
    once = np.rint(near.astype(np.float64) * factor)
    found = near[twice != once]
    return found[:: len(found) // LANES][:LANES]


@pytest.mark.parametrize("kind", FACTORS)
def test_rounded_once(kind: str) -> None:
    numbers = told_apart(FACTORS[kind])
    wanted = [round(Fraction(float(number)) * FACTORS[kind]) for number in numbers]
    bits = numbers.view(np.uint32)
    words = run("gfx942", f"v_cvt_pknorm_{kind}_f32 v40, v1, v2", bits, bits[::-1].copy())[0]
    assert [word & 0xFFFF for word in words.tolist()] == wanted
    assert [word >> 16 for word in words.tolist()] == wanted[::-1]
