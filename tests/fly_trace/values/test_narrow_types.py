"""Types that nothing is computed in: moved and converted on the emulator, against NumPy."""

import numpy as np
import pytest
from fly_common.errors import InputError, UsageError
from fly_numerics import small_floats

import fly
import fly.expr as fx

from .narrow_floats import FORMATS, SCALES, bits_of

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
    with pytest.raises(
        UsageError, match=r"x is a scalar of type f8E5M2.*\n.*pass it as fx.Float32"
    ):
        scalar(1.0)


@pytest.mark.parametrize(
    ("target", "told"),
    [
        (
            "gfx90a",
            "gfx90a has no conversion between f8E4M3FNUZ and f32.*supported conversions: none",
        ),
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


# -- packed: several elements in a byte ------------------------------------------------------------
PACKED = ("Float6E2M3FN", "Float6E3M2FN", "Float4E2M1FN")


def packed(array, case, dtype, count):
    """`count` elements in each row, from the bytes of `array[case]`."""
    begin = fx.recast_iter(dtype, fx.get_iter(array[case, None]))
    return fx.make_view(begin, fx.make_layout((LANES, count), (count, 1)))


@fly.kernel
def packed_kernel(X: fx.Tensor, F: fx.Tensor, V: fx.Tensor, Y: fx.Tensor, dtypes: fx.Constexpr):
    t = fx.thread_idx.x
    lds = fx.shared_array(fx.Float4E2M1FN, (LANES, 64))
    for i, dtype in enumerate(dtypes):
        loaded = packed(X, i, dtype, 64)[t, None].load()
        if dtype is fx.Float4E2M1FN:
            # By way of LDS, from another thread.
            lds[LANES - 1 - t, None].store(loaded)
            fx.barrier()
            loaded = lds[LANES - 1 - t, None].load()
        F[i, t, None].store(loaded.to(fx.Float32))
        packed(Y, i, dtype, 64)[t, None].store(V[i, t, None].load().to(dtype))


@fly.jit
def six_and_four(
    X: fx.Tensor[fx.Uint8, 3, 4096],
    F: fx.Tensor[fx.Float32, 3, 64, 64],
    V: fx.Tensor[fx.Float32, 3, 64, 64],
    Y: fx.Tensor[fx.Uint8, 3, 4096],
    dtypes: fx.Constexpr,
):
    packed_kernel(X, F, V, Y, dtypes).launch(grid=1, block=LANES)


def test_floats_of_six_and_four_bits(monkeypatch):
    monkeypatch.setenv("FLY_TARGET", "gfx950")
    x, y = np.zeros((3, 4096), np.uint8), np.zeros((3, 4096), np.uint8)
    f = np.zeros((3, LANES, 64), np.float32)
    v = np.stack([np.resize(numbers(name), (LANES, 64)) for name in PACKED])
    widened, narrowed = [], []
    for i, name in enumerate(PACKED):
        form = FORMATS[name]
        held = np.arange(LANES * 64) * 7 % (1 << form.bits)
        widened.append(form.values[held].reshape(LANES, 64))
        bytes_ = bits_of(held, form.bits)
        x[i, : len(bytes_)] = bytes_
        narrowed.append(bits_of(form.nearest(v[i].ravel().astype(np.float64)), form.bits))
    six_and_four(x, f, v, y, [getattr(fx, name) for name in PACKED])
    np.testing.assert_array_equal(f, widened)
    for i, expected in enumerate(narrowed):
        np.testing.assert_array_equal(y[i, : len(expected)], expected)
        assert not y[i, len(expected) :].any()


@fly.kernel
def fours_kernel(X: fx.Tensor, Y: fx.Tensor, Z: fx.Tensor):
    t = fx.thread_idx.x
    for i, dtype in enumerate([fx.Int4, fx.Uint4]):
        v = packed(X, i, dtype, 8)[t, None].load()
        wide = v.to(fx.Int32)
        Y[i, t, None].store(wide)
        packed(Z, i, dtype, 8)[t, None].store((wide + 3).to(dtype))


@fly.jit
def fours(
    X: fx.Tensor[fx.Uint8, 2, 256],
    Y: fx.Tensor[fx.Int32, 2, 64, 8],
    Z: fx.Tensor[fx.Uint8, 2, 256],
):
    fours_kernel(X, Y, Z).launch(grid=1, block=LANES)


def test_integers_of_four_bits():
    """They wrap at their width."""
    x = np.random.default_rng(8).integers(0, 256, (2, 256), dtype=np.uint8)
    y, z = np.zeros((2, LANES, 8), np.int32), np.zeros((2, 256), np.uint8)
    fours(x, y, z)
    halves = np.stack([x & 15, x >> 4], -1).reshape(2, LANES, 8).astype(np.int32)
    signed = np.where(halves[0] > 7, halves[0] - 16, halves[0])
    np.testing.assert_array_equal(y, [signed, halves[1]])
    more = (halves + 3 & 15).reshape(2, 256, 2)
    np.testing.assert_array_equal(z, more[..., 0] | more[..., 1] << 4)


@fly.kernel
def one_kernel(X: fx.Tensor, Y: fx.Tensor, whole: fx.Constexpr[bool]):
    t = fx.thread_idx.x
    fours = fx.make_view(fx.recast_iter(fx.Int4, fx.get_iter(X)), fx.make_layout(128, 1))
    if whole:
        Y[t] = fours[2].to(fx.Int32)
    else:
        Y[t] = fours[t].to(fx.Int32)


@fly.jit
def one(X: fx.Tensor[fx.Uint8, 64], Y: fx.Tensor[fx.Int32, 64], whole: fx.Constexpr[bool]):
    one_kernel(X, Y, whole).launch(grid=1, block=LANES)


@pytest.mark.parametrize(
    ("whole", "told"),
    [
        (False, r"\\? elements of i4 are not known to be a multiple of 2"),
        (True, "an access must move whole bytes, but i4 has 4 bits"),
    ],
)
def test_a_part_of_a_byte_is_refused(whole, told):
    with pytest.raises(InputError, match=told):
        one(np.zeros(64, np.uint8), np.zeros(64, np.int32), whole)


# -- moves: no bit changes on the way --------------------------------------------------------------
@fx.struct
class Staged:
    fours: fx.Array[fx.Float4E2M1FN, 512]
    eights: fx.Array[fx.Float8E5M2, 64]


@fly.kernel
def moves_kernel(X: fx.Tensor, Y: fx.Tensor):
    t = fx.thread_idx.x
    bytes_ = X[t, None].load()
    # As words, as fours, through registers, a branch and a loop, and back.
    fours = bytes_.bitcast(fx.Float4E2M1FN)
    held = fx.make_rmem_tensor(16, fx.Float4E2M1FN)
    held.store(fours)
    turned = held.load().shuffle(fours, [*range(8, 16), *range(16, 24)])
    for _ in range(3):
        if t % 2 == 0:
            turned = turned.shuffle(turned, [*range(8, 16), *range(8)])
    Y[t, None, 0].store(turned.bitcast(fx.Uint32).bitcast(fx.Uint8))
    # One element between lanes and through LDS, of a structure.
    place = fx.SharedAllocator(static=True).allocate(Staged)
    eights, lds = place.eights.peek(), place.fours.peek()
    one = X[t, 0].bitcast(fx.Float8E5M2)
    eights[t] = fx.shuffle_xor(one, 1, 32)
    row = lds.view(fx.make_layout((LANES, 8), (8, 1)))
    row[t, None].store(fours.shuffle(fours, range(8)))
    fx.barrier()
    Y[t, 0, 1] = eights[t ^ 2].bitcast(fx.Uint8)
    Y[t, 1, 1] = fx.bitcast(fx.where(t % 2 == 0, one, eights[t]), fx.Uint8)
    back = row[t ^ 1, None].load().bitcast(fx.Uint8)
    for i in range(4):
        Y[t, 2 + i, 1] = back[i]
    # A register of its own at a place that is known only when the kernel runs.
    some = fx.make_rmem_tensor(8, fx.Float8E5M2)
    some.store(bytes_.bitcast(fx.Float8E5M2))
    Y[t, 6, 1] = some[t % 8].bitcast(fx.Uint8)


@fly.jit
def moves(X: fx.Tensor[fx.Uint8, 64, 8], Y: fx.Tensor[fx.Uint8, 64, 8, 2]):
    moves_kernel(X, Y).launch(grid=1, block=LANES)


def test_moves_keep_the_bits():
    x = np.random.default_rng(9).integers(0, 256, (LANES, 8), dtype=np.uint8)
    y = np.zeros((LANES, 8, 2), np.uint8)
    moves(x, y)
    t = np.arange(LANES)
    halves = np.where((t % 2 == 0)[:, None], x[:, :8], np.roll(x, 4, 1))
    np.testing.assert_array_equal(y[:, :, 0], halves)
    np.testing.assert_array_equal(y[:, 0, 1], x[t ^ 3, 0])
    np.testing.assert_array_equal(y[:, 1, 1], np.where(t % 2, x[t ^ 1, 0], x[t, 0]))
    np.testing.assert_array_equal(y[:, 2:6, 1], x[t ^ 1, :4])
    np.testing.assert_array_equal(y[:, 6, 1], x[t, t % 8])
