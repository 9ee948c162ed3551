"""Y = (X - mean) / sqrt(var + eps) · gamma + beta along rows, one workgroup per row."""

import fly
import fly.expr as fx

BLOCK = 256
N = fx.sym_int32("N")  # columns are counted in 32 bits; launches check that they fit


def block_sum(scratch, value):
    """Returns the sum of `value` over the block to every work item, by a tree in LDS."""
    tid = fx.thread_idx.x
    scratch[tid] = value
    fx.barrier()
    for step in fx.range_constexpr(8):
        half = BLOCK >> (step + 1)
        if tid < half:
            scratch[tid] = scratch[tid] + scratch[tid + half]
        fx.barrier()
    total = scratch[0]
    fx.barrier()
    return total


@fly.kernel
def layernorm_kernel(
    X: fx.Tensor, gamma: fx.Tensor, beta: fx.Tensor, Y: fx.Tensor, eps: fx.Float32
):
    row, tid = fx.block_idx.x, fx.thread_idx.x
    columns = X.shape[1]
    count = fx.Float32(columns)
    scratch = fx.shared_array(fx.Float32, BLOCK)

    total = fx.Float32(0)
    for j in range(tid, columns, BLOCK):
        total = total + X[row, j]
    mean = block_sum(scratch, total) / count

    # Two passes: the sum of squared differences avoids cancellation.
    squares = fx.Float32(0)
    for j in range(tid, columns, BLOCK):
        difference = X[row, j] - mean
        squares = squares + difference * difference
    scale = fx.rsqrt(block_sum(scratch, squares) / count + eps)

    for j in range(tid, columns, BLOCK):
        Y[row, j] = (X[row, j] - mean) * scale * gamma[j] + beta[j]


@fly.jit
def layernorm(
    X: fx.Tensor[fx.Float32, "M", N],
    gamma: fx.Tensor[fx.Float32, N],
    beta: fx.Tensor[fx.Float32, N],
    eps: fx.Float32 = 1e-5,
):
    Y = fx.empty_like(X)
    layernorm_kernel(X, gamma, beta, Y, eps).launch(grid=X.shape[0], block=BLOCK)
    return Y


def main():
    import numpy as np

    random = np.random.default_rng(4)
    x = random.standard_normal((29, 1000), dtype=np.float32) * 3 + 7
    gamma, beta = random.standard_normal((2, 1000), dtype=np.float32)
    y = layernorm(x, gamma, beta)
    wide = x.astype(np.float64)
    mean, variance = wide.mean(1, keepdims=True), wide.var(1, keepdims=True)
    expected = (wide - mean) / np.sqrt(variance + 1e-5) * gamma + beta
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)
    print(f"layernorm: {x.shape[0]}x{x.shape[1]}, within 1e-5 of NumPy's float64")


if __name__ == "__main__":
    main()
