"""`fx.random` against known answers, and against Philox in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import fly.expr as fx
from primitives import TARGETS, run

on_targets = pytest.mark.parametrize("target", TARGETS)
ONES = 0xFFFF_FFFF
# philox4x32, 10 rounds, of Random123's kat_vectors: counter, key, result.
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((ONES,) * 4, (ONES,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]
# torch.manual_seed(0), then torch.rand(10, device="cuda") and torch.randn(10, device="cuda").
TORCH_RAND = [0.3990, 0.5167, 0.0249, 0.9401, 0.9459, 0.7967, 0.4150, 0.8203, 0.2290, 0.9096]
TORCH_RANDN = [-0.9247, -0.4253, -2.6438, 0.1452, -0.1209, -0.5797, -0.6229, -0.3284, -1.0745]


def philox(counter: np.ndarray, key: tuple[int, int]) -> np.ndarray:
    """Philox4x32-10 of the rows of `counter`, as its authors write it: a round permutes the words
    (L, R) of each half into (R', L')."""
    words = [column.astype("u8") for column in counter.T]
    k = list(key)
    for _ in range(10):
        left, right = words[0] * 0xD2511F53, words[2] * 0xCD9E8D57
        words = [
            right >> 32 ^ words[1] ^ k[0],
            right & ONES,
            left >> 32 ^ words[3] ^ k[1],
            left & ONES,
        ]
        k = [k[0] + 0x9E3779B9 & ONES, k[1] + 0xBB67AE85 & ONES]
    return np.stack(words, axis=1).astype("u4")


@on_targets
def test_known_answers(target):
    x = np.array([[*counter, *key] for counter, key, _ in KNOWN], "u4")
    y = np.zeros((len(KNOWN), 4), "u4")

    def body(A, B):
        i = fx.thread_idx.x
        words = [A[i, j] for j in range(6)]
        B[i, 0], B[i, 1], B[i, 2], B[i, 3] = fx.random.philox(words[:4], words[4:])

    run(body, x, y, block=len(KNOWN), target=target)
    np.testing.assert_array_equal(y, [result for _, _, result in KNOWN])
    np.testing.assert_array_equal(philox(x[2:, :4], KNOWN[2][1]), y[2:])


def test_fewer_rounds_differ():
    y = np.zeros(4, "u4")

    def body(B):
        B[0], B[1], B[2], B[3] = fx.random.philox((1, 2, 3, 4), (5, 6), rounds=7)

    run(body, y, block=1, target="gfx942")
    assert not (y == philox(np.array([[1, 2, 3, 4]]), (5, 6))[0]).any()


@on_targets
@pytest.mark.parametrize(("seed", "offset"), [(0, 0), (2**40 + 3, 2**33 + 5), (-1, 7)])
def test_bits(target, seed, offset):
    y, z = np.zeros((64, 4), "u4"), np.zeros((64, 4), "u4")
    given = np.array([seed, offset], "i8")

    def body(A, B, C):
        i = fx.thread_idx.x
        B[i, 0], B[i, 1], B[i, 2], B[i, 3] = fx.random.bits(seed, i, offset)
        C[i, 0], C[i, 1], C[i, 2], C[i, 3] = fx.random.bits(A[0], i.to(fx.Int64) << 31, A[1])

    run(body, given, y, z, block=64, target=target)
    low, high = offset & ONES, offset >> 32
    i = np.arange(64, dtype="u8")
    for found, place in ((y, i), (z, i << 31)):
        halves = [np.full(64, low), np.full(64, high), place & ONES, place >> 32]
        wanted = philox(np.stack(halves, axis=1), (seed & ONES, seed >> 32 & ONES))
        np.testing.assert_array_equal(found, wanted)


@on_targets
def test_numbers_are_those_of_torch_on_cuda(target):
    y = np.zeros((2, 16), "f4")

    def body(B):
        i = fx.thread_idx.x
        counter, offset, place = fx.random.torch_position(i, 256)
        assert place == 0
        B[0, i] = fx.random.uniform(0, counter, offset)[0]
        B[1, i] = fx.random.normal(0, counter, offset)[0]

    run(body, y, block=16, target=target)
    np.testing.assert_allclose(y[0, :10], TORCH_RAND, atol=5e-5)
    np.testing.assert_allclose(y[1, :9], TORCH_RANDN, atol=5e-5)


@on_targets
def test_torch_positions(target):
    """The loop of torch's kernel: each thread takes four numbers for each of its rounds, for
    elements that are `threads` apart."""
    threads, start, count = 96, 24, 1000
    y = np.zeros((3, count), "i8")

    def body(B):
        for i in range(fx.thread_idx.x, count, 64):
            B[0, i], B[1, i], B[2, i] = fx.random.torch_position(i, threads, start)

    run(body, y, block=64, target=target)
    wanted = np.full_like(y, -1)
    for thread in range(threads):
        offset = start // 4
        for first in range(thread, count, 4 * threads):
            for place in range(4):
                if first + place * threads < count:
                    wanted[:, first + place * threads] = thread, offset, place
            offset += 1
    np.testing.assert_array_equal(y, wanted)


@on_targets
def test_distributions(target):
    block, turns = 128, 8
    y = np.zeros((5, turns, block, 4), "f4")
    y[3] = -1

    def body(B):
        i = fx.thread_idx.x
        for turn in range(turns):
            made = [
                fx.random.uniform(11, i, turn),
                fx.random.normal(11, i, turn),
                fx.random.uniform(12, i, turn, low=-2.0, high=6.0),
                fx.random.randint(13, i, turn, low=-3, high=4),
                fx.random.normal(14, i, turn, mean=5.0, std=2.0),
            ]
            for row in fx.range_constexpr(5):
                for j in fx.range_constexpr(4):
                    B[row, turn, i, j] = made[row][j].to(fx.Float32)

    run(body, y, block=block, target=target)
    uniform, normal, wide, integers, moved = y.reshape(5, -1)
    assert 0 <= uniform.min() < 0.01
    assert 0.99 < uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 0.02
    assert abs(np.var(uniform) - 1 / 12) < 0.005
    assert abs(normal.mean()) < 0.05
    assert abs(normal.std() - 1) < 0.05
    assert abs((np.abs(normal) < 1).mean() - 0.6827) < 0.03
    assert -2 <= wide.min() < -1.9
    assert 5.9 < wide.max() < 6
    assert abs(moved.mean() - 5) < 0.1
    assert abs(moved.std() - 2) < 0.1
    values, counts = np.unique(integers, return_counts=True)
    np.testing.assert_array_equal(values, np.arange(-3, 4))
    assert counts.min() > 0.8 * integers.size / 7
    i = np.arange(block, dtype="u8")
    words = philox(np.stack([i * 0, i * 0, i, i * 0], axis=1), (13, 0))
    np.testing.assert_array_equal(y[3, 0], (words % 7).astype("i4") - 3)


def test_the_greatest_word_is_the_lower_bound():
    """(0, 1] becomes [0, 1), as in torch."""
    from fly_trace.primitives import random

    y = np.zeros(2, "f4")
    x = np.array([ONES, 0], "u4")

    def body(A, B):
        i = fx.thread_idx.x
        B[i] = random._between(random._fraction(A[i]), 0.0, 1.0)

    run(body, x, y, block=2, target="gfx1100")
    np.testing.assert_array_equal(y, np.array([0, 2.0**-33], "f4"))


def test_refusals():
    x = np.zeros(1, "f4")

    def body(A):
        A[0] = fx.random.uniform(A[0], 0)[0]

    with pytest.raises(Exception, match="a seed, counter or offset is an integer, not a dynamic"):
        run(body, x, block=1, target="gfx942")
