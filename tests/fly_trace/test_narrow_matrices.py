"""Matrix products of floats of 8, 6 and 4 bits in the language, on the emulator, against NumPy."""

import numpy as np

import fly
import fly.expr as fx

from .narrow_floats import FORMATS, SCALES, bits_of

WAVE = 64


def codes(seed: int, name: str, *shape: int) -> np.ndarray:
    """Random encodings of numbers between -4 and 4."""
    values = FORMATS[name].values
    return np.random.default_rng(seed).choice(np.flatnonzero(np.abs(values) <= 4), shape)


# -- scaled products: every format, each 32 values along K with a scale of their own ---------------
PAIRS = (
    (16, 128, "Float8E4M3FN", "Float8E5M2"),
    (16, 128, "Float6E2M3FN", "Float4E2M1FN"),
    (16, 128, "Float4E2M1FN", "Float6E3M2FN"),
    (32, 64, "Float4E2M1FN", "Float4E2M1FN"),
    (32, 64, "Float6E3M2FN", "Float8E4M3FN"),
)
ROW = 4096  # bytes of each case's operand


def operand(array, case, dtype, mn, k):
    """The mn × k elements of a type that begin in row `case` of an array of bytes."""
    begin = fx.recast_iter(dtype, fx.get_iter(array[case, None]))
    return fx.make_view(begin, fx.make_layout((mn, k), (k, 1)))


def loaded(view, fragment, tiled, product, thread):
    """The thread's part of an operand: runs of 16 values, of 4 bits 32."""
    bits = min(128, 16 * view.dtype.bits) if view.dtype.bits > 4 else 128
    atom = fx.make_copy_atom(fx.UniversalCopy(bits), view.dtype)
    copy = tiled(atom, product).get_slice(thread)
    fx.copy(atom, copy.partition_S(view), copy.retile(fragment))


def stored(fragment, view, product, thread):
    """The thread's part of the result."""
    atom = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
    copy = fx.make_tiled_copy_C(atom, product).get_slice(thread)
    fx.copy(atom, copy.retile(fragment), copy.partition_D(view))


@fly.kernel
def scaled_kernel(A: fx.Tensor, B: fx.Tensor, S: fx.Tensor, D: fx.Tensor, cases: fx.Constexpr):
    t = fx.thread_idx.x
    for i, (mn, k, type_a, type_b) in enumerate(cases):
        atom = fx.make_mma_atom(fx.rocdl.cdna4.MFMA_Scale(mn, mn, k, type_a, type_b))
        product = fx.make_tiled_mma(atom, fx.make_layout((1, 1, 1), (0, 0, 0)))
        own = product.get_slice(t)
        view_a, view_b = operand(A, i, type_a, mn, k), operand(B, i, type_b, mn, k)
        a, b = own.make_fragment_A(view_a), own.make_fragment_B(view_b)
        loaded(view_a, a, fx.make_tiled_copy_A, product, t)
        loaded(view_b, b, fx.make_tiled_copy_B, product, t)
        d = fx.make_view(fx.get_iter(D[i, None]), fx.make_layout((mn, mn), (mn, 1)))
        c = own.make_fragment_C(d)
        c.fill(1.0)
        scale_a, scale_b = [fx.Int32(S[i, side, t % mn, t // mn]) for side in (0, 1)]
        fx.gemm(product, c, a, b, c, scale_a=scale_a, scale_b=scale_b)
        stored(c, d, product, t)


@fly.jit
def scaled(
    A: fx.Tensor[fx.Uint8, 5, 4096],
    B: fx.Tensor[fx.Uint8, 5, 4096],
    S: fx.Tensor[fx.Uint8, 5, 2, 32, 4],
    D: fx.Tensor[fx.Float32, 5, 1024],
    cases: fx.Constexpr,
):
    scaled_kernel(A, B, S, D, cases).launch(grid=1, block=WAVE)


def test_scaled_products(monkeypatch):
    monkeypatch.setenv("FLY_TARGET", "gfx950")
    a, b = (np.zeros((len(PAIRS), ROW), np.uint8) for _ in range(2))
    s = np.random.default_rng(1).integers(122, 132, (len(PAIRS), 2, 32, 4), dtype=np.uint8)
    d = np.zeros((len(PAIRS), 1024), np.float32)
    numbers = []
    for i, (mn, k, *names) in enumerate(PAIRS):
        for side, (memory, name) in enumerate(zip((a, b), names, strict=True)):
            held = codes(2 * i + side, name, mn, k)
            packed = bits_of(held.ravel(), FORMATS[name].bits)
            memory[i, : len(packed)] = packed
            scales = np.repeat(SCALES[s[i, side, :mn, : k // 32]], 32, axis=1)
            numbers.append(FORMATS[name].values[held] * scales)
    scaled(a, b, s, d, [(m, k, getattr(fx, x), getattr(fx, y)) for m, k, x, y in PAIRS])
    for i, (mn, *_) in enumerate(PAIRS):
        expected = numbers[2 * i] @ numbers[2 * i + 1].T + 1
        got = d[i, : mn * mn].reshape(mn, mn)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-3, err_msg=str(PAIRS[i]))
