"""Counts of integers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fly_common.errors import UsageError

from fly.kernels import histogram

KINDS = [np.int8, np.uint8, np.int16, np.int32, np.int64]


@pytest.mark.parametrize("size", [0, 1, 5, 255, 2048, 2049, 10_000, 70_001])
@pytest.mark.parametrize("bins", [1, 10, 256, 9000])
def test_counts(target, size, bins):
    kind = KINDS[size % len(KINDS)]
    limits = np.iinfo(kind)
    x = np.random.default_rng(size).integers(
        max(limits.min, -20), min(limits.max, bins + 20), size, kind, endpoint=True
    )
    inside = x[(x >= 0) & (x < bins)]
    np.testing.assert_array_equal(histogram(x, bins), np.bincount(inside, minlength=bins))


def test_of_torch(target):
    x = torch.randint(0, 12, (20, 30), generator=torch.Generator().manual_seed(1))
    exact = torch.bincount(x.reshape(-1), minlength=12).int()
    torch.library.opcheck(histogram.torch, (x, 12))
    compiled = torch.compile(lambda x: histogram(x, 12), fullgraph=True)
    for found in (histogram(x, 12), histogram(x.t(), 12), compiled(x)):
        torch.testing.assert_close(found, exact)


def test_strict(strict, target):
    test_counts(target, 255, 10)


def test_refused(target):
    for bins in (0, 2**31):
        with pytest.raises(UsageError, match=f"bins is {bins}, not from 1 to 2147483647"):
            histogram(np.zeros(3, np.int32), bins)
    with pytest.raises(UsageError, match="x is of float32, and must be of int8, uint8"):
        histogram(np.zeros(3, np.float32), 4)
    with pytest.raises(UsageError, match=r"histogram takes bins as an integer, not 2\.5"):
        histogram(np.zeros(3, np.int32), 2.5)
