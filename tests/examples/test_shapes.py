"""The examples for data of any size, at ragged, tiny, empty and random sizes: NumPy's results in
float64. Special values are where the docstrings of the examples say what becomes of them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from chosen_targets import having, some
from fly_common.errors import InputError
from fly_run.devices.options import Options
from fly_target.registry import EMULATED
from fly_trace.session.load import find_entry, load_file
from hypothesis import given, settings
from hypothesis import strategies as st

import fly

sys.path.insert(0, str(Path(__file__).parent))
from example_cases import float64, softmax

EXAMPLES = Path(__file__).parents[2] / "examples"
ON_CPU = "sm_90a"  # by the device `cpu`
MFMA, WMMA = ("gfx9",), ("RDNA3", "RDNA4")


def example(file: str, entry: str) -> fly.call.function.JitFunction:
    path = str(EXAMPLES / file)
    return find_entry(load_file(path), path, entry)


@pytest.fixture(autouse=True)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call's target is the test's, and its device is what runs that."""
    target = request.node.callspec.params["target"]
    monkeypatch.setenv("FLY_TARGET", target)
    monkeypatch.setenv("FLY_DEVICE", "cpu" if target == ON_CPU else "emulator")


def on(usual: str, *traits: str) -> pytest.MarkDecorator:
    """Runs a test for one target; with FLY_TEST_TARGETS=every for all that have one of `traits`."""
    others = () if traits else (ON_CPU,)
    names = some((usual,), *(n for n in having(EMULATED, *traits) if n != usual), *others)
    return pytest.mark.parametrize("target", names)


def random(*size: int) -> np.random.Generator:
    return np.random.default_rng(size)


# -- softmax with an online maximum ----------------------------------------------------------------
def check_softmax(x: np.ndarray, rtol: float = 1e-5) -> None:
    y = example("online_softmax.py", "online_softmax")(x)
    with np.errstate(invalid="ignore", over="ignore"):
        np.testing.assert_allclose(y, softmax(x), rtol=rtol, atol=1e-37)


@on("gfx942")
@pytest.mark.parametrize(
    ("rows", "columns"), [(1, 1), (3, 2), (2, 63), (2, 64), (1, 256), (2, 257), (1, 5000), (0, 7)]
)
def test_softmax(target: str, rows: int, columns: int):
    check_softmax(random(rows, columns).standard_normal((rows, columns), np.float32) * 3)


@on("gfx1201")
def test_softmax_of_special_values(target: str):
    inf, largest = np.inf, np.finfo(np.float32).max
    x = np.zeros((8, 70), np.float32)
    x[0] = -inf
    x[1, 3] = inf
    x[2, 5] = np.nan
    x[3] = -largest
    x[4, :2] = largest, -largest
    x[5, 1:] = -inf
    x[6] = -inf
    x[6, 69] = -largest
    x[7, ::2] = -inf
    check_softmax(x)


# -- top-k -----------------------------------------------------------------------------------------
def check_top_k(x: np.ndarray, k: int) -> None:
    values, indices = example("top_k.py", "top_k")(x, k)
    # NaN first, then the greatest; a stable sort takes the lowest column first.
    keys = np.where(np.isnan(x), np.float64(-np.inf), -x.astype(np.float64))
    keys[np.isneginf(-keys) & ~np.isnan(x)] = np.inf
    order = np.lexsort((keys, ~np.isnan(x)), axis=1)[:, :k]
    np.testing.assert_array_equal(indices, order)
    found = np.take_along_axis(x, order, axis=1)
    np.testing.assert_array_equal(values.view(np.uint32), found.view(np.uint32))


def with_ties(rows: int, columns: int) -> np.ndarray:
    """Returns few different values, zeros of both signs, infinities, denormals and NaNs."""
    chance = random(rows, columns)
    x = chance.integers(-9, 9, (rows, columns)).astype(np.float32) / 4
    for value in (np.nan, -np.nan, np.inf, -np.inf, -0.0, 1e-42, -1e-42):
        x[chance.random(x.shape) < 0.05] = value
    return x


@on("gfx942")
@pytest.mark.parametrize(
    ("rows", "columns", "k"),
    [(1, 1, 1), (3, 2, 2), (2, 64, 32), (2, 129, 32), (1, 3000, 5), (0, 9, 5)],
)
def test_top_k(target: str, rows: int, columns: int, k: int):
    check_top_k(with_ties(rows, columns), k)


@on("gfx942")
@pytest.mark.parametrize(("columns", "k"), [(40, 0), (40, 33), (7, 8)])
def test_a_k_that_is_out_of_range(target: str, columns: int, k: int):
    with pytest.raises(InputError, match=f"k is {k}, "):
        example("top_k.py", "top_k")(with_ties(2, columns), k)


# -- prefix sums -----------------------------------------------------------------------------------
def check_prefix_sum(n: int) -> None:
    x = random(n).integers(-(2**31), 2**31, n).astype(np.int32)
    found = example("prefix_sum.py", "prefix_sum_i32")(x)
    np.testing.assert_array_equal(found, np.cumsum(x, dtype=np.int32))
    x = random(n).standard_normal(n, np.float32)
    found = example("prefix_sum.py", "prefix_sum_f32")(x)
    # Each sum is a tree of some depth over partial sums of about √n.
    np.testing.assert_allclose(found, np.cumsum(float64(x)), atol=1e-5 + 2e-7 * n)


@on("gfx942")
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 2047, 2048, 2049, 60_000])
def test_prefix_sum(target: str, n: int):
    check_prefix_sum(n)


@on("gfx1201")
def test_prefix_sum_of_special_values(target: str):
    x = np.ones(5000, np.float32)
    x[3000], x[4000] = np.inf, np.nan
    found = example("prefix_sum.py", "prefix_sum_f32")(x)
    np.testing.assert_array_equal(found, np.cumsum(x))


@pytest.mark.parametrize("target", ["gfx942"])
def test_prefix_sum_where_blocks_wait_for_others(target: str):
    """On several threads, blocks run at once, and look back at blocks that are not finished."""
    n = 500_000
    x = random(n).integers(-100, 100, n, dtype=np.int32)
    compiled = example("prefix_sum.py", "prefix_sum_i32").compile(target=target)
    found = compiled.run({"X": x}, options=Options(threads=4)).results
    np.testing.assert_array_equal(found, np.cumsum(x))


# -- products of matrices --------------------------------------------------------------------------
def check_gemm(entry: str, kind: str, m: int, n: int, k: int) -> None:
    chance = random(m, n, k)
    a, b = (chance.standard_normal((rows, k), np.float32).astype(kind) for rows in (m, n))
    c = example("pipelined_gemm.py", entry)(a, b)
    np.testing.assert_allclose(c, float64(a) @ float64(b).T, rtol=1e-5, atol=1e-4)


SIZES = [(1, 1, 1), (128, 128, 32), (150, 130, 104), (129, 5, 33), (7, 140, 95), (3, 3, 0)]
sizes = pytest.mark.parametrize(("m", "n", "k"), SIZES)


@on("gfx90a")
@sizes
def test_gemm_with_fma(target: str, m: int, n: int, k: int):
    check_gemm("pipelined_gemm_fma", "f4", m, n, k)


@on("gfx942", *MFMA)
@sizes
def test_gemm_with_mfma(target: str, m: int, n: int, k: int):
    check_gemm("pipelined_gemm_mfma", "f2", m, n, k)


@on("gfx1100", *WMMA)
@sizes
def test_gemm_with_wmma(target: str, m: int, n: int, k: int):
    check_gemm("pipelined_gemm_wmma", "f2", m, n, k)


# -- attention -------------------------------------------------------------------------------------
def attention_of(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Query by query, from the definition."""
    q, k, v = (float64(a) for a in (q, k, v))
    o = np.empty_like(q)
    shared = q.shape[1] // k.shape[1]
    for b, h, i in np.ndindex(q.shape[:3]):
        scores = k[b, h // shared, : i + 1] @ q[b, h, i] / np.sqrt(q.shape[3])
        weights = np.exp(scores - scores.max())
        o[b, h, i] = weights / weights.sum() @ v[b, h // shared, : i + 1]
    return o


def check_attention(target: str, batches: int, heads: int, shared: int, length: int, d: int):
    chance = random(batches, heads, shared, length, d)
    q, k, v = (
        2 * chance.standard_normal((batches, h, length, d), np.float32).astype(np.float16)
        for h in (heads, heads // shared, heads // shared)
    )
    kind = "mfma" if having((target,), *MFMA) else "wmma"
    o = example("flash_attention.py", f"flash_attention_{kind}")(q, k, v, d)
    assert o.dtype == np.float16
    np.testing.assert_allclose(o, attention_of(q, k, v), rtol=2e-3, atol=4e-3)


ATTENTION = [(1, 1, 1, 1, 64), (2, 2, 1, 64, 64), (1, 3, 3, 65, 128), (1, 1, 1, 193, 128)]
shapes = pytest.mark.parametrize(("batches", "heads", "shared", "length", "d"), ATTENTION)


@on("gfx942", *MFMA)
@shapes
def test_attention_with_mfma(target, batches, heads, shared, length, d):
    check_attention(target, batches, heads, shared, length, d)


@on("gfx1100", *WMMA)
@shapes
def test_attention_with_wmma(target, batches, heads, shared, length, d):
    check_attention(target, batches, heads, shared, length, d)


# -- random sizes ----------------------------------------------------------------------------------
few = settings(max_examples=12)


@pytest.mark.parametrize("target", ["gfx942"])
@few
@given(st.integers(0, 5), st.integers(1, 900))
def test_softmax_of_random_sizes(target: str, rows: int, columns: int):
    check_softmax(random(rows, columns).standard_normal((rows, columns), np.float32) * 3)


@pytest.mark.parametrize("target", ["gfx942"])
@few
@given(st.integers(0, 3), st.integers(5, 900))
def test_top_k_of_random_sizes(target: str, rows: int, columns: int):
    check_top_k(with_ties(rows, columns), 5)


@pytest.mark.parametrize("target", ["gfx942"])
@few
@given(st.integers(0, 9000))
def test_prefix_sum_of_random_lengths(target: str, n: int):
    check_prefix_sum(n)


@pytest.mark.parametrize("target", ["gfx942"])
@few
@given(st.integers(1, 200), st.integers(1, 200), st.integers(0, 100))
def test_gemm_of_random_sizes(target: str, m: int, n: int, k: int):
    check_gemm("pipelined_gemm_mfma", "f2", m, n, k)


@pytest.mark.parametrize("target", ["gfx942"])
@few
@given(st.integers(1, 2), st.integers(1, 2), st.integers(1, 3), st.integers(1, 150))
def test_attention_of_random_sizes(target: str, batches: int, groups: int, shared: int, n: int):
    check_attention(target, batches, groups * shared, shared, n, 64)
