"""The example of a product with block scales, in strict mode, against NumPy."""

import numpy as np
import pytest

from examples.cdna5.mx_gemm import mx_gemm

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


@pytest.mark.parametrize("sizes", [(64, 64, 128), (70, 100, 384), (1, 3, 256)], ids=str)
def test_mx_gemm(monkeypatch, sizes) -> None:
    import ml_dtypes

    monkeypatch.setenv("FLY_TARGET", "gfx1250")
    monkeypatch.setenv("FLY_STRICT", "1")
    m, n, k = sizes
    rng = np.random.default_rng(m)
    a = rng.integers(-6, 7, (m, k)).astype(ml_dtypes.float8_e4m3fn)
    codes = rng.integers(0, 16, (n, k))
    b = (codes[:, 0::2] | codes[:, 1::2] << 4).astype(np.uint8)
    exponents = [rng.integers(124, 131, (rows, k // 32)).astype(np.uint8) for rows in (m, n)]
    words = [one.view(np.int32) for one in (a, exponents[0], b, exponents[1])]
    c = np.full((m, n), np.nan, np.float32)
    mx_gemm(*words, c)
    scales = [np.repeat(2.0 ** (one.astype(float) - 127), 32, 1) for one in exponents]
    left = a.astype(float) * scales[0]
    right = np.where(codes < 8, 1, -1) * E2M1[codes & 7] * scales[1]
    assert (np.abs(c - left @ right.T) <= 2.0**-20 * (np.abs(left) @ np.abs(right).T)).all()
