"""What the language says of lanes, LDS, atomics, small types and maths, run on the emulator."""

# ruff: noqa: F821  (extents are named by strings)

import math

import numpy as np
import pytest

import fly
import fly.expr as fx

LANES = 64


@fly.kernel
def shuffle_kernel(
    X: fx.Tensor, Y: fx.Tensor, mode: fx.Constexpr[str], by: fx.Int32, width: fx.Constexpr[int]
):
    lane = fx.thread_idx.x
    move = {
        "xor": fx.shuffle_xor,
        "up": fx.shuffle_up,
        "down": fx.shuffle_down,
        "idx": fx.shuffle_idx,
    }
    Y[lane] = move[mode](X[lane], by, width)


@fly.jit
def shuffle(
    X: fx.Tensor, Y: fx.Tensor, mode: fx.Constexpr[str], by: fx.Int32, width: fx.Constexpr[int]
):
    shuffle_kernel(X, Y, mode, by, width).launch(grid=1, block=LANES)


def source_lane(mode, lane, by, width):
    group = lane - lane % width
    other = {"xor": lane ^ by, "up": lane - by, "down": lane + by, "idx": group + by % width}[mode]
    return other if group <= other < group + width else lane


@pytest.mark.parametrize("dtype", ["f4", "i4", "f2", "i1", "u2", "f8", "i8"])
def test_shuffle_types(dtype):
    x = (np.arange(LANES) * 3 - 50).astype(dtype)
    y = np.zeros_like(x)
    shuffle(x, y, "xor", 5, 64)
    np.testing.assert_array_equal(y, x[[lane ^ 5 for lane in range(LANES)]])


@pytest.mark.parametrize("mode", ["xor", "up", "down", "idx"])
@pytest.mark.parametrize(("by", "width"), [(1, 64), (3, 16), (7, 8), (33, 64), (20, 16), (64, 64)])
def test_shuffle_modes(mode, by, width):
    x = np.arange(LANES, dtype=np.int32) + 100
    y = np.zeros_like(x)
    shuffle(x, y, mode, by, width)
    expected = [x[source_lane(mode, lane, by, width)] for lane in range(LANES)]
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("target", ["gfx1100", "gfx1201"])
@pytest.mark.parametrize("mode", ["xor", "up", "down", "idx"])
def test_shuffle_modes_where_waves_have_32_lanes(mode, target, monkeypatch):
    monkeypatch.setenv("FLY_TARGET", target)
    x = np.arange(LANES, dtype=np.int32) + 100
    for by, width in ((1, 32), (3, 16), (7, 8), (17, 32), (12, 8), (32, 32)):
        y = np.zeros_like(x)
        shuffle(x, y, mode, by, width)
        expected = [x[source_lane(mode, lane, by, width)] for lane in range(LANES)]
        np.testing.assert_array_equal(y, expected)


@fly.kernel
def far_kernel(X: fx.Tensor, Y: fx.Tensor):
    lane = fx.thread_idx.x
    Y[0, lane] = fx.shuffle_xor(X[lane], 20, 16)
    Y[1, lane] = fx.shuffle_xor(X[lane], 32)
    Y[2, lane] = fx.shuffle_xor(X[lane], 64)


@fly.jit
def far(X: fx.Tensor, Y: fx.Tensor):
    far_kernel(X, Y).launch(grid=1, block=LANES)


@pytest.mark.parametrize(("target", "size"), [("gfx942", 64), ("gfx1100", 32)])
def test_an_offset_beyond_the_group(target, size, monkeypatch):
    monkeypatch.setenv("FLY_TARGET", target)
    x = np.arange(LANES, dtype=np.int32) + 100
    y = np.zeros((3, LANES), np.int32)
    far(x, y)
    for row, (by, width) in enumerate(((20, 16), (32, size), (64, size))):
        expected = [x[source_lane("xor", lane, by, width)] for lane in range(LANES)]
        np.testing.assert_array_equal(y[row], expected)


@fly.kernel
def wave_kernel(X: fx.Tensor, Y: fx.Tensor):
    i, lanes = fx.thread_idx.x, fx.num_warp_threads()
    offset = fx.Int32(1)
    total = X[i]
    while offset < lanes:
        total = total + fx.shuffle_xor(total, offset)
        offset = offset * 2
    Y[i, 0] = total
    Y[i, 1] = fx.shuffle_down(X[i], 1)
    Y[i, 2] = lanes
    Y[i, 3] = fx.lane_id()


@fly.jit
def waves(X: fx.Tensor, Y: fx.Tensor):
    wave_kernel(X, Y).launch(grid=1, block=X.shape[0])


@pytest.mark.parametrize(
    ("target", "size"), [("gfx90a", 64), ("gfx942", 64), ("gfx1100", 32), ("gfx1201", 32)]
)
def test_a_whole_wave(target, size, monkeypatch):
    """Without a width a shuffle is among the target's wave, whose size is known where it runs."""
    monkeypatch.setenv("FLY_TARGET", target)
    x = np.arange(128, dtype=np.int32) ** 2
    y = np.zeros((128, 4), np.int32)
    waves(x, y)
    rows = x.reshape(-1, size)
    np.testing.assert_array_equal(y[:, 0].reshape(rows.shape), np.tile(rows.sum(1)[:, None], size))
    below = np.concatenate([rows[:, 1:], rows[:, -1:]], axis=1)
    np.testing.assert_array_equal(y[:, 1], below.ravel())
    assert (y[:, 2] == size).all()
    np.testing.assert_array_equal(y[:, 3], np.arange(128) % size)


@fly.kernel
def atomic_kernel(N: fx.Tensor, U: fx.Tensor, F: fx.Tensor, D: fx.Tensor):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    local = fx.shared_array(fx.Int32, 4)
    if fx.thread_idx.x < 4:
        local[fx.thread_idx.x] = 0
    fx.barrier()
    fx.atomic_add(N, 0, i)
    fx.atomic_min(N, 1, -i)
    fx.atomic_max(N, 2, i)
    fx.atomic_and(N, 3, ~(1 << (i & 3)))
    fx.atomic_or(N, 4, 1 << (i & 15))
    fx.atomic_xor(N, 5, i)
    fx.atomic_max(U, 0, fx.Uint64(0) - fx.Uint64(i))
    fx.atomic_min(U, 1, fx.Uint64(i) + 7)
    fx.atomic_add(F, 0, 0.5)
    fx.atomic_add(D, 0, 0.25)
    fx.atomic_add(local, i & 3, 1)
    fx.barrier()
    if fx.thread_idx.x == 0:
        for k in fx.range_constexpr(4):
            fx.atomic_add(N, 6, local[k])
    won = fx.atomic_cas(N, 7, 0, i + 1)
    if won == 0:
        fx.atomic_xchg(N, 8, i + 1)


@fly.jit
def atomics(N: fx.Tensor[fx.Int32, 9], U: fx.Tensor[fx.Uint64, 2], F: fx.Tensor[fx.Float32, 1],
            D: fx.Tensor[fx.Float64, 1]):  # fmt: skip
    atomic_kernel(N, U, F, D).launch(grid=3, block=64)


def test_atomics():
    ints = np.zeros(9, np.int32)
    ints[3] = 0xFF
    unsigned = np.array([1, 2**63], np.uint64)
    f, d = np.zeros(1, np.float32), np.zeros(1)
    atomics(ints, unsigned, f, d)
    n = np.arange(192)
    xored = int(np.bitwise_xor.reduce(n))
    assert ints[:7].tolist() == [n.sum(), -191, 191, 0xF0, 0xFFFF, xored, 192]
    assert 1 <= ints[7] <= 192
    assert ints[8] == ints[7]
    assert unsigned.tolist() == [2**64 - 1, 7]
    assert (f[0], d[0]) == (96.0, 48.0)


@fly.kernel
def small_kernel(H: fx.Tensor, B: fx.Tensor, C: fx.Tensor, M: fx.Tensor, L: fx.Tensor, n: fx.Int32):
    i = fx.thread_idx.x
    spare = fx.dynamic_shared(fx.Float32, (2, n))
    spare[1, i] = fx.Float32(H[i])
    fx.barrier()
    H[i] = H[i] * H[i] + 0.5
    M[i] = not M[i] or B[i] > 100
    B[i] = fx.Uint8(B[i] * 3)
    C[i] = C[i] // -7
    L[i, 0] = fx.Int64(spare[1, n - 1 - i])
    L[i, 1] = L[i, 1] << fx.Int64(i)


@fly.jit
def small(H: fx.Tensor, B: fx.Tensor, C: fx.Tensor, M: fx.Tensor, L: fx.Tensor):
    n = H.shape[0]
    small_kernel(H, B, C, M, L, n).launch(grid=1, block=32, smem=n * 8)


def test_small_types():
    random = np.random.default_rng(0)
    h = np.arange(32, dtype=np.float16) / 4
    b = random.integers(0, 256, 32, dtype=np.uint8)
    c = random.integers(-128, 128, 32, dtype=np.int8)
    m = random.integers(0, 2, 32).astype(bool)
    long = np.ones((32, 2), np.int64)
    expected = (
        (h * h + np.float16(0.5)), b * np.uint8(3), np.floor_divide(c, np.int8(-7)), ~m | (b > 100),
    )  # fmt: skip
    reversed_h = np.trunc(h[::-1].astype(np.float64)).astype(np.int64)
    small(h, b, c, m, long)
    for found, wanted in zip((h, b, c, m), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(long[:, 0], reversed_h)
    np.testing.assert_array_equal(long[:, 1], 1 << np.arange(32, dtype=np.int64))


MATH = {
    "exp": math.exp, "exp2": lambda x: 2.0**x, "log": math.log, "log2": math.log2,
    "sqrt": math.sqrt, "rsqrt": lambda x: 1 / math.sqrt(x), "sin": math.sin, "cos": math.cos,
    "tanh": math.tanh, "erf": math.erf, "floor": math.floor, "ceil": math.ceil,
}  # fmt: skip


@fly.kernel
def math_kernel(X: fx.Tensor, Y: fx.Tensor, names: fx.Constexpr):
    i = fx.thread_idx.x
    for row, name in enumerate(names):
        Y[row, i] = getattr(fx, name)(X[i])
    Y[len(names), i] = fx.pow(X[i], 1.7)
    Y[len(names) + 1, i] = fx.fma(X[i], X[i], -1.0)
    Y[len(names) + 2, i] = X[i] // 0.75
    Y[len(names) + 3, i] = -X[i] % 0.75


@fly.jit
def maths(X: fx.Tensor[fx.Float32, 64], Y: fx.Tensor[fx.Float32, "rows", 64]):
    math_kernel(X, Y, tuple(MATH)).launch(grid=1, block=64)


def test_mathematics():
    x = np.linspace(0.05, 20, 64, dtype=np.float32)
    y = np.zeros((len(MATH) + 4, 64), np.float32)
    maths(x, y)
    exact = [[function(float(value)) for value in x] for function in MATH.values()]
    np.testing.assert_allclose(y[: len(MATH)], exact, rtol=4e-6, atol=2e-7)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(y[len(MATH)], wide**1.7, rtol=2e-6)
    np.testing.assert_array_equal(y[len(MATH) + 1], (wide * wide - 1).astype(np.float32))
    np.testing.assert_array_equal(y[len(MATH) + 2], x // np.float32(0.75))
    np.testing.assert_array_equal(y[len(MATH) + 3], -x % np.float32(0.75))


@fly.kernel
def nan_kernel(X: fx.Tensor, Y: fx.Tensor):
    i = fx.thread_idx.x
    Y[0, i] = fx.maximum(X[i], 1.0)
    Y[1, i] = fx.minimum(X[i], 1.0)
    Y[2, i] = fx.maxnumf(X[i], 1.0)
    Y[3, i] = fx.minnumf(X[i], 1.0)
    Y[4, i] = fx.max(1.0, X[i])


@fly.jit
def nans(X: fx.Tensor[fx.Float32, 4], Y: fx.Tensor[fx.Float32, 5, 4]):
    nan_kernel(X, Y).launch(grid=1, block=4)


def test_nan_rules():
    x = np.array([np.nan, 0.5, 2.0, -np.inf], np.float32)
    y = np.zeros((5, 4), np.float32)
    nans(x, y)
    expected = [np.maximum(x, 1), np.minimum(x, 1), np.fmax(x, 1), np.fmin(x, 1), np.maximum(x, 1)]
    np.testing.assert_array_equal(y, expected)


@fly.jit
def scaled_by_sign(
    X: fx.Tensor[fx.Float32, "n"], Y: fx.Tensor[fx.Float32, "n"], scale: fx.Constexpr[float]
):
    @fly.kernel
    def kernel(X: fx.Tensor, Y: fx.Tensor):
        for i in range(fx.thread_idx.x, X.shape[0], LANES):
            if X[i] > 0.0:
                Y[i] = X[i] * scale
            else:
                Y[i] = -X[i]

    kernel(X, Y).launch(grid=1, block=LANES)


@pytest.mark.parametrize("scale", [2.0, 3.0])
def test_a_kernel_within_its_host_function_sees_constants_around_it(scale):
    x = np.arange(-50, 50).astype(np.float32)
    y = np.zeros_like(x)
    scaled_by_sign(x, y, scale)
    np.testing.assert_array_equal(y, np.where(x > 0, x * np.float32(scale), -x))
