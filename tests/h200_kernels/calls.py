"""Calls of `fly.kernels`, with what NumPy and torch say of their results in f64."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
import torch.nn.functional as F

from fly import kernels
from fly.call.compiled import Compiled


@dataclass(frozen=True)
class Call:
    """`call` calls a function of `fly.kernels` with NumPy arrays. `expect` are its results in
    order; None is not compared. `rtol` and `atol` are as in numpy.allclose."""

    name: str
    call: Callable[[], Any]
    expect: Iterable[np.ndarray | None]
    rtol: float = 0.0
    atol: float = 0.0
    ulp: float = 0.0


class _Recorded(Exception):
    """Ends a call before it runs anything."""


def recorded(call: Call, target: str) -> tuple[bytes, dict[str, Any], dict[str, np.ndarray]]:
    """The PTX of the function that a call runs, its arguments, and the expected results by
    "returns", "returns1", …, in the shapes that the function returns."""
    seen: list[tuple[Compiled, dict[str, Any]]] = []

    def record(self: Compiled, given: Any, viewed: Any, *_: Any) -> Any:
        seen.append((self, dict(viewed)))
        raise _Recorded

    recording = patch.object(Compiled, "run_viewed", record)
    with recording, patch.dict(os.environ, FLY_TARGET=target), suppress(_Recorded):
        call.call()
    ((compiled, values),) = seen
    code = compiled.ir("ptx")
    expected = {
        f"returns{number or ''}": one for number, one in enumerate(call.expect) if one is not None
    }
    return code.encode() if isinstance(code, str) else code, values, expected


def normal(*shape: int, seed: int = 1) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def of_torch(function: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
    """A function of torch in f64."""
    tensors = [torch.tensor(one) for one in arrays]
    wide = [one.double() if one.is_floating_point() else one for one in tensors]
    return function(*wide).numpy()


def calls() -> Iterable[Call]:
    x, residual, vector = normal(37, 1000), normal(37, 1000, seed=2), normal(1000, seed=3)
    long, half = normal(3, 40001), normal(21, 4096).astype(np.float16)
    numbers = np.random.default_rng(4).integers(0, 300, 50_001, np.int32)
    classes = numbers[:37].astype(np.int64)
    for name, one in (("", x), ("_long", long), ("_half", half)):
        soft = of_torch(lambda x: x.softmax(-1), one)
        atol = 1e-3 if one.dtype == np.float16 else 1e-6
        yield Call(f"softmax{name}", lambda one=one: kernels.softmax(one), [soft], 1e-5, atol)
        logs = of_torch(lambda x: x.log_softmax(-1), one)
        yield Call(
            f"log_softmax{name}", lambda one=one: kernels.log_softmax(one), [logs], 1e-3, 1e-4
        )
        norm = of_torch(lambda x: F.rms_norm(x, x.shape[-1:], None, 1e-6), one)
        yield Call(f"rms_norm{name}", lambda one=one: kernels.rms_norm(one), [norm], 1e-3, 1e-5)
    soft = of_torch(lambda x: x.softmax(-1), x).astype(np.float32)
    exact = of_torch(lambda dy, y: y * (dy - (dy * y).sum(-1, keepdim=True)), residual, soft)
    yield Call(
        "softmax_backward", lambda: kernels.softmax_backward(residual, soft), [exact], 1e-4, 1e-7
    )
    total = x + residual
    norm = of_torch(lambda x, w: F.layer_norm(x, (1000,), w, w, 1e-5), total, vector)
    yield Call(
        "add_layer_norm",
        lambda: kernels.add_layer_norm(x, residual, vector, vector),
        [norm, total],
        1e-4,
        1e-5,
    )
    yield Call(
        "norm_backward",
        lambda: kernels.norm_backward(residual, x, vector, 1e-5, True),
        norm_gradients(residual, x, vector),
        1e-3,
        1e-4,
    )
    losses = of_torch(lambda x, t: F.cross_entropy(x, t, reduction="none"), x, classes)
    sums = of_torch(lambda x: x.logsumexp(-1), x)
    yield Call(
        "cross_entropy", lambda: kernels.cross_entropy_rows(x, classes), [losses, sums], 1e-5, 1e-5
    )
    most = np.abs(x).max(1).astype(np.float64) / 127
    yield Call("quantize_rows", lambda: kernels.quantize_rows(x, "int8"), [None, most], 1e-5)
    order = np.argsort(-x, 1, kind="stable")[:, :9]
    best = np.take_along_axis(x, order, 1)
    yield Call("top_k", lambda: kernels.top_k(x, 9), [best, order.astype(np.int32)])
    yield Call(
        "prefix_sum", lambda: kernels.prefix_sum(numbers), [np.cumsum(numbers, dtype=np.int32)]
    )
    counts = np.bincount(numbers, minlength=310).astype(np.int32)
    yield Call("histogram", lambda: kernels.histogram(numbers, 310), [counts])
    counts = np.bincount(numbers, minlength=9000).astype(np.int32)
    yield Call("histogram_wide", lambda: kernels.histogram(numbers, 9000), [counts])


def norm_gradients(dy: np.ndarray, x: np.ndarray, weight: np.ndarray) -> list[np.ndarray]:
    """The gradients of a layer normalization's x, weight and bias in f64."""
    given = [
        torch.tensor(one, dtype=torch.float64, requires_grad=True) for one in (x, weight, weight)
    ]
    made = F.layer_norm(given[0], x.shape[-1:], given[1], given[2], 1e-5)
    return [one.numpy() for one in torch.autograd.grad(made, given, torch.tensor(dy).double())]


CALLS = tuple(replace(call, name=f"call_{call.name}") for call in calls())
