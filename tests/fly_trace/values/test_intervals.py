"""What is known of an integer while tracing holds for what NumPy computes, and is not less."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from fly_trace.control.loops import dynamic, trips
from fly_trace.values import value_ranges
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1]))
from trace_helpers import trace_source

SOURCE = """\
import fly
import fly.expr as fx

@fly.kernel
def kernel(A: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
    m = A.shape[0]
    for i in range({start}, {stop}, 1000):
        A[0] = 1.0

@fly.jit
def entry(A: fx.Tensor[fx.Float32, fx.sym_int32("m")], n: fx.Int32):
    kernel(A, n).launch(grid=1, block=96)
"""
THREADS = np.arange(96, dtype=np.int32)


def of_bounds(start: str, stop: str, folder: Path, monkeypatch) -> list[value_ranges.Interval]:
    """What the tracer finds of a loop's bounds."""
    found = []

    def numbers(builder, bound, ssa, dtype):
        found.append(value_ranges.interval(builder, ssa))
        return dtype.range  # so that the start is asked for too

    with monkeypatch.context() as patched:
        patched.setattr(trips, "_numbers", numbers)
        trace_source(SOURCE.format(start=start, stop=stop), folder)
    stop_found, start_found = found
    return [start_found, stop_found]


I32 = (-(2**31), 2**31 - 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("t", (0, 95)),
        ("m", (0, 2**31 - 1)),
        ("n", I32),
        ("t * 4 + 3", (3, 383)),
        ("5 - t", (-90, 5)),
        ("t * -2", (-190, 0)),
        ("n % 64", (0, 63)),
        ("t // 32", (0, 2)),
        ("(t - 8) >> 2", (-2, 21)),
        ("fx.maximum(n, 7)", (7, 2**31 - 1)),
        ("fx.minimum(t, m)", (0, 95)),
        ("m + 1", I32),
        ("t * 50000000", I32),
        ("fx.block_idx.x", (0, 2**32 // 96 - 1)),
        ("fx.lane_id() + fx.num_warp_threads()", (32, 127)),
        ("fx.block_dim.x * fx.block_idx.y", I32),
        ("fx.Int32(fx.Int64(t) + 1)", (1, 96)),
        ("fx.Int32(fx.Uint8(t))", (0, 95)),
        ("fx.Int32(fx.Uint8(t * 2))", I32),
    ],
)
def test_known(text: str, expected: value_ranges.Interval, tmp_path: Path, monkeypatch) -> None:
    assert of_bounds(text, "n", tmp_path, monkeypatch) == [expected, I32]


ASSUMED = """\
    n = fx.assume(n, least=3, most=1000)
    for i in range(n, 7):
        A[0] = 1.0
    if t < 5:
        A[1] = fx.Float32(fx.assume(m, most=64))
    for i in range(m, 7):
        A[0] = 1.0"""


def test_what_is_assumed(tmp_path: Path, monkeypatch) -> None:
    """From there on; in a branch it says nothing of what follows the branch."""
    found = starts(ASSUMED, tmp_path, monkeypatch)
    assert found == [(3, 1000), (0, 2**31 - 1)]


def starts(loops_text: str, folder: Path, monkeypatch) -> list[value_ranges.Interval]:
    """The intervals of the starts of a kernel's loops."""
    found = []
    trips_of = dynamic.trips_of

    def watched(builder, bounds, dtype):
        start = builder.ssa(trips.convert(bounds.start, dtype))
        found.append(value_ranges.interval(builder, start))
        return trips_of(builder, bounds, dtype)

    with monkeypatch.context() as patched:
        patched.setattr(dynamic, "trips_of", watched)
        head, tail = SOURCE.split("    for i")[0], SOURCE.split("1.0")[1]
        trace_source(head + loops_text + tail, folder)
    return found


def expressions() -> st.SearchStrategy[str]:
    numbers = st.one_of(st.integers(-300, 300), st.sampled_from([2**30, 2**31 - 1, -(2**31)]))
    leaves = st.one_of(st.just("t"), st.just("n"), numbers.map(lambda n: f"fx.Int32({n})"))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from("+-*&"), inner).map(lambda x: "({} {} {})".format(*x)),
            st.tuples(inner, st.integers(0, 9)).map(lambda x: f"({x[0]} >> {x[1]})"),
            st.tuples(st.sampled_from(["maximum", "minimum"]), inner, inner).map(
                lambda x: "fx.{}({}, {})".format(*x)
            ),
        ),
        max_leaves=6,
    )


class Numpy:
    """`fx` of the expressions, in NumPy's wrapping arithmetic."""

    Int32 = np.int32
    maximum = staticmethod(np.maximum)
    minimum = staticmethod(np.minimum)


@settings(max_examples=25, deadline=None)
@given(text=expressions(), n=st.integers(*I32))
def test_holds_what_is_computed(text: str, n: int, tmp_path_factory) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        folder = tmp_path_factory.mktemp("intervals")
        (low, high), _ = of_bounds(text, "n", folder, monkeypatch)
    with np.errstate(over="ignore"):
        values = eval(text, {"t": THREADS, "n": np.int32(n), "fx": Numpy})
    assert np.all((low <= values) & (values <= high)), text


NESTED = """\
    for i in range({}, {}, {}):
        for k in range(i, 7):
            A[0] = 1.0"""


def test_of_a_loop_s_counter(tmp_path: Path, monkeypatch) -> None:
    """Between the bounds, where it counts as unsigned too; unknown where the bounds are."""
    outer = ("t + 1", "50", "8"), ("t", "m", "8"), ("n", "m", "1"), ("t - 1", "m", "8")
    text = "\n".join(NESTED.format(*bounds) for bounds in outer)
    high = 2**31 - 1
    found = starts(text, tmp_path, monkeypatch)
    assert found[1::2] == [(1, 49), (0, high - 1), (I32[0], high - 1), I32]
