"""The examples for Hopper on the device cpu: clusters that share rows, dependent launches."""

from __future__ import annotations

import re

import numpy as np
import pytest

from examples.hopper.cluster_softmax import cluster_softmax
from examples.hopper.dependent_launch import rms_norm


@pytest.fixture(autouse=True)
def on_cpu(monkeypatch):
    monkeypatch.setenv("FLY_TARGET", "sm_90a")
    monkeypatch.setenv("FLY_DEVICE", "cpu")


@pytest.mark.parametrize("shape", [(3, 1), (2, 7), (2, 1000), (1, 4099), (2, 65536)])
def test_a_cluster_shares_a_row(shape):
    x = 3 * np.random.default_rng(shape[1]).standard_normal(shape).astype(np.float32)
    y = np.zeros_like(x)
    cluster_softmax(x, y)
    exact = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    exact /= exact.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(y, exact, rtol=5e-6)  # exponents up to 40 have 18 bits


@pytest.mark.parametrize("shape", [(1, 1), (5, 300), (3, 2048)])
def test_a_dependent_launch(shape):
    random = np.random.default_rng(shape[1])
    x, w = random.standard_normal(shape, np.float32), random.standard_normal(shape[1], np.float32)
    s, y = np.zeros(shape[0], np.float32), np.zeros_like(x)
    rms_norm(x, w, s, y)
    squares = (x.astype(np.float64) ** 2).mean(axis=1)
    np.testing.assert_allclose(s, squares, rtol=1e-5)
    np.testing.assert_allclose(y, x * w / np.sqrt(squares + 1e-6)[:, None], rtol=1e-5, atol=1e-6)


def test_only_the_kernel_that_waits_is_dependent():
    kernels = rms_norm.compile().kernels
    assert {name: kernel.dependent for name, kernel in kernels.items()} == {
        "squares_kernel": False,
        "scale_kernel": True,
    }
    ptx = rms_norm.compile().ir("ptx")
    assert re.search(r"griddepcontrol\.launch_dependents;", ptx)
    # The weights are loaded before the wait, and what the first kernel writes behind it.
    before, after = ptx[ptx.index(".entry scale_kernel") :].split("griddepcontrol.wait;")
    assert before.count("ld.global") == 2
    assert after.count("ld.global") == 1
