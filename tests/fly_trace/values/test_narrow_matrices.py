"""Matrix products of floats of 8, 6 and 4 bits in the language, on the emulator, against NumPy."""

import numpy as np
import pytest

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
    """The thread's part of an operand: of eight bits runs of 16 values, of fewer all 32."""
    values = 16 if view.dtype.bits == 8 else 32
    atom = fx.make_copy_atom(fx.UniversalCopy(values * view.dtype.bits), view.dtype)
    copy = tiled(atom, product).get_slice(thread)
    fx.copy(atom, copy.partition_S(view), copy.retile(fragment))


def stored(fragment, view, product, thread):
    """The thread's part of the result."""
    atom = fx.make_copy_atom(fx.UniversalCopy(view.dtype.bits), view.dtype)
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


# -- to LDS without a register between -------------------------------------------------------------
@fly.kernel
def staged_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, D: fx.Tensor):
    """Two waves fill one LDS array, and read what the other has put there."""
    t = fx.thread_idx.x
    lds = fx.shared_array(fx.Float32, (2, 2 * WAVE, 4))
    wave = t // WAVE * WAVE
    for copy, source, i in (
        (fx.rocdl.cdna4.GlobalLoadAsyncLDS128b(), A, 0),
        (fx.rocdl.cdna4.BufferLoadAsyncLDS128b(), fx.rocdl.make_buffer_tensor(B), 1),
    ):
        # The wave's first address: its threads' words follow each other from there.
        atom = fx.make_copy_atom(copy, fx.Float32)
        fx.copy_atom_call(atom, source[t, None], lds[i, wave, None])
        fx.rocdl.asyncmark()
    fx.rocdl.wait_asyncmark(0)
    fx.barrier()
    other = 2 * WAVE - 1 - t
    C[t, None].store(lds[0, other, None].load())
    D[t, None].store(lds[1, other, None].load())


@fly.jit
def staged(
    A: fx.Tensor[fx.Float32, 128, 4],
    B: fx.Tensor[fx.Float32, 128, 4],
    C: fx.Tensor[fx.Float32, 128, 4],
    D: fx.Tensor[fx.Float32, 128, 4],
):
    staged_kernel(A, B, C, D).launch(grid=1, block=2 * WAVE)


def test_asynchronous_copies_to_lds(monkeypatch):
    monkeypatch.setenv("FLY_TARGET", "gfx950")
    a, b = (np.random.default_rng(i).random((128, 4), np.float32) for i in (1, 2))
    c, d = np.zeros_like(a), np.zeros_like(b)
    staged(a, b, c, d)
    np.testing.assert_array_equal(c, a[::-1])
    np.testing.assert_array_equal(d, b[::-1])


# -- transposed reads of LDS -----------------------------------------------------------------------
TURNS = (("Float8E5M2", 8, 64), ("Float6E3M2FN", 6, 96), ("Float4E2M1FN", 4, 64))


@fly.kernel
def turned_kernel(A: fx.Tensor, D: fx.Tensor, cases: fx.Constexpr):
    t = fx.thread_idx.x
    for i, (dtype, granularity, size) in enumerate(cases):
        count = size // granularity
        own = operand(A, i, dtype, WAVE, count)[t, None]
        result = operand(D, i, dtype, WAVE, count)[t, None]
        lds = fx.shared_array(dtype, (WAVE, count))[t, None]
        lds.store(own.load())
        fx.barrier()
        atom = fx.make_copy_atom(fx.rocdl.cdna4.LDSReadTrans(granularity, size), dtype)
        column = fx.make_rmem_tensor(count, dtype)
        fx.copy_atom_call(atom, lds, column)
        result.store(column.load())


@fly.jit
def turned(
    A: fx.Tensor[fx.Uint8, 3, 768],
    D: fx.Tensor[fx.Uint8, 3, 768],
    cases: fx.Constexpr,
):
    turned_kernel(A, D, cases).launch(grid=1, block=WAVE)


def test_lds_is_read_transposed(monkeypatch):
    """Of each sixteen threads, whose elements are rows of sixteen, thread t gets column t."""
    monkeypatch.setenv("FLY_TARGET", "gfx950")
    a, d = (np.zeros((len(TURNS), 768), np.uint8) for _ in range(2))
    expected = np.zeros_like(a)
    for i, (_, granularity, size) in enumerate(TURNS):
        count = size // granularity
        held = np.random.default_rng(i).integers(0, 1 << granularity, (4, count, 16))
        packed = bits_of(held.ravel(), granularity)
        a[i, : len(packed)] = packed
        expected[i, : len(packed)] = bits_of(held.transpose(0, 2, 1).ravel(), granularity)
    turned(a, d, [(getattr(fx, name), *sizes) for name, *sizes in TURNS])
    np.testing.assert_array_equal(d, expected)


# -- products of one instruction and another -------------------------------------------------------
@fly.kernel
def product_kernel(A: fx.Tensor, B: fx.Tensor, D: fx.Tensor, cases: fx.Constexpr):
    """Each case on the whole of A and B, K by steps of the instruction's; two waves along N."""
    t = fx.thread_idx.x
    for i, (op, run, dtype, acc) in enumerate(cases):
        atom = fx.make_mma_atom(op)
        k = int(atom.shape_mnk[2])
        product = fx.make_tiled_mma(atom, fx.make_layout((1, 2, 1), (0, 1, 0)))
        own = product.get_slice(t)
        views = [operand(memory, i, dtype, 64, 64) for memory in (A, B)]
        tiles_a, tiles_b = [fx.flat_divide(view, (64, k)) for view in views]
        a = own.make_fragment_A(tiles_a[None, None, 0, 0])
        b = own.make_fragment_B(tiles_b[None, None, 0, 0])
        d = operand(D, i, acc, 64, 64)
        c = own.make_fragment_C(d)
        c.fill(0)
        copy = fx.make_copy_atom(fx.UniversalCopy(run), dtype)
        copy_a = fx.make_tiled_copy_A(copy, product).get_slice(t)
        copy_b = fx.make_tiled_copy_B(copy, product).get_slice(t)
        from_a, from_b = copy_a.partition_S(tiles_a), copy_b.partition_S(tiles_b)
        for step in range(64 // k):
            fx.copy(copy, from_a[None, None, None, 0, step], copy_a.retile(a))
            fx.copy(copy, from_b[None, None, None, 0, step], copy_b.retile(b))
            fx.gemm(product, c, a, b, c)
        stored(c, d, product, t)


@fly.jit
def products(A: fx.Tensor, B: fx.Tensor, D: fx.Tensor, cases: fx.Constexpr, block: fx.Constexpr):
    product_kernel(A, B, D, cases).launch(grid=1, block=block)


MFMA, WMMA = fx.rocdl.MFMA, fx.rocdl.rdna4.WMMA
SIGNED = {"sign_a": True, "sign_b": True}
# Instruction, bits of a thread's values that lie together, element types of the operands and of C.
PRODUCTS = {
    "gfx942": [
        (MFMA(16, 16, 32, fx.Float8E4M3FNUZ), 64, fx.Float8E4M3FNUZ, fx.Float32),
        (MFMA(32, 32, 16, fx.Float8E5M2FNUZ), 64, fx.Float8E5M2FNUZ, fx.Float32),
        (MFMA(16, 16, 8, fx.Float32), 64, fx.Float32, fx.Float32),
        (MFMA(16, 16, 4, fx.Float64, fx.Float64), 64, fx.Float64, fx.Float64),
    ],
    "gfx950": [
        (MFMA(32, 32, 16, fx.Float8E4M3FN), 64, fx.Float8E4M3FN, fx.Float32),
        (MFMA(16, 16, 32, fx.Float8E5M2), 64, fx.Float8E5M2, fx.Float32),
        (MFMA(16, 16, 64, fx.Int8, fx.Int32), 128, fx.Int8, fx.Int32),
    ],
    "gfx1201": [
        (WMMA(16, 16, 16, fx.Float8E4M3FN), 64, fx.Float8E4M3FN, fx.Float32),
        (WMMA(16, 16, 16, fx.Float8E5M2), 64, fx.Float8E5M2, fx.Float32),
        (WMMA(16, 16, 16, fx.Int8, fx.Int32, **SIGNED), 64, fx.Int8, fx.Int32),
        (WMMA(16, 16, 32, fx.Int4, fx.Int32, **SIGNED), 32, fx.Int4, fx.Int32),
    ],
}


def matrix(seed: int, dtype: fx.DType) -> tuple[np.ndarray, np.ndarray]:
    """64×64 numbers, and their bytes. (Small integers are exact in XF32 too.)"""
    if dtype.title in FORMATS:
        held = codes(seed, dtype.title, 64, 64)
        return FORMATS[dtype.title].values[held], held.astype(np.uint8).ravel()
    numbers = np.random.default_rng(seed).integers(-8, 8, (64, 64))
    if dtype is fx.Int4:
        return numbers, bits_of(numbers & 15, 4).ravel()
    kind = f"{dtype.kind[0]}{dtype.bytes}"
    return numbers, numbers.astype(kind).view(np.uint8).ravel()


@pytest.mark.parametrize("target", PRODUCTS)
def test_products(target, monkeypatch):
    monkeypatch.setenv("FLY_TARGET", target)
    cases = PRODUCTS[target]
    a, b, d = (np.zeros((len(cases), 64 * 64 * 8), np.uint8) for _ in range(3))
    expected = []
    for i, (_, _, dtype, _) in enumerate(cases):
        (left, bytes_a), (right, bytes_b) = matrix(2 * i, dtype), matrix(2 * i + 1, dtype)
        a[i, : len(bytes_a)], b[i, : len(bytes_b)] = bytes_a, bytes_b
        expected.append(left @ right.T)
    products(a, b, d, cases, 64 if target == "gfx1201" else 128)
    for i, (op, _, _, acc) in enumerate(cases):
        kind = f"{acc.kind[0]}{acc.bytes}"
        got = d[i, : 64 * 64 * acc.bytes].view(kind).reshape(64, 64)
        np.testing.assert_allclose(got, expected[i], rtol=1e-5, atol=1e-3, err_msg=str(op))
