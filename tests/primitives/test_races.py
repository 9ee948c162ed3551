"""No primitive has a race on shared memory: neither by itself, nor with the one after it."""

from __future__ import annotations

import numpy as np
import pytest
from fly_common.errors import Fault

import fly.expr as fx
from primitives import run

pytestmark = pytest.mark.heavy


@pytest.fixture(autouse=True)
def sanitized(checks, monkeypatch):
    monkeypatch.setenv("FLY_PLUGINS", "sanitize")


def add(a, b):
    return (a[0] + b[0], a[1] + b[1])


CALLS = {
    "reduce": lambda x: [fx.block.reduce(x)],
    "reduce_objects": lambda x: [fx.block.reduce((x[0], x[1]), add)[0]],
    "scan": lambda x: fx.block.inclusive_scan(x),
    "prefix": lambda x: fx.block.exclusive_scan(x, prefix=lambda total: total + 1),
    "pairs": lambda x: fx.block.sort(x, [(one, one) for one in x], end_bit=5)[0],
    "top_k": lambda x: fx.block.top_k(x, 2, x)[1],
    "exchange": lambda x: fx.block.striped_to_blocked(x),
    "histogram": lambda x: [fx.block.histogram([one & 7 for one in x], 8)[3]],
}


# Two waves; three groups of 32 threads.
@pytest.mark.parametrize(("target", "block"), [("gfx942", 128), ("gfx1100", 96)])
@pytest.mark.parametrize("name", CALLS)
def test_repeated_calls(name, target, block):
    x = np.random.default_rng(1).integers(0, 99, 2 * block).astype("i4")
    y = np.zeros_like(x)

    def body(A, B):
        items = fx.block.load(A, 2)
        total = fx.Int32(0)
        for _ in range(2):
            for one in CALLS[name](items):
                total = total + one
        fx.block.store(B, [total, total])

    run(body, x, y, block=block, target=target)
    assert y.any()


@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
def test_a_sort_by_a_network(target):
    x = np.random.default_rng(2).integers(0, 99, 128).astype("i4")
    y = np.zeros_like(x)

    def body(A, B):
        key = A[fx.thread_idx.x]
        for _ in range(2):
            key = 99 - fx.block.sort(key)
        B[fx.thread_idx.x] = key

    run(body, x, y, block=128, target=target)
    np.testing.assert_array_equal(y, np.sort(x)[::-1])


def test_a_race_would_be_found():
    x = np.arange(256, dtype="i4")
    y = np.zeros_like(x)

    def body(A, B):
        own = A[fx.thread_idx.x]
        first = fx.block.reduce(own, barrier=False)
        B[fx.thread_idx.x] = first + fx.block.reduce(own + 1)

    with pytest.raises(Fault, match="race on shared memory"):
        run(body, x, y, block=256, target="gfx942")
