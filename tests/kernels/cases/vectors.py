"""Vector types, unaligned and generic pointers, conversions, packed arithmetic."""

from __future__ import annotations

import numpy as np

from kernels.case import Launch, blocks, case

Random = np.random.Generator
N = 96


@case("vectors")
def vector_widths(rng: Random) -> Launch:
    c = rng.integers(-128, 128, (N, 16)).astype("i1")
    s = rng.integers(-(2**15), 2**15, (N, 8)).astype("i2")
    i = rng.integers(-(2**31), 2**31, (N, 4)).astype("i4")
    wide = rng.integers(-(2**63), 2**63, (N, 4))
    d = rng.standard_normal((N, 2))
    order = [int(digit, 16) for digit in "0f1e2d3c4b5a6978"]

    three = np.stack([i[:, 2] - i[:, 1], i[:, 0] - i[:, 1], i[:, 1] - i[:, 0], np.arange(N)], 1)
    with np.errstate(over="ignore"):
        turned = wide[:, ::-1] + (wide >> 7)
    wanted = {
        5: np.ascontiguousarray(c[:, order]),
        6: s[:, [7, 3, 6, 2, 5, 1, 4, 0]] * np.int16(3),
        7: three.astype("i4"),
        8: turned,
        9: d[:, ::-1] * [0.5, -2],
    }
    given = [c, s, i, wide, d]
    return Launch([*given, *map(np.zeros_like, given)], **blocks(N, 48), expected=wanted)


@case("vectors")
def unaligned(rng: Random) -> Launch:
    data = rng.integers(0, 256, N * 19 + 19).astype("u1")
    rows = data[: N * 19 + 1]
    wanted = np.zeros_like(data)
    for i in range(N):
        row, out = rows[i * 19 : i * 19 + 19], wanted[i * 19 : i * 19 + 19]
        first = int.from_bytes(row[1:9].tobytes(), "little") * 3
        second = int.from_bytes(row[9:13].tobytes(), "little") - i
        third = int.from_bytes(row[13:15].tobytes(), "little") ^ 0x55
        made = b"".join(
            (v % 2 ** (8 * size)).to_bytes(size, "little")
            for v, size in ((first, 8), (second, 4), (third, 2))
        )
        out[:14] = np.frombuffer(made, "u1")
        out[14:17] = row[15:18]
        out[17:] = row[0], i * 19 & 255
    return Launch([data, np.zeros_like(data)], **blocks(N, 32), expected={1: wanted})


@case("vectors")
def generic_pointers(rng: Random) -> Launch:
    groups = 2
    data = rng.integers(0, 256, groups * 320).astype("u1")
    wanted = np.zeros((groups, 80), "i4")
    for group in range(groups):
        own = data[group * 320 : group * 320 + 320]
        # Past the workgroup's bytes of LDS nothing is read: work item 79 (79 % 3 == 1) ends at 91.
        for t in range(80):
            private = (int(own[4 * t]) + np.arange(12) * t).astype("u1")
            where = (data[t:], own[t:] ^ 0x11, private)[t % 3]
            wanted[group, t] = (where[:12].astype("i4") << (np.arange(12) & 7)).sum()
    return Launch([data, np.zeros_like(wanted)], **blocks(160, 80), expected={1: wanted})


@case("vectors")
def convert(rng: Random) -> Launch:
    n = 200
    v = (rng.standard_normal(n) * 10.0 ** rng.integers(-4, 5, n)).astype("f4")
    v[abs(v) > 30000] = 12345.678
    v[:6] = 0, -0.0, 0.5, -0.5, 65.53, -32768
    big = rng.integers(-(2**63), 2**63, n) >> rng.integers(0, 63, n)
    unsigned = big.view("u8")
    low = big.astype("i1").astype("i4"), big.astype("u1"), big.astype("u2"), big.astype("i2")
    i32 = np.stack([v.astype("i4"), v.astype("i4").astype("i2") + low[0]], 1)
    u32 = np.stack([abs(v).astype("u4"), low[1].astype("u4") << 8 | low[2] >> 8], 1)
    i64 = np.stack([(v.astype("f8") * 1e6).astype("i8"), (v * np.float32(1e6)).astype("i8")], 1)
    f64 = np.stack([big.astype("f8"), unsigned.astype("f8") + v], 1)
    f16 = np.stack([v.astype("f2"), low[3].astype("f4").astype("f2")], 1)
    back = np.stack(
        [
            (v + np.float32(0.1)).astype("f2").astype("f4"),
            big.astype("f4"),
            unsigned.astype("f4") + low[1].astype("f4"),
        ],
        1,
    )
    wanted = {2: i32.astype("i4"), 3: u32.astype("u4"), 4: i64, 5: f64, 6: f16, 7: back}
    out = [np.zeros_like(a) for a in wanted.values()]
    return Launch([v, big, *out, np.int32(n)], **blocks(n, 64), expected=wanted)


@case("vectors")
def convert_bf16(rng: Random) -> Launch:
    bits = rng.integers(0, 2**32, N).astype("u4")
    bits[:8] = 0, 0x80000000, 0x7F800000, 0x7F7FFFFF, 0x3F808000, 0x3F818000, 0x00008000, 0x7F800001
    v = bits.view("f4")
    # The nearest of the two neighbours that have 16 bits; of two equally near, the even one.
    made = np.zeros(N, "u2")
    for i, (word, value) in enumerate(zip(bits.tolist(), v, strict=True)):
        down, rest = divmod(word, 2**16)
        if np.isnan(value):
            made[i] = down | 64
        else:
            made[i] = down + (rest > 2**15 or (rest == 2**15 and down % 2))
    back = (made.astype("u4") << 16).view("f4")
    with np.errstate(all="ignore"):
        wanted = {1: made, 2: back * np.float32(1.5)}
    return Launch([v, np.zeros(N, "u2"), np.zeros(N, "f4")], **blocks(N, 96), expected=wanted)


@case("vectors")
def packed_half(rng: Random) -> Launch:
    x, y = (rng.standard_normal((N, 4)).astype("f2") * np.float16(8) for _ in range(2))
    x[0], y[0] = (65504, -65504, np.inf, 6e-8), (65504, 1, -np.inf, 6e-8)
    x[1], y[1] = (0.001, 6e-5, -6e-5, 1), (0.001, 0.5, 0.3, 6e-8)
    with np.errstate(all="ignore"):
        wanted = np.stack(
            [
                x + y,
                x * y - y,
                -x * y[:, ::-1] + np.float16(0.5),
                np.fmax(x, y[:, [2, 3, 0, 1]]) - np.fmin(x, y),
            ],
            1,
        )
    return Launch([x, y, np.zeros_like(wanted)], **blocks(N, 32), expected={2: wanted})


@case("vectors")
def packed_integers(rng: Random) -> Launch:
    x = rng.integers(-(2**15), 2**15, (N, 4)).astype("i2")
    b = rng.integers(0, 2**16, (N, 4)).astype("u2")
    y, u = b.view("i2"), x.view("u2")
    wanted = np.stack(
        [
            x * y + y,
            (x >> (y & 15)) - (y << 2),
            np.maximum(x, y) ^ np.minimum(x, y),
            ((u >> 3) + np.maximum(u, b)).view("i2"),
        ],
        1,
    )
    dots = (x.view("i1").astype("i4") * y.view("i1").astype("i4")).sum(1) + np.arange(N)
    out = [np.zeros_like(wanted), np.zeros(N, "i4")]
    return Launch([x, b, *out], **blocks(N, 32), expected={2: wanted, 3: dots.astype("i4")})
