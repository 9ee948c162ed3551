"""The examples of `examples/hopper`: their arguments and results. The emulator has no such target,
so they are not among `example_cases.CASES`; the device cpu and GPUs run them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from example_cases import Case, normal


def _rows(m: int, n: int) -> dict[str, np.ndarray]:
    return {"X": 3 * normal(n, m, n), "Y": np.zeros((m, n), np.float32)}


def _softmax(arguments: Mapping) -> dict[str, np.ndarray]:
    x = arguments["X"].astype(np.float64)
    exact = np.exp(x - x.max(axis=1, keepdims=True))
    return {"Y": exact / exact.sum(axis=1, keepdims=True)}


def _weighted(m: int, n: int) -> dict[str, np.ndarray]:
    zeros = {"S": np.zeros(m, np.float32), "Y": np.zeros((m, n), np.float32)}
    return {"X": normal(1, m, n), "W": normal(2, n), **zeros}


def _rms_norm(arguments: Mapping) -> dict[str, np.ndarray]:
    x, w = (arguments[name].astype(np.float64) for name in "XW")
    squares = (x**2).mean(axis=1)
    return {"S": squares, "Y": x * w / np.sqrt(squares + 1e-6)[:, None]}


def softmax_case(m: int, n: int) -> Case:
    """Exponents up to 40 have 18 bits."""
    return Case(
        "hopper/cluster_softmax.py", "cluster_softmax", lambda: _rows(m, n), _softmax, rtol=5e-6
    )


def rms_norm_case(m: int, n: int) -> Case:
    file = "hopper/dependent_launch.py"
    return Case(file, "rms_norm", lambda: _weighted(m, n), _rms_norm, rtol=1e-5, atol=1e-6)


HOPPER = [softmax_case(6, 40000), rms_norm_case(300, 3000)]
