"""fx.random, judged by the vectors that Philox's authors publish."""

from __future__ import annotations

import numpy as np
import pytest

import fly.flydsl.compiler as flyc
import fly.flydsl.expr as fx

# Random123's kat_vectors: philox4x32-10 and philox4x64-10, all zeros and all ones.
ZEROS_32 = (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
ONES_32 = (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)
ZEROS_64 = (0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B)
ONES_64 = (0x87B092C3013FE90B, 0x438C3C67BE8D0224, 0x9CC7D7C69CD777B6, 0xA09CAEBF594F0BA0)


@pytest.mark.parametrize(
    ("word", "zeros", "ones"), [(fx.Uint32, ZEROS_32, ONES_32), (fx.Uint64, ZEROS_64, ONES_64)]
)
def test_vectors(word, zeros, ones):
    for fill, wanted in ((0, zeros), (2**word.bits - 1, ones)):
        found = fx.random.universal.philox_impl(*[word(fill)] * 6)
        assert tuple(int(one) for one in found) == wanted
        assert all(one.dtype is word for one in found)


def test_constants_and_values_are_the_same(monkeypatch):
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx942")

    @flyc.kernel
    def kernel(Out: fx.Tensor, Floats: fx.Tensor, seed: fx.Int32):
        words = [*fx.random.randint4x(seed, fx.Uint32(3)), *fx.random.randint4x(7, fx.Uint32(3))]
        for i in fx.range_constexpr(8):
            Out[i] = words[i]
        Floats[0] = fx.random.rand(seed, 3)
        Floats[1] = fx.random.randn(seed, 3)

    @flyc.jit
    def launch(Out: fx.Tensor, Floats: fx.Tensor, seed: fx.Int32):
        kernel(Out, Floats, seed).launch(grid=(1, 1, 1), block=(1, 1, 1))

    out, floats = np.zeros(8, np.uint32), np.zeros(2, np.float32)
    launch(out, floats, 7)
    known = [int(one) for one in fx.random.randint4x(fx.Uint32(7), fx.Uint32(3))]
    assert out.tolist() == [*known, *known]
    uniform = float(fx.random.rand(7, 3))
    assert floats[0] == np.float32(uniform)
    assert 0 <= uniform < 1
    words = np.array(known[:2], np.uint32).view(np.int32).astype(np.float64)
    u = np.where(words < 0, -words - 1, words) * 2.0**-31
    wanted = np.sqrt(-2 * np.log(u[0])) * np.cos(2 * np.pi * u[1])
    np.testing.assert_allclose(floats[1], wanted, rtol=1e-3)


def test_a_wide_offset_fills_two_words():
    wide = fx.random.randint(fx.Uint64(5), fx.Uint64(2**32 + 1))
    assert int(wide) != int(fx.random.randint(5, 1))
    assert int(fx.random.randint(fx.Uint64(5), fx.Uint64(1))) == int(fx.random.randint(5, 1))
    with pytest.raises(NotImplementedError, match="words of 32 or 64 bits, not i16"):
        fx.random.universal.uint_to_uniform_float(fx.Int16(1))
