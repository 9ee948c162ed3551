"""How often a function's branches and loops are traced again."""

import sys
from pathlib import Path

import pytest
from fly_common.errors import InputError
from fly_trace.control.carried import in_place

sys.path.insert(0, str(Path(__file__).parents[1]))
from trace_helpers import trace_source

KERNEL = """
import fly
import fly.expr as fx


def change(items):
    items[0] += 1.0


@fly.kernel
def kernel(A: fx.Tensor, n: fx.Int32):
    {}


@fly.jit
def entry(A: fx.Tensor[fx.Float32, 4], n: fx.Int32):
    kernel(A, n).launch(grid=1, block=1)
"""
TYPE = """s = 0
    for i in range(n):
        s += A[i]
    A[0] = s"""
CONTAINER = """items = [A[0]]
    if n > 2:
        change(items)
    A[0] = items[0]"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (TYPE, "`s` is the Python int 0 before the loop, and a dynamic f32 at the end"),
        (CONTAINER, "the assignment modifies a Python list created outside this dynamic branch"),
    ],
)
def test_no_more_than_the_limit(body, message, tmp_path, monkeypatch):
    trace_source(KERNEL.format(body), tmp_path)
    monkeypatch.setattr(in_place, "MOST_TRACED_AGAIN", 0)
    with pytest.raises(InputError, match=message):
        trace_source(KERNEL.format(body), tmp_path)
