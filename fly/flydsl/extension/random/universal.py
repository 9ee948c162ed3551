"""Philox 4x32 and 4x64 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011), in
Triton's arrangement of seed and offset, and what is made of the words."""

from __future__ import annotations

from typing import Any

from fly_trace.expr import math
from fly_trace.values.dtypes import F32, I32, I64, U32, U64, U128, DType

from fly.flydsl.numbers.operators import typed
from fly.flydsl.numbers.raw import lift

__all__ = ["randint", "randint4x", "rand", "rand4x", "randn", "randn4x"]  # noqa: RUF022  FlyDSL's

# Word → the type of a product; the multipliers and the steps of the keys.
_VARIANTS = {
    32: (U32, U64, (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)),
    64: (
        *(U64, U128, (0xD2E7470EE14C6C93, 0xCA5A826395121157)),
        (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B),
    ),
}
# Word → the signed type, and a factor that keeps the greatest product below 1.
_UNIFORM = {32: (I32, 4.6566127342e-10), 64: (I64, 1.0842020432385337e-19)}
_LEAST = 1.0e-7  # of what a logarithm is taken
_TWO_PI = 6.283185307179586


def _bits(word: Any, what: str) -> int:
    dtype: DType = typed(lift(word)).dtype
    if dtype.bits not in _VARIANTS:
        raise NotImplementedError(f"{what} takes words of 32 or 64 bits, not {dtype.name}")
    return dtype.bits


def philox_impl(
    c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any, n_rounds: int = 10
) -> tuple[Any, ...]:
    """The rounds of Philox on four words of a counter and two of a key."""
    word, wide, (multiplier_a, multiplier_b), steps = _VARIANTS[_bits(c0, "philox")]
    counter, key = [word(one) for one in (c0, c1, c2, c3)], [word(k0), word(k1)]
    shift = wide(word.bits)
    for _ in range(n_rounds):
        a = wide(counter[0]) * wide(multiplier_a)
        b = wide(counter[2]) * wide(multiplier_b)
        counter = [
            word(b >> shift) ^ counter[1] ^ key[0],
            word(b),
            word(a >> shift) ^ counter[3] ^ key[1],
            word(a),
        ]
        key = [one + word(step) for one, step in zip(key, steps, strict=True)]
    return tuple(counter)


def philox(seed: Any, c0: Any, c1: Any, c2: Any, c3: Any, n_rounds: int = 10) -> tuple[Any, ...]:
    """Philox of a counter, with a seed of up to 64 bits as the key."""
    wide = U64(seed)
    if _bits(c0, "philox") == 32:
        key = U32(wide), U32(wide >> U64(32))
    else:
        key = wide, U64(0)
    return philox_impl(c0, c1, c2, c3, *key, n_rounds)


def randint4x(seed: Any, offset: Any, n_rounds: int = 10) -> tuple[Any, ...]:
    """Four random Uint32 of a seed and an offset, each of up to 64 bits."""
    given = typed(lift(offset))
    high = U32(U64(given) >> U64(32)) if given.dtype.bits > 32 else U32(0)
    return philox(seed, U32(given), high, U32(0), U32(0), n_rounds)


def randint(seed: Any, offset: Any, n_rounds: int = 10) -> Any:
    """A random Uint32: the first of four."""
    return randint4x(seed, offset, n_rounds)[0]


def uint_to_uniform_float(word: Any) -> Any:
    """A Float32 of [0, 1) for a word of random bits."""
    signed, scale = _UNIFORM[_bits(word, "a uniform number")]
    number = signed(word)
    folded = (number < signed(0)).select(-number - signed(1), number)
    return F32(folded) * F32(scale)


def rand4x(seed: Any, offset: Any, n_rounds: int = 10) -> tuple[Any, ...]:
    """Four Float32, uniform in [0, 1)."""
    return tuple(map(uint_to_uniform_float, randint4x(seed, offset, n_rounds)))


def rand(seed: Any, offset: Any, n_rounds: int = 10) -> Any:
    """A Float32, uniform in [0, 1)."""
    return uint_to_uniform_float(randint(seed, offset, n_rounds))


def pair_uniform_to_normal(u1: Any, u2: Any) -> tuple[Any, Any]:
    """Two normally distributed numbers of two uniform ones, by Box and Muller's transform."""
    angle = F32(_TWO_PI) * u2
    radius = math.sqrt(F32(-2.0) * math.log(u1.maximumf(F32(_LEAST))))
    return radius * math.cos(angle), radius * math.sin(angle)


def randn4x(seed: Any, offset: Any, n_rounds: int = 10) -> tuple[Any, ...]:
    """Four normally distributed Float32."""
    a, b, c, d = rand4x(seed, offset, n_rounds)
    return (*pair_uniform_to_normal(a, b), *pair_uniform_to_normal(c, d))


def randn(seed: Any, offset: Any, n_rounds: int = 10) -> Any:
    """A normally distributed Float32."""
    a, b, *_ = randint4x(seed, offset, n_rounds)
    return pair_uniform_to_normal(uint_to_uniform_float(a), uint_to_uniform_float(b))[0]
