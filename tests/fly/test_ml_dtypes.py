"""bf16 arrays of the package ml_dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from fly.call.arrays import view


def test_bf16_travels_as_its_bits():
    array = np.ones(3, ml_dtypes.bfloat16)
    seen = view(array, "A")
    assert seen.dtype == "bf16"
    assert seen.data.tolist() == [0x3F80] * 3
    assert np.shares_memory(seen.data, array)
