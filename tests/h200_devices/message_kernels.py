"""Kernels that print and assert, with what a launch of each must say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import fly
import fly.expr as fx


@fly.kernel
def print_kernel(A: fx.Tensor, n: fx.Int32):
    i = fx.block_idx.x * fx.block_dim.x + fx.thread_idx.x
    if i < n:
        fx.printf(f"A[{i}] = {A[i]:.2f}")
        fx.printf("{} of {}", fx.thread_idx.x, fx.block_idx.x)


@fly.jit
def prints(A: fx.Tensor[fx.Float32, 192], n: fx.Int32):
    print_kernel(A, n).launch(grid=3, block=64)


@fly.kernel
def assert_kernel(A: fx.Tensor, n: fx.Int32):
    i = fx.block_idx.x * fx.block_dim.x + fx.thread_idx.x
    assert i < n, f"{i} is not less than {n}"
    A[i] = A[i] * 2


@fly.jit
def asserts(A: fx.Tensor[fx.Float32, 192], n: fx.Int32):
    assert_kernel(A, n).launch(grid=3, block=64)


@dataclass(frozen=True)
class Case:
    """`printed` are the lines, `failed` is the message of the assert, or empty."""

    name: str
    function: Any
    n: int
    printed: tuple[str, ...] = ()
    failed: str = ""

    def make(self) -> tuple[np.ndarray, int]:
        return np.arange(192, dtype=np.float32) / 4, self.n


CASES = (
    Case(
        "printf",
        prints,
        70,
        tuple(
            line for i in range(70) for line in (f"A[{i}] = {i / 4:.2f}", f"{i % 64} of {i // 64}")
        ),
    ),
    Case("assert-that-holds", asserts, 192),
    Case("assert-that-fails", asserts, 100, failed="100 is not less than 100"),
)
