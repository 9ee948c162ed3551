"""Y = softmax(X) along rows of any length, one workgroup per row, with an online maximum.

One pass over a row finds both its maximum and its sum of exponentials: when the maximum grows, the
sum so far is scaled down (Milakov and Gimelshein, "Online normalizer calculation for softmax",
arXiv:1805.02867). X and Y are M×N of f32. A row with NaN or +inf, and one of nothing but -inf,
become NaN, as in torch.softmax.
"""

from typing import NamedTuple

import fly
import fly.expr as fx

BLOCK = 256
N = fx.sym_int32("N")  # columns are counted in 32 bits; launches check that they fit
LOWEST = -3.4028234663852886e38  # the lowest f32: LOWEST - LOWEST is 0, unlike -inf - -inf


class Normalizer(NamedTuple):
    """The maximum of some numbers, and the sum of exp(x - maximum) over them."""

    maximum: fx.Float32
    total: fx.Float32

    def merge(self, other):
        """Returns the normalizer of both sets of numbers."""
        maximum = fx.maximum(self.maximum, other.maximum)
        own = self.total * fx.exp(self.maximum - maximum)
        others = other.total * fx.exp(other.maximum - maximum)
        return Normalizer(maximum, own + others)


@fly.kernel
def online_softmax_kernel(X: fx.Tensor, Y: fx.Tensor):
    row, columns = fx.block_idx.x, X.shape[1]
    normalizer = Normalizer(LOWEST, 0.0)
    for j in range(fx.thread_idx.x, columns, BLOCK):
        normalizer = normalizer.merge(Normalizer(X[row, j], 1.0))
    maximum, total = fx.block.reduce(normalizer, Normalizer.merge)
    for j in range(fx.thread_idx.x, columns, BLOCK):
        Y[row, j] = fx.exp(X[row, j] - maximum) / total


@fly.jit
def online_softmax(X: fx.Tensor[fx.Float32, "M", N]):
    Y = fx.empty_like(X)
    online_softmax_kernel(X, Y).launch(grid=X.shape[0], block=BLOCK)
    return Y


def main():
    import numpy as np

    x = np.random.default_rng(30).standard_normal((37, 781), dtype=np.float32) * 3
    exact = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    exact /= exact.sum(1, keepdims=True)
    np.testing.assert_allclose(online_softmax(x), exact, rtol=2e-6)
    print(f"online_softmax: {x.shape[0]}x{x.shape[1]}, within 2e-6 of NumPy's float64")


if __name__ == "__main__":
    main()
