"""WMMA of gfx1100 and gfx1201: the emulator against the oracle's own reading of the manuals."""

from __future__ import annotations

import numpy as np
import pytest
from fly_common.code_object import CodeObject
from oracle import build, launch, try_wmma

from .engine_support import launch as on_emulator

RUNS = [(target, mode) for target in build.RDNA for mode in ("exact", "fast")]


def results(target: str, mode: str, *, whole: bool) -> tuple[np.ndarray, np.ndarray]:
    """What the emulator and the oracle make: uint32[instruction, lane, register]."""
    words = try_wmma.inputs(target, 3, whole=whole)
    outputs = np.zeros((len(words), 32, 8), np.uint32)
    data = build.assemble(try_wmma.program(target), target)
    run = launch.on_oracle(data, "probe", (1, 1, 1), (32, 1, 1), [words, outputs])
    on_emulator(CodeObject.parse(data), [words, outputs], block=32, mfma=mode)
    return outputs, run.arguments[1]


@pytest.mark.parametrize(("target", "mode"), RUNS)
def test_whole_numbers(target: str, mode: str) -> None:
    """Every sum is exact: bit for bit the same, whatever the order."""
    found, wanted = results(target, mode, whole=True)
    names = try_wmma.instructions(target)
    differing = [
        text for (_, text), a, b in zip(names, found, wanted, strict=True) if (a != b).any()
    ]
    assert not differing


@pytest.mark.parametrize(("target", "mode"), RUNS)
def test_any_numbers(target: str, mode: str) -> None:
    """f32 results: within what 16 products may lose; no model of these units is published."""
    found, wanted = results(target, mode, whole=False)
    for (name, text), a, b in zip(try_wmma.instructions(target), found, wanted, strict=True):
        if name.startswith("f32"):
            a, b = a.view(np.float32), b.view(np.float32)
            scale = np.nanmax(np.abs(b), initial=1)
            assert np.allclose(a, b, rtol=0, atol=scale * 2.0**-18, equal_nan=True), text
