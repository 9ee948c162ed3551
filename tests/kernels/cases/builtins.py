"""Operations without a name in C: clang's builtins, which the host does not have."""

from __future__ import annotations

import numpy as np
from fly_target.registry import find

from kernels.case import EXACT, INEXACT, Launch, Near, blocks, case

Random = np.random.Generator
N = 192
# gfx1250 has no dot products of f16.
WITH_DOTS = tuple(target for target in EXACT if find(target).family != "CDNA5")


def _permuted(a: int, b: int, selector: int) -> int:
    """v_perm_b32: bytes 0 to 3 are `b`'s, 4 to 7 `a`'s, 8 to 11 signs of every other byte, 12 is 0,
    and higher selectors give 0xff."""
    both = b | a << 32
    result = 0
    for place in range(4):
        chosen = selector >> 8 * place & 255
        if chosen < 8:
            byte = both >> 8 * chosen & 255
        elif chosen < 12:
            byte = 255 * (both >> 16 * (chosen - 8) + 15 & 1)
        else:
            byte = 0 if chosen == 12 else 255
        result |= byte << 8 * place
    return result


def _parts(v: int, size: int, signed: bool = False) -> list[int]:
    parts = [v >> at & (1 << size) - 1 for at in range(0, 32, size)]
    return [p - (p >> size - 1 << size) for p in parts] if signed else parts


def _dot(a: int, b: int, size: int, signed: bool = False) -> int:
    pairs = zip(_parts(a, size, signed), _parts(b, size, signed), strict=True)
    return sum(x * y for x, y in pairs)


def _field(a: int, at: int, width: int, signed: bool) -> int:
    """Returns `width` bits of `a` from `at` on; `a` is extended with zeros or, if signed, with bit
    31."""
    extended = a - (a >> 31 << 32) if signed else a
    value = extended >> at & (1 << width) - 1
    return value - (value >> width - 1 << width) if signed and width else value


def _bytes(a: int, b: int) -> list[int]:
    quads = list(zip(_parts(a, 8), _parts(b, 8), strict=True))
    halves = zip(_parts(a, 16), _parts(b, 16), strict=True)
    rounding = _parts(0x01000101, 8)
    lerp = [(x + y + c) >> 1 for (x, y), c in zip(quads, rounding, strict=True)]
    at, width = b & 31, b >> 8 & 31
    return [
        _permuted(a, b, 0x03060C01),
        _permuted(a, b, 0x0908000D),
        _permuted(a, b, b & 0x07070707),
        (a << 32 | b) >> 8 * (b & 3),
        (a << 32 | b) >> (a & 31),
        _field(a, at, width, False),
        _field(a, at, width, True),
        sum(abs(x - y) for x, y in quads) + a,
        sum(abs(x - y) for x, y in quads if y) + b,
        sum(abs(x - y) for x, y in halves) + 5,
        sum(byte << 8 * place for place, byte in enumerate(lerp)),
        _dot(a, b, 8) + a,
        _dot(a, b, 4) + b,
        _dot(a, b, 8, True) + a,
        min(_dot(a, b, 8, True) + 0x7FFFFF00, 2**31 - 1),
        b & ~0xFF0000 | min(a & 1023, 255) << 16,
    ]


@case("builtins", host=False)
def bytes(rng: Random) -> Launch:
    pairs = rng.integers(0, 2**32, (N, 2)).astype("u4")
    pairs[:4] = (0, 0), (2**32 - 1, 0x1F1F), (0x80808080, 0x7F7F7F7F), (0x12345678, 2**32 - 1)
    wanted = np.array([[v % 2**32 for v in _bytes(*pair)] for pair in pairs.tolist()], "u4")
    return Launch(
        [pairs, np.zeros_like(wanted), np.int32(N)], **blocks(N, 96), expected={1: wanted}
    )


def _toward_zero(x: np.ndarray) -> np.ndarray:
    """Truncates to f16; overflow gives the largest number."""
    with np.errstate(over="ignore"):
        near = x.astype("f2")
    over = np.abs(near.astype("f8")) > np.abs(x)
    return np.where(over, np.nextafter(near, np.float16(0)), near).view("u2")


@case("builtins", host=False)
def parts(rng: Random) -> Launch:
    x = (rng.standard_normal(N) * 10.0 ** rng.integers(-9, 10, N)).astype("f4")
    x[:9] = 0, -0.0, 1e-40, -1e-40, np.inf, 65519, 65536, -1e-9, 2
    with np.errstate(all="ignore"):
        fract = np.minimum(x - np.floor(x), np.float32(1 - 2.0**-24))
        times = x * np.float32(-3)
    fract[np.isinf(x)] = np.nan  # ∞ - ∞, as LLVM folds it
    mantissa, exponent = np.frexp(x)
    exponent[np.isinf(x)] = 0
    power = (np.arange(N) % 80 - 40) * 4
    tiny = np.finfo("f4").tiny
    positive = ~np.signbit(x) & ((x < tiny) | np.isinf(x))
    chosen = positive | (np.signbit(x) & (x != 0) & (x > -tiny))
    i = np.arange(N)
    packed = np.stack([i * 991 - 70000, -i], 1).clip(-(2**15), 2**15 - 1).astype("i2")
    with np.errstate(over="ignore"):
        scaled = np.ldexp(x.astype("f8"), power).astype("f4")
    floats = np.stack([fract, mantissa, np.clip(x, -0.25, 1.5).astype("f4"), scaled], 1)
    truncated = np.stack([_toward_zero(x), _toward_zero(times)], 1)
    integers = np.stack([exponent, chosen, truncated.view("i4")[:, 0], packed.view("i4")[:, 0]], 1)
    return Launch(
        [x, np.zeros((N, 4), "f4"), np.zeros((N, 4), "i4")],
        **blocks(N, 64),
        expected={1: floats, 2: integers.astype("i4")},
    )


@case("builtins", host=False, portable=False)
def transcendental(rng: Random) -> Launch:
    x = rng.uniform(0.01, 10, N).astype("f4")
    wide = x.astype("f8")
    turns = 2 * np.pi * wide
    scaled = (x * np.float32(4) - np.float32(20)).astype("f8")
    wanted = np.stack(
        [
            np.exp2(scaled),
            np.log2(wide),
            1 / wide,
            1 / np.sqrt(wide),
            np.sqrt(wide),
            np.sin(turns),
            np.cos(turns),
        ],
        1,
    )
    # The ISA guarantees one ulp; sine and cosine are within 2^-20 near zero.
    bound = np.spacing(np.abs(wanted).astype("f4")).astype("f8")
    bound[:, 1] = np.maximum(bound[:, 1], 2.0**-23)
    bound[:, 5:] = np.maximum(bound[:, 5:], 2.0**-20)
    return Launch([x, np.zeros((N, 7), "f4")], **blocks(N, 64), expected={1: Near(wanted, bound)})


def _rounded_bf16(x: np.ndarray) -> np.ndarray:
    bits = x.view("u4")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("u2")


@case("builtins", host=False, targets=WITH_DOTS)
def dot_half(rng: Random) -> Launch:
    """Small integers: sums are exact, in whatever order and precision."""
    return _dot_half(rng, 0)


@case("builtins", host=False, targets=INEXACT, kernel="dot_half")
def dot_half_off(rng: Random) -> Launch:
    """Three terms below 1,024, each off by up to a unit of 2^(9 - 24) and that of a ones'
    complement."""
    return _dot_half(rng, 6 * 2.0**-15)


def _dot_half(rng: Random, bound: float) -> Launch:
    a, b = (rng.integers(-20, 21, (N, 2)).astype("f2") for _ in range(2))
    wide = a.astype("f4"), b.astype("f4")
    straight = (wide[0] * wide[1]).sum(1) + np.arange(N, dtype="f4")
    crossed = (wide[0][:, ::-1] * wide[1]).sum(1) - np.float32(0.5)
    bf16 = [
        _rounded_bf16(wide[0][:, 0] * np.float32(1.01)),
        _rounded_bf16(wide[1][:, 1] * np.float32(0.0037)),
    ]
    negated = -(wide[0] * wide[1]).sum(1) - 3 * np.arange(N, dtype="f4")
    wanted = np.stack([straight, np.clip(crossed, 0, 1), negated], 1)
    return Launch(
        [a, b, np.zeros((N, 3), "f4"), np.zeros((N, 2), "u2")],
        **blocks(N, 64),
        expected={2: Near(wanted, bound) if bound else wanted, 3: np.stack(bf16, 1)},
    )
