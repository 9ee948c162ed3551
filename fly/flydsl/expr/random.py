"""`flydsl.expr.random`: random numbers by Philox, a function of a seed and an offset.

The words are those of `fx.random` of the language; FlyDSL's arrangement is Triton's.
"""

from __future__ import annotations

import sys
from typing import Any

from fly_trace.expr import math
from fly_trace.primitives.random import philox as _philox
from fly_trace.values.dtypes import F32, I32, U32, U64

from fly.flydsl.numbers.operators import typed
from fly.flydsl.numbers.raw import lift

__all__ = ["rand", "rand4x", "randint", "randint4x", "randn", "randn4x"]

_SCALE = 4.6566127342e-10  # less than 2**-31, so that the product stays below 1
_LEAST = 1.0e-7  # of what a logarithm is taken
_TWO_PI = 6.283185307179586


def _words(value: Any) -> tuple[Any, Any]:
    """The lower and upper half of an integer."""
    wide = U64(value)
    return U32(wide), U32(wide >> U64(32))


def randint4x(seed: Any, offset: Any, n_rounds: int = 10) -> tuple[Any, Any, Any, Any]:
    """Four random Uint32 of a seed and an offset, of up to 64 bits."""
    given = typed(lift(offset))
    low, high = _words(given) if given.dtype.bits > 32 else (U32(given), U32(0))
    return _philox((low, high, U32(0), U32(0)), _words(typed(lift(seed))), n_rounds)


def randint(seed: Any, offset: Any, n_rounds: int = 10) -> Any:
    """A random Uint32: the first of four."""
    return randint4x(seed, offset, n_rounds)[0]


def uint_to_uniform_float(word: Any) -> Any:
    """A Float32 of [0, 1) for 32 random bits."""
    signed = I32(word)
    folded = (signed < I32(0)).select(-signed - I32(1), signed)
    return F32(folded) * F32(_SCALE)


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


def philox(seed: Any, c0: Any, c1: Any, c2: Any, c3: Any, n_rounds: int = 10) -> tuple[Any, ...]:
    """Philox4x32 of a counter of four words, with the seed as key."""
    return _philox(tuple(map(U32, (c0, c1, c2, c3))), _words(typed(lift(seed))), n_rounds)


universal = sys.modules[__name__]
