"""WMMA of gfx1100 and gfx1201: the emulator against the oracle, every instruction and modifier."""

from __future__ import annotations

import numpy as np
import pytest
from oracle import build, launch, try_wmma
from oracle.device import on_emulator

# How far apart two ways to round a sum of 16 products may be: the manuals leave the order open.
TOLERANCE = {"f32": 1e-5, "f16": 2e-2, "bf16": 2e-1}
ONE = ((1, 1, 1), (try_wmma.LANES, 1, 1))


def results(target: str, seed: int, whole: bool) -> tuple[np.ndarray, np.ndarray]:
    words = try_wmma.inputs(target, seed, whole)
    arguments = [words, np.zeros((*words.shape[:2], 8), np.uint32)]
    data = build.assemble(try_wmma.program(target), target)
    mine = launch.on_oracle(data, "probe", *ONE, arguments).arguments[1]
    return mine, on_emulator(data, "probe", *ONE, arguments).arguments[1]


@pytest.mark.parametrize("target", build.RDNA)
def test_exact_sums(target):
    """Integers, and floats that no order of adding rounds: bit for bit, so the layouts agree."""
    mine, other = results(target, 5, whole=True)
    for k, (_, text) in enumerate(try_wmma.instructions(target)):
        np.testing.assert_array_equal(other[k], mine[k], err_msg=text)


@pytest.mark.parametrize("target", build.RDNA)
def test_rounded_sums(target):
    mine, other = results(target, 6, whole=False)
    for k, (name, text) in enumerate(try_wmma.instructions(target)):
        kind = name.split("_")[0]
        if kind == "i32":
            np.testing.assert_array_equal(other[k], mine[k], err_msg=text)
            continue
        a, b = (values(words[k], kind) for words in (mine, other))
        np.testing.assert_allclose(b, a, rtol=TOLERANCE[kind], atol=TOLERANCE[kind], err_msg=text)


def values(words: np.ndarray, kind: str) -> np.ndarray:
    if kind == "f32":
        return words.view(np.float32)
    if kind == "f16":
        return words.view(np.float16).astype(np.float32)
    return (np.stack([words << np.uint32(16), words & np.uint32(0xFFFF0000)])).view(np.float32)
