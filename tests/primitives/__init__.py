"""Tests of the primitives run the body of a kernel on arrays, on a target."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
from chosen_targets import chosen, some

import fly
import fly.expr as fx

# A wave of 64 lanes, one of 32, and an NVIDIA GPU.
TARGETS = some(("gfx942", "gfx1100", "sm_90a"), *sorted({*chosen()} - {"gfx942", "gfx1100"}))


def numbers(dtype: str, count: int, seed: int) -> np.ndarray:
    """Random numbers of a type; the sums and products of floats are exact."""
    random = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return random.integers(-8, 9, count).astype(dtype)
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max, count, dtype=dtype, endpoint=True)


@fly.kernel
def one_kernel(A: fx.Tensor, body: fx.Constexpr):
    body(A)


@fly.kernel
def two_kernel(A: fx.Tensor, B: fx.Tensor, body: fx.Constexpr):
    body(A, B)


@fly.kernel
def three_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, body: fx.Constexpr):
    body(A, B, C)


@fly.kernel
def four_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, D: fx.Tensor, body: fx.Constexpr):
    body(A, B, C, D)


@fly.jit
def one(A: fx.Tensor, body: fx.Constexpr, block: fx.Constexpr):
    one_kernel(A, body).launch(grid=1, block=block)


@fly.jit
def two(A: fx.Tensor, B: fx.Tensor, body: fx.Constexpr, block: fx.Constexpr):
    two_kernel(A, B, body).launch(grid=1, block=block)


@fly.jit
def three(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, body: fx.Constexpr, block: fx.Constexpr):
    three_kernel(A, B, C, body).launch(grid=1, block=block)


@fly.jit
def four(
    A: fx.Tensor,
    B: fx.Tensor,
    C: fx.Tensor,
    D: fx.Tensor,
    body: fx.Constexpr,
    block: fx.Constexpr,
):
    four_kernel(A, B, C, D, body).launch(grid=1, block=block)


_FUNCTIONS = {1: one, 2: two, 3: three, 4: four}


@contextmanager
def on(target: str) -> Iterator[None]:
    """Calls of functions run on a target: on the emulator under --strict, or on `cpu`."""
    is_amd = target.startswith("gfx")
    settings = {"FLY_TARGET": target, "FLY_DEVICE": "emulator" if is_amd else "cpu"}
    with mock.patch.dict(os.environ, {**settings, "FLY_STRICT": "1" if is_amd else "0"}):
        yield


def run(body: Callable[..., Any], *arrays: np.ndarray, block: Any, target: str) -> None:
    """Runs `body` with tensors of the arrays, in one block."""
    with on(target):
        _FUNCTIONS[len(arrays)](*arrays, body, block)


def wave_of(target: str) -> int:
    """The lanes of a wave."""
    return 64 if target.startswith("gfx9") else 32
