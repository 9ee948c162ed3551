"""A program whose calls native code takes, and what makes native code look."""

import numpy as np

from fly.call.dispatch.native_calls import NativeCalls
from fly.dependencies.hashing import DependencyHash

PROGRAM = """
import fly
import fly.expr as fx

FACTOR = 2
SHIFT = [1]
TABLE = {7: 1}


def twice(x, factor=FACTOR):
    return x * factor


@fly.kernel
def scale_kernel(X: fx.Tensor, Y: fx.Tensor, n: fx.Int64, a: fx.Float32):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    if i < n:
        Y[i] = twice(X[i]) * FACTOR + a


@fly.jit
def scale(X: fx.Tensor[fx.Float32, "n"], Y: fx.Tensor[fx.Float32, "n"], a: fx.Float32 = 0.0):
    n = X.shape[0]
    scale_kernel(X, Y, n, a).launch(grid=fx.ceildiv(n, 64), block=64)


@fly.kernel
def add_kernel(X: fx.Tensor, Y: fx.Tensor, k: fx.Constexpr, n: fx.Int64):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    if i < n:
        Y[i] = X[i] + k


@fly.jit
def add(X: fx.Tensor, k: fx.Constexpr, Y: fx.Tensor):
    add_kernel(X, Y, k, X.shape[0]).launch(grid=fx.ceildiv(X.shape[0], 64), block=64)


@fly.kernel
def shift_kernel(X: fx.Tensor, Y: fx.Tensor):
    Y[fx.thread_idx.x] = X[0] + SHIFT[0]


@fly.jit
def shifted(X: fx.Tensor, Y: fx.Tensor):
    shift_kernel(X, Y).launch(grid=1, block=64)


@fly.kernel
def looked_up_kernel(X: fx.Tensor, Y: fx.Tensor):
    Y[fx.thread_idx.x] = X[0] + TABLE[7]


@fly.jit
def looked_up(X: fx.Tensor, Y: fx.Tensor):
    looked_up_kernel(X, Y).launch(grid=1, block=64)


@fly.kernel
def wild_kernel(X: fx.Tensor, Y: fx.Tensor):
    Y[fx.thread_idx.x] = X[fx.thread_idx.x]


@fly.jit
def wild(X: fx.Tensor, Y: fx.Tensor):
    wild_kernel(X, Y).launch(grid=1, block=64)
"""


def numbers(n: int = 100) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(n, dtype=np.float32), np.zeros(n, np.float32)


def warm(made, *more) -> tuple[np.ndarray, np.ndarray]:
    x, y = numbers()
    for _ in range(3):
        made.scale(x, y, *more)
    return x, y


# -- by itself: what of a function's dependencies native code can look at


def new_calls(found: DependencyHash, variables: tuple[str, ...] = ()) -> NativeCalls:
    return NativeCalls(found, None, variables)  # type: ignore[arg-type]
