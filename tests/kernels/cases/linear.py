"""Matrices: products, factors, inverses."""

from __future__ import annotations

import numpy as np

from kernels.case import Launch, Near, blocks, case

Random = np.random.Generator
HALF_ULP = {np.dtype("f4"): 2.0**-24, np.dtype("f8"): 2.0**-53}  # relative


@case("gemm")
def gemm_tiled(rng: Random) -> Launch:
    m, n, k = 45, 37, 51
    a, b = rng.standard_normal((m, k), "f4"), rng.standard_normal((k, n), "f4")
    wide = a.astype("f8"), b.astype("f8")
    # k fused steps, each rounded once: k halves of an ulp of the sum of magnitudes.
    bound = k * HALF_ULP[a.dtype] * 1.01 * (abs(wide[0]) @ abs(wide[1]))
    return Launch(
        [a, b, np.zeros((m, n), "f4"), np.int32(m), np.int32(n), np.int32(k)],
        grid=(3, 3, 1),
        block=(16, 16, 1),
        expected={2: Near(wide[0] @ wide[1], bound)},
    )


@case("gemm")
def gemv_quantised(rng: Random) -> Launch:
    rows, columns = 9, 600
    w = rng.integers(-128, 128, (rows, columns)).astype("i1")
    x = rng.standard_normal(columns).astype("f2")
    scale = rng.random(rows).astype("f2")
    quads = (w.astype("f4") * x.astype("f4")).reshape(rows, -1, 4)
    part = np.zeros((rows, 64), "f4")
    for i in range(quads.shape[1]):
        for j in range(4):
            part[:, i % 64] += quads[:, i, j]
    while part.shape[1] > 1:
        part = part[:, : part.shape[1] // 2] + part[:, part.shape[1] // 2 :]
    return Launch(
        [w, x, scale, np.zeros(rows, "f4"), np.int32(columns // 4)],
        **blocks(rows * 64, 64),
        expected={3: scale.astype("f4") * part[:, 0]},
    )


@case("gemm")
def lu(rng: Random) -> Launch:
    a = rng.standard_normal((5, 8, 8)) + 6 * np.eye(8)
    wanted = a.copy()
    for k in range(7):
        wanted[:, k + 1 :, k] /= wanted[:, k, k, None]
        wanted[:, k + 1 :, k + 1 :] -= wanted[:, k + 1 :, k, None] * wanted[:, k, None, k + 1 :]
    product = (np.tril(wanted, -1) + np.eye(8)) @ np.triu(wanted)
    np.testing.assert_allclose(product, a, rtol=0, atol=1e-12)
    return Launch([a], grid=(5, 1, 1), block=(8, 8, 1), expected={0: wanted})


@case("gemm")
def inverse(rng: Random) -> Launch:
    n = 50
    a = rng.standard_normal((n, 4, 4)) + 3 * np.eye(4)
    # The product of three entries and 1/det, each rounded: an ample 200 half ulps of the cofactors'
    # magnitudes, which are at most 6 |a|³.
    bound = 200 * HALF_ULP[a.dtype] * 6 * abs(a).max((1, 2)) ** 3 / abs(np.linalg.det(a))
    bound = (bound * (1 + 24 * abs(a).max((1, 2)) ** 4 / abs(np.linalg.det(a))))[:, None, None]
    return Launch(
        [a, np.zeros_like(a), np.int32(n)],
        **blocks(n, 64),
        expected={1: Near(np.linalg.inv(a), bound)},
    )
