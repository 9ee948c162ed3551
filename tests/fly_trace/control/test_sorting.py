"""The networks that sort dynamic values: what sorts all lists of zeros and ones sorts all lists."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from fly_trace.control.calls.sorting import merges, neighbours


@pytest.mark.parametrize("count", range(15))
@pytest.mark.parametrize("network", [merges, neighbours])
def test_a_network_sorts_zeros_and_ones(network, count: int) -> None:
    given = np.array(list(itertools.product((0, 1), repeat=count)), dtype=np.int8)
    given = given.reshape(2**count, count)
    expected = np.sort(given, axis=1)
    for low, high in network(count):
        assert low < high
        x, y = given[:, low].copy(), given[:, high].copy()
        given[:, low], given[:, high] = np.minimum(x, y), np.maximum(x, y)
    np.testing.assert_array_equal(given, expected)


@pytest.mark.parametrize("count", [16, 17, 31, 33, 64, 100])
def test_longer_lists(count: int) -> None:
    given = np.random.default_rng(count).integers(0, 50, (200, count))
    expected = np.sort(given, axis=1)
    for low, high in merges(count):
        x, y = given[:, low].copy(), given[:, high].copy()
        given[:, low], given[:, high] = np.minimum(x, y), np.maximum(x, y)
    np.testing.assert_array_equal(given, expected)
    assert len(list(merges(count))) < len(list(neighbours(count)))
