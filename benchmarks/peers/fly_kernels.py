"""The kernels of examples/ as the peers' are called: with an array of the caller's for the result.

benchmarks/compile_time.py and launch.py measure these functions. Those of the examples allocate
their results, which the peers' do not.
"""

import os
import sys

import fly
import fly.expr as fx

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "examples"))
import layernorm as layernorms  # type: ignore[import-not-found]
import row_softmax as softmaxes  # type: ignore[import-not-found]
import vector_add as additions  # type: ignore[import-not-found]

N = fx.sym_int32("N")


@fly.jit
def vector_add(
    A: fx.Tensor[fx.Float32, "n"],
    B: fx.Tensor[fx.Float32, "n"],
    C: fx.Tensor[fx.Float32, "n"],
):
    n, block = A.shape[0], additions.BLOCK
    additions.vector_add_kernel(A, B, C, n).launch(grid=fx.ceildiv(n, block), block=block)


@fly.jit
def softmax(X: fx.Tensor[fx.Float32, "M", N], Y: fx.Tensor[fx.Float32, "M", N]):
    softmaxes.softmax_tree_kernel(X, Y).launch(grid=X.shape[0], block=softmaxes.BLOCK)


@fly.jit
def layernorm(
    X: fx.Tensor[fx.Float32, "M", N],
    gamma: fx.Tensor[fx.Float32, N],
    beta: fx.Tensor[fx.Float32, N],
    Y: fx.Tensor[fx.Float32, "M", N],
    eps: fx.Float32 = 1e-5,
):
    kernel = layernorms.layernorm_kernel(X, gamma, beta, Y, eps)
    kernel.launch(grid=X.shape[0], block=layernorms.BLOCK)
