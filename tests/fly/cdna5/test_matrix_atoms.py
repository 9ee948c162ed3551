"""Each matrix atom of gfx1250 in a kernel, on the emulator, against NumPy."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

NUMPY = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "i8": np.int8,
    "i32": np.int32,
}
NAMES = {
    "f32": "Float32",
    "f16": "Float16",
    "bf16": "BFloat16",
    "f8E4M3FN": "Float8E4M3FN",
    "f8E5M2": "Float8E5M2",
    "f6E2M3FN": "Float6E2M3FN",
    "f6E3M2FN": "Float6E3M2FN",
    "f4E2M1FN": "Float4E2M1FN",
    "i8": "Int8",
    "i32": "Int32",
}
OCP8 = ("f8E4M3FN", "f8E5M2")
FORMS = [
    (4, "f32", "f32"),
    (32, "f16", "f32"),
    (32, "f16", "f16"),
    (32, "bf16", "f32"),
    (32, "bf16", "bf16"),
    *((k, kind, acc) for k in (64, 128) for kind in OCP8 for acc in ("f32", "f16")),
    (64, "i8", "i32"),
]


def product(front: Any, a: np.ndarray, b: np.ndarray, c: np.ndarray, **options: bool) -> np.ndarray:
    """a bᵀ + c by one instruction."""
    flyc, fx = front
    (m, k), n = a.shape, b.shape[0]
    ab, acc = (next(t for t, kind in NUMPY.items() if kind == x.dtype) for x in (a, c))
    ab, acc = (getattr(fx, NAMES[kind]) for kind in (ab, acc))
    ab_bits, acc_bits = a.itemsize * 8, c.itemsize * 8

    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
        tid = fx.thread_idx.x
        atom = fx.make_mma_atom(fx.rocdl.WMMA(m, n, k, ab, acc, **options))
        tiled = fx.make_tiled_mma(atom, fx.make_layout((1, 1, 1), (0, 0, 0)))
        mine = tiled.thr_slice(tid)
        shapes = (((m, k), (k, 1)), ((n, k), (k, 1)), ((m, n), (n, 1)))
        views = [
            fx.make_view(fx.get_iter(fx.rocdl.make_buffer_tensor(x)), fx.make_layout(*shape))
            for x, shape in zip((A, B, C), shapes, strict=True)
        ]
        one = fx.make_copy_atom(fx.rocdl.BufferCopy(ab_bits), ab)
        sums = fx.make_copy_atom(fx.rocdl.BufferCopy(acc_bits), acc)
        part_a = mine.make_fragment_A(views[0])
        part_b = mine.make_fragment_B(views[1])
        part_c = mine.make_fragment_C(views[2])
        copy_a = fx.make_tiled_copy_A(one, tiled).get_slice(tid)
        copy_b = fx.make_tiled_copy_B(one, tiled).get_slice(tid)
        copy_c = fx.make_tiled_copy_C(sums, tiled).get_slice(tid)
        fx.copy(one, copy_a.partition_S(views[0]), copy_a.retile(part_a))
        fx.copy(one, copy_b.partition_S(views[1]), copy_b.retile(part_b))
        fx.copy(sums, copy_c.partition_S(views[2]), copy_c.retile(part_c))
        fx.gemm(atom, part_c, part_a, part_b, part_c)
        fx.copy(sums, copy_c.retile(part_c), copy_c.partition_S(views[2]))

    @flyc.jit
    def launch(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
        kernel(A, B, C).launch(grid=(1, 1, 1), block=(32, 1, 1))

    out = c.copy()
    launch(a, b, out)
    return out


def integers(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> np.ndarray:
    """Small integers: their sums of products are exact in every type of a sum."""
    return rng.integers(-3, 4, shape).astype(NUMPY[kind])


@pytest.mark.parametrize(("k", "kind", "acc"), FORMS)
def test_wmma(front, k: int, kind: str, acc: str) -> None:
    rng = np.random.default_rng(k)
    a, b = (integers(rng, (16, k), kind) for _ in "ab")
    if acc == "bf16":  # integers up to 256
        a[:, 8:] = 0
    c = integers(rng, (16, 16), acc)
    signs = {"sign_a": True, "sign_b": True} if kind == "i8" else {}
    wanted = a.astype(np.float64) @ b.astype(np.float64).T + c.astype(np.float64)
    assert np.array_equal(product(front, a, b, c, **signs).astype(np.float64), wanted)


def test_unsigned_integers_that_saturate(front) -> None:
    a, b = (np.full((16, 64), -1, np.int8) for _ in "ab")  # 255, or -1 if signed
    c = np.full((16, 16), 2**31 - 10, np.int32)
    assert (product(front, a, b, c, clamp=True) == 2**31 - 1).all()
    assert (product(front, a, b, np.zeros_like(c), sign_a=True) == -255 * 64).all()


BITS = {"f8E4M3FN": 8, "f8E5M2": 8, "f6E2M3FN": 6, "f6E3M2FN": 6, "f4E2M1FN": 4}
PARTS = {
    "f8E4M3FN": (4, 3),
    "f8E5M2": (5, 2),
    "f6E2M3FN": (2, 3),
    "f6E3M2FN": (3, 2),
    "f4E2M1FN": (2, 1),
}


def value(codes: np.ndarray, kind: str) -> np.ndarray:
    """Numbers of a narrow format, by its definition (OCP's MX specification)."""
    exponent, fraction = PARTS[kind]
    high, low = codes >> fraction & (2**exponent - 1), codes & (2**fraction - 1)
    size = np.where(high > 0, low + 2**fraction, low) * 2.0 ** (
        np.maximum(high, 1) - (2 ** (exponent - 1) - 1) - fraction
    )
    return np.where(codes >> (exponent + fraction), -size, size)


def codes(rng: np.random.Generator, shape: tuple[int, int], kind: str) -> np.ndarray:
    """Random codes, of eight bits only those of numbers below 16."""
    exponent, fraction = PARTS[kind]
    most = 2 ** (exponent + fraction)
    if BITS[kind] == 8:
        most = (2 ** (exponent - 1) + 3) << fraction
        least = (2 ** (exponent - 1) - 6) << fraction
    else:
        least = 0
    signs = rng.integers(0, 2, shape) << (exponent + fraction)
    return rng.integers(least, most, shape) | signs


def packed(codes: np.ndarray, width: int) -> np.ndarray:
    """Rows of 32-bit words, the first number in the lowest bits."""
    bits = codes[..., None] >> np.arange(width) & 1
    rows = bits.reshape(len(codes), -1, 32)
    return (rows << np.arange(32)).sum(-1).astype(np.uint32).view(np.int32)


def scaled(front: Any, op: Any, kinds: tuple[str, str], m: int, words: Any, lanes: Any) -> Any:
    """One scaled product, whose operands the threads read as words."""
    flyc, fx = front
    runs = [16 if BITS[kind] == 8 else 32 for kind in kinds]
    lengths = [run * BITS[kind] // 32 for run, kind in zip(runs, kinds, strict=True)]
    counts = [128 // (2 * run) for run in runs]
    tall = m // 16

    @flyc.kernel
    def kernel(A: fx.Tensor, B: fx.Tensor, SA: fx.Tensor, SB: fx.Tensor, C: fx.Tensor):
        tid = fx.thread_idx.x
        lane, half = tid % 16, tid // 16
        a = fx.make_rmem_tensor(tall * counts[0] * lengths[0], fx.Int32)
        for block in fx.range_constexpr(tall):
            for run in fx.range_constexpr(counts[0]):
                for word in fx.range_constexpr(lengths[0]):
                    place = (block * counts[0] + run) * lengths[0] + word
                    a[place] = A[lane + 16 * block, (2 * run + half) * lengths[0] + word]
        b = fx.make_rmem_tensor(counts[1] * lengths[1], fx.Int32)
        for run in fx.range_constexpr(counts[1]):
            for word in fx.range_constexpr(lengths[1]):
                b[run * lengths[1] + word] = B[lane, (2 * run + half) * lengths[1] + word]
        c = fx.make_rmem_tensor(8 * tall, fx.Float32)
        for i in fx.range_constexpr(8 * tall):
            c[i] = C[i % 8 + half * 8 + i // 8 * 16, lane]
        atom = fx.make_mma_atom(op)
        fx.gemm(atom, c, a, b, c, scale_a=SA[tid], scale_b=SB[tid])
        for i in fx.range_constexpr(8 * tall):
            C[i % 8 + half * 8 + i // 8 * 16, lane] = c[i]

    @flyc.jit
    def launch(A: fx.Tensor, B: fx.Tensor, SA: fx.Tensor, SB: fx.Tensor, C: fx.Tensor):
        kernel(A, B, SA, SB, C).launch(grid=(1, 1, 1), block=(32, 1, 1))

    c = np.random.default_rng(9).integers(-4, 5, (m, 16)).astype(np.float32)
    out = c.copy()
    launch(*words, *lanes, out)
    return c, out


def check(front: Any, kinds: tuple[str, str], m: int = 16, block: int = 32, **options: int) -> None:
    _, fx = front
    rng = np.random.default_rng(sum(map(ord, "".join(kinds))) + m + block)
    shown = [codes(rng, (rows, 128), kind) for rows, kind in zip((m, 16), kinds, strict=True)]
    words = [packed(one, BITS[kind]) for one, kind in zip(shown, kinds, strict=True)]
    lanes, scales = [], []
    for rows, side in ((m, "opsel_a"), (16, "opsel_b")):
        exponents = rng.integers(120, 132, (rows, 128 // block)).astype(np.uint8)
        held = rng.integers(0, 255, (32, 128 // block)).astype(np.uint8)  # of lanes not read: noise
        first = 16 * options.get(side, 0) if rows == 16 else 0
        held[first : first + rows] = exponents
        lanes.append(held.view(np.int32 if block == 32 else np.int64).reshape(32))
        scales.append(2.0 ** (exponents.astype(float) - 127))
    op = fx.rocdl.cdna5.WMMAScale(
        m, 16, 128, *(getattr(fx, NAMES[kind]) for kind in kinds), block_size=block, **options
    )
    c, found = scaled(front, op, kinds, m, words, lanes)
    a, b = (
        value(one, kind) * np.repeat(scale, block, 1)
        for one, kind, scale in zip(shown, kinds, scales, strict=True)
    )
    wanted, size = c + a @ b.T, np.abs(c) + np.abs(a) @ np.abs(b).T
    assert (np.abs(found - wanted) <= 2.0**-20 * size).all()


@pytest.mark.parametrize("right", sorted(BITS))
@pytest.mark.parametrize("left", sorted(BITS))
def test_wmma_scale(front, left: str, right: str) -> None:
    check(front, (left, right))


def test_wmma_scale_of_32_rows(front) -> None:
    check(front, ("f4E2M1FN", "f4E2M1FN"), 32)


@pytest.mark.parametrize("kinds", [("f8E4M3FN", "f8E5M2"), ("f4E2M1FN", "f8E4M3FN")])
def test_wmma_scale_of_blocks_of_16(front, kinds: tuple[str, str]) -> None:
    check(front, kinds, block=16)


@pytest.mark.parametrize("selected", [(1, 0), (0, 1), (1, 1)])
def test_the_threads_that_supply_scales(front, selected: tuple[int, int]) -> None:
    opsel_a, opsel_b = selected
    check(front, ("f8E4M3FN", "f4E2M1FN"), opsel_a=opsel_a, opsel_b=opsel_b, reuse_a=1)
