"""The oracle's WMMA against NumPy, on matrices dealt out to lanes by the manuals' pictures."""

from __future__ import annotations

import numpy as np
import pytest

from oracle.launching import build, launch
from oracle.probes import try_wmma


def dealt(words: np.ndarray, gfx11: bool) -> np.ndarray:
    """A (or B, by columns) of halves: uint32[32 lanes, registers] → float64[16, 16]."""
    halves = words.view(np.float16).astype(float)
    if gfx11:
        return halves[:16]  # the lane is the row, element k is half k
    return np.concatenate([halves[:16, :8], halves[16:, :8]], axis=1)


@pytest.mark.parametrize("target", build.RDNA)
def test_halves_into_floats(target):
    gfx11 = target == "gfx1100"
    words = try_wmma.inputs(target, 3, whole=True)
    outputs = np.zeros((len(words), 32, 8), np.uint32)
    data = build.assemble(try_wmma.program(target), target)
    run = launch.on_oracle(data, "probe", (1, 1, 1), (32, 1, 1), [words, outputs])
    result = run.arguments[1][0].view(np.float32)
    given = words[0]
    a = dealt(np.ascontiguousarray(given[:, 8:16]), gfx11)
    b = dealt(np.ascontiguousarray(given[:, 16:24]), gfx11)
    c = np.ascontiguousarray(given[:, :8]).view(np.float32)
    product = a @ b.T
    for lane in range(32):
        for register in range(8):
            row = 2 * register + lane // 16 if gfx11 else register + 8 * (lane // 16)
            exact = product[row, lane % 16] + c[lane, register]
            # gfx1100 is a few units of its grid off where terms have different signs.
            assert abs(result[lane, register] - exact) < (2.0**-14 if gfx11 else 2.0**-99)
