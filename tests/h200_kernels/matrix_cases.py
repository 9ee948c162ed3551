"""Cases of `matrices.py`: whole numbers, of which products and sums are exact."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from h200_kernels.case import Case, Values

KERNELS = Path(__file__).parent / "matrices.py"


def whole(dtype: type, k: int, result: type) -> Values:
    random = np.random.default_rng(k)
    a, b = (random.integers(-9, 10, (rows, k)).astype(dtype) for rows in (16, 8))
    return {"A": a, "B": b, "C": np.zeros((16, 8), result)}


def product(values: Values) -> Mapping[str, np.ndarray]:
    a, b = values["A"].astype(np.int64), values["B"].astype(np.int64)
    return {"C": (a @ b.T).astype(values["C"].dtype)}


CASES = (
    Case(KERNELS, "product_f16", lambda: whole(np.float16, 16, np.float32), product),
    Case(KERNELS, "product_f32", lambda: whole(np.float32, 8, np.float32), product),
    Case(KERNELS, "product_i8", lambda: whole(np.int8, 32, np.int32), product),
    Case(KERNELS, "run_matrices", lambda: whole(np.float16, 16, np.float32), product),
)
