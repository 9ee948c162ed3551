"""WMMA of gfx1100, gfx1201 and, where it has the same, gfx1250: the emulator against the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from oracle.launching import build, launch
from oracle.launching.device import on_emulator
from oracle.probes import try_wmma

TOLERANCE = 1e-5  # how far apart two ways to round a sum of 16 products of 8-bit floats may be
ONE = ((1, 1, 1), (try_wmma.LANES, 1, 1))


def results(target: str, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    arguments = [words, np.zeros((*words.shape[:2], 8), np.uint32)]
    data = build.assemble(try_wmma.program(target), target)
    mine = launch.on_oracle(data, "probe", *ONE, arguments).arguments[1]
    return mine, on_emulator(data, "probe", *ONE, arguments).arguments[1]


@pytest.mark.parametrize("target", build.RDNA)
def test_exact_sums(target):
    """Integers, and floats that are whole numbers: bit for bit, so the layouts agree."""
    mine, other = results(target, try_wmma.inputs(target, 5, whole=True))
    for k, (_, text) in enumerate(try_wmma.instructions(target)):
        np.testing.assert_array_equal(other[k], mine[k], err_msg=text)


@pytest.mark.parametrize("target", try_wmma.MEASURED)
def test_rounded_sums(target):
    """Of f16 and bf16 as measured, to the bit. How those of 8-bit floats are rounded is open."""
    mine, other = results(target, try_wmma.inputs(target, 6, whole=False))
    for k, (name, text) in enumerate(try_wmma.instructions(target)):
        if not name.endswith(("fp8", "bf8")):
            np.testing.assert_array_equal(other[k], mine[k], err_msg=text)
            continue
        a, b = (words[k].view(np.float32) for words in (mine, other))
        np.testing.assert_allclose(b, a, rtol=TOLERANCE, atol=TOLERANCE, err_msg=text)


@pytest.mark.parametrize("seed", [7, 8])
@pytest.mark.parametrize("target", try_wmma.MEASURED)
def test_strange_sums(target, seed):
    """Of f16 and bf16: far apart, too large or too small, infinite, no numbers; to the bit."""
    mine, other = results(target, try_wmma.strange(target, seed))
    for k, (name, text) in enumerate(try_wmma.instructions(target)):
        if not name.endswith(("fp8", "bf8")):
            np.testing.assert_array_equal(other[k], mine[k], err_msg=text)
