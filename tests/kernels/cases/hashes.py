"""Checksums, digests, random numbers."""

from __future__ import annotations

import hashlib
import zlib

import numpy as np

from kernels.case import Launch, blocks, case

Random = np.random.Generator


def _crc32(rng: Random) -> Launch:
    lengths = rng.integers(0, 40, 70)
    lengths[3] = 0
    ends = lengths.cumsum().astype("i4")
    data = rng.integers(0, 256, ends[-1]).astype("u1")
    messages = np.split(data, ends[:-1])
    wanted = np.array([zlib.crc32(m.tobytes()) for m in messages], "u4")
    return Launch(
        [data, ends, np.zeros(70, "u4"), np.int32(70)], **blocks(70, 256), expected={2: wanted}
    )


@case("hash")
def crc32_bits(rng: Random) -> Launch:
    return _crc32(rng)


@case("hash")
def crc32_table(rng: Random) -> Launch:
    return _crc32(rng)


@case("hash")
def sha256(rng: Random) -> Launch:
    n = 70
    messages = rng.integers(0, 256, (n, 55)).astype("u1")
    lengths = (np.arange(n) % 56).astype("i4")
    digests = [
        hashlib.sha256(m[:length].tobytes()).digest()
        for m, length in zip(messages, lengths, strict=True)
    ]
    wanted = np.frombuffer(b"".join(digests), ">u4").astype("u4")
    return Launch(
        [messages, lengths, np.zeros(8 * n, "u4"), np.int32(n)],
        **blocks(n, 64),
        expected={2: wanted},
    )


@case("hash")
def philox(rng: Random) -> Launch:
    """Compared with Python integers, because NumPy's own generator uses the 64-bit variant."""
    n, key = 96, rng.integers(0, 2**32, 2).astype("u4")
    wanted = np.zeros((n, 4), "u4")
    for i in range(n):
        c, k = [i, 0, 0, 0], [int(word) for word in key]
        for _ in range(10):
            a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [b >> 32 ^ c[1] ^ k[0], b & 0xFFFFFFFF, a >> 32 ^ c[3] ^ k[1], a & 0xFFFFFFFF]
            k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
        wanted[i] = c
    return Launch(
        [np.zeros((n, 4), "u4"), key.view("V8")[0]], **blocks(n, 48), expected={0: wanted}
    )


@case("hash")
def xorshift(rng: Random) -> Launch:
    state = rng.integers(1, 2**63, 80).astype("u8")
    wanted = state.copy()
    for i in range(len(state)):
        for _ in range(i + 1):
            s = wanted[i]
            s ^= s >> np.uint64(12)
            s ^= s << np.uint64(25)
            wanted[i] = s ^ s >> np.uint64(27)
    with np.errstate(over="ignore"):
        top = wanted * np.uint64(0x2545F4914F6CDD1D) >> np.uint64(40)
    uniform = (top.astype("f8") * 2.0**-24).astype("f4")
    return Launch([state, np.zeros(80, "f4")], **blocks(80, 80), expected={0: wanted, 1: uniform})
