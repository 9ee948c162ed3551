"""Types that nothing is computed in: moved and converted on the emulator, against NumPy."""

import numpy as np
import pytest
from fly_common import small_floats
from fly_common.errors import InputError, UsageError

import fly
import fly.expr as fx

from .narrow_floats import FORMATS, SCALES

LANES = 64
EIGHT = {
    "gfx942": ("Float8E4M3FNUZ", "Float8E5M2FNUZ"),
    "gfx950": ("Float8E4M3FN", "Float8E5M2"),
    "gfx1201": ("Float8E4M3FN", "Float8E5M2"),
}


@pytest.mark.parametrize("name", FORMATS)
def test_the_formats_of_constants(name):
    """fly_common's encodings, one by one, against those of the tables."""
    own = small_floats.FORMATS[getattr(fx, name).name]
    values = FORMATS[name].values
    np.testing.assert_array_equal([own.decode(code) for code in range(len(values))], values)
    finite = np.unique(values[np.isfinite(values)])
    between = (finite[1:] + finite[:-1]) / 2
    numbers = np.concatenate([finite, between, between * (1 + 1e-9)])
    expected = FORMATS[name].nearest(numbers)
    assert [own.encode(float(number)) for number in numbers] == expected.tolist()
    assert own.encode(FORMATS[name].greatest * 2) is None
    nan = own.encode(np.nan)
    assert nan is None if not FORMATS[name].nans else np.isnan(values[nan])


def test_scales():
    own = small_floats.FORMATS["f8E8M0FNU"]
    np.testing.assert_array_equal([own.decode(code) for code in range(256)], SCALES)
    assert [own.encode(float(number)) for number in SCALES] == list(range(256))
    assert own.encode(3.0) is None
    assert own.encode(-1.0) is None


def viewed(tensor, dtype):
    """The bytes of a tensor as elements of another type of 8 bits."""
    return fx.make_view(fx.recast_iter(dtype, fx.get_iter(tensor)), fx.get_layout(tensor))


@fly.kernel
def eight_kernel(
    X: fx.Tensor,
    F: fx.Tensor,
    H: fx.Tensor,
    B: fx.Tensor,
    N: fx.Tensor,
    V: fx.Tensor,
    W: fx.Tensor,
    Y: fx.Tensor,
    dtypes: fx.Constexpr,
):
    t = fx.thread_idx.x
    for i, dtype in enumerate(dtypes):
        # All encodings to wider types.
        source = viewed(X, dtype)
        v = source[t, None].load()
        for wide in (F, H, B):
            wide[t, None, i].store(v.to(wide.dtype))
        N[t, 0, i] = source[t, 1].to(fx.Int32)
        N[t, 1, i] = fx.Int32(v.to(fx.Boolean)[2])
        N[t, 2, i] = fx.Int32(fx.Boolean(source[t, 3]))
        # Wider types to it: four at once, then one, two and five.
        target = viewed(Y, dtype)
        v = V[t, None, i].load()
        target[t, None, 0, i].store(v.to(dtype))
        target[t, None, 1, i].store(W[t, None, i].load().to(dtype))
        target[t, 0, 2, i] = v[0].to(dtype)
        target[t, 1, 2, i] = fx.Vector.from_elements([v[1], v[2]]).to(dtype)[0]
        five = fx.Vector.from_elements([v[3], v[0], v[1], v[0], v[2]]).to(dtype)
        target[t, 2, 2, i] = five[4]
        target[t, 3, 2, i] = five[0]


@fly.jit
def eight(
    X: fx.Tensor[fx.Uint8, 64, 4],
    F: fx.Tensor[fx.Float32, 64, 4, 2],
    H: fx.Tensor[fx.Float16, 64, 4, 2],
    B: fx.Tensor[fx.BFloat16, 64, 4, 2],
    N: fx.Tensor[fx.Int32, 64, 3, 2],
    V: fx.Tensor[fx.Float32, 64, 4, 2],
    W: fx.Tensor[fx.Float16, 64, 4, 2],
    Y: fx.Tensor[fx.Uint8, 64, 4, 3, 2],
    dtypes: fx.Constexpr,
):
    eight_kernel(X, F, H, B, N, V, W, Y, dtypes).launch(grid=1, block=LANES)


def numbers(name: str) -> np.ndarray:
    """Ties and what is just beside them, what rounds to zero and to the least number."""
    form = FORMATS[name]
    finite = np.unique(form.values[np.isfinite(form.values)])
    random = np.random.default_rng(3)
    at = random.integers(0, len(finite) - 1, 200)
    ties = ((finite[at] + finite[at + 1]) / 2).astype(np.float32)
    near = np.nextafter(ties[:80], random.choice([-np.inf, np.inf], 80).astype(np.float32))
    some = [-0.0, *np.array([0.5, 0.5000001, 0.4999999]) * form.values[1]]
    return np.resize(np.concatenate([some, ties, near]), (LANES, 4)).astype(np.float32)


@pytest.mark.parametrize("chip", EIGHT)
def test_floats_of_eight_bits(chip, monkeypatch):
    """Every encoding widens to its number; numbers in the range narrow to the nearest."""
    monkeypatch.setenv("FLY_TARGET", chip)
    names = EIGHT[chip]
    x = np.arange(256, dtype=np.uint8).reshape(LANES, 4)
    f, h, b = (np.zeros((LANES, 4, 2), kind) for kind in ("f4", "f2", "u2"))
    n = np.zeros((LANES, 3, 2), np.int32)
    v = np.stack([numbers(name) for name in names], -1)
    y = np.zeros((LANES, 4, 3, 2), np.uint8)
    half = v.astype(np.float16)
    eight(x, f, h, b, n, v, half, y, [getattr(fx, name) for name in names])
    for i, name in enumerate(names):
        expected = FORMATS[name].values.reshape(LANES, 4)
        np.testing.assert_array_equal(f[..., i], expected)
        np.testing.assert_array_equal(h[..., i], expected)
        wide = (b[..., i].astype(np.uint32) << 16).view(np.float32)
        np.testing.assert_array_equal(wide, expected)
        whole = np.isfinite(expected[:, 1])
        np.testing.assert_array_equal(n[whole, 0, i], np.trunc(expected[whole, 1]))
        np.testing.assert_array_equal(n[:, 1:, i], expected[:, 2:] != 0)
        for made, given in ((0, v), (1, half), (2, v)):
            codes = FORMATS[name].nearest(given[..., i].ravel().astype(np.float64))
            np.testing.assert_array_equal(y[..., made, i].ravel(), codes)


@fly.kernel
def constant_kernel(Y: fx.Tensor, Z: fx.Tensor):
    t = fx.thread_idx.x
    Y[t] = fx.where(t % 2 == 0, fx.Float8E4M3FN(1.1), fx.Float8E4M3FN(-448))
    held = fx.Vector.filled(4, 0.375, fx.Float8E5M2)
    for i in range(3):
        if i == 2:
            held = fx.Vector.filled(4, 5.0, fx.Float8E5M2)
    Z[t, None].store(held)
    Z[t, 1] = 2.5


@fly.jit
def constants(Y: fx.Tensor[fx.Float8E4M3FN, 64], Z: fx.Tensor[fx.Float8E5M2, 64, 4]):
    constant_kernel(Y, Z).launch(grid=1, block=LANES)


@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
def test_constants_need_no_instruction(target, monkeypatch):
    """Choosing, carrying and storing work where nothing is converted."""
    monkeypatch.setenv("FLY_TARGET", target)
    y, z = np.zeros(LANES, np.uint8), np.zeros((LANES, 4), np.uint8)
    constants(y, z)
    values = FORMATS["Float8E4M3FN"].values[y]
    np.testing.assert_array_equal(values, np.where(np.arange(LANES) % 2, -448, 1.125))
    np.testing.assert_array_equal(FORMATS["Float8E5M2"].values[z], [[5, 2.5, 5, 5]] * LANES)


@fly.kernel
def scale_kernel(X: fx.Tensor, F: fx.Tensor, Y: fx.Tensor):
    t = fx.thread_idx.x
    F[t, None].store(X[t, None].load().to(fx.Float32))
    Y[t, None].store((F[t, None].load() * 1.75).to(fx.Float8E8M0FNU))


@fly.jit
def scales(
    X: fx.Tensor[fx.Float8E8M0FNU, 64, 4],
    F: fx.Tensor[fx.Float32, 64, 4],
    Y: fx.Tensor[fx.Float8E8M0FNU, 64, 4],
):
    scale_kernel(X, F, Y).launch(grid=1, block=LANES)


@pytest.mark.parametrize("target", ["gfx90a", "gfx1201"])
def test_scales_are_powers_of_two(target, monkeypatch):
    """To E8M0 the fraction is dropped: 2**-127 · 1.75 is below 2**-126 and stays 2**-127."""
    monkeypatch.setenv("FLY_TARGET", target)
    x = np.arange(256, dtype=np.uint8).reshape(LANES, 4)
    f, y = np.zeros((LANES, 4), np.float32), np.zeros((LANES, 4), np.uint8)
    scales(x, f, y)
    np.testing.assert_array_equal(f.ravel(), SCALES.astype(np.float32))
    np.testing.assert_array_equal(y, x)


@fly.jit
def scalar(x: fx.Float8E5M2):
    constant_kernel(x, x).launch(grid=1, block=LANES)


def test_a_scalar_of_eight_bits_is_refused():
    with pytest.raises(UsageError, match=r"x is a scalar of f8E5M2.*\n.*pass it as fx.Float32"):
        scalar(1.0)


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("gfx90a", "gfx90a has no conversion between f8E4M3FNUZ and f32.*what it converts: none"),
        (
            "gfx950",
            "gfx950 has no conversion between f8E4M3FNUZ and f32.*: f8E4M3FN, f8E5M2",
        ),
    ],
)
def test_a_format_of_other_targets_is_refused(target, told, monkeypatch):
    monkeypatch.setenv("FLY_TARGET", target)
    arrays = [np.zeros(64, np.uint8), np.zeros(64, np.float32)]
    with pytest.raises(InputError, match=f"(?s){told}"):
        other(*arrays)


@fly.kernel
def other_kernel(X: fx.Tensor, Y: fx.Tensor):
    t = fx.thread_idx.x
    Y[t] = X[t].to(fx.Float32)


@fly.jit
def other(X: fx.Tensor[fx.Float8E4M3FNUZ, 64], Y: fx.Tensor[fx.Float32, 64]):
    other_kernel(X, Y).launch(grid=1, block=LANES)
