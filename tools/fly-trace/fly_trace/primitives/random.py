"""`fx.random`: random numbers by Philox4x32-10, a function of a seed, a counter and an offset.

Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. The
arrangement of the words is cuRAND's: the seed is the key, the offset the lower half of Philox's
counter, and the counter of a thread or element the upper half. There is no state: the same
arguments give the same numbers, on every target, in any order.
"""

from __future__ import annotations

from typing import Any

from fly_trace import expr as fx
from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.values.conversion import scalar

__all__ = ["bits", "normal", "philox", "randint", "torch_position", "uniform"]

_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_WEYL = 0x9E3779B9, 0xBB67AE85  # the golden ratio, and the square root of 3 minus 1
_STEP = 2.0**-32
_TWO_PI = 6.283185307179586
_HALF = 0xFFFF_FFFF


def philox(counter: Any, key: Any, rounds: int = 10) -> tuple[Any, Any, Any, Any]:
    """Philox4x32: four random u32.

    counter: four u32, or Python ints. key: two. rounds: a Python int. Cost: for each round 2
    multiplications of 32 to 64 bits, 4 exclusive ors and 2 additions.
    """
    a, b, c, d = (_word(one) for one in counter)
    low, high = (_word(one) for one in key)
    for turn in fx.range_constexpr(rounds):
        if turn > 0:
            low, high = low + _WEYL[0], high + _WEYL[1]
        first, second = a.to(fx.Uint64) * _MULTIPLIERS[0], c.to(fx.Uint64) * _MULTIPLIERS[1]
        a, b, c, d = (
            _upper(second) ^ b ^ low,
            second.to(fx.Uint32),
            _upper(first) ^ d ^ high,
            first.to(fx.Uint32),
        )
    return a, b, c, d


def bits(seed: Any, counter: Any, offset: Any = 0) -> tuple[Any, Any, Any, Any]:
    """Four random u32.

    seed, counter, offset: integers of at most 64 bits, such as a parameter of the kernel, the
    element's number, and how many calls were made for it before. Cost: that of `philox`; what all
    threads share is computed in scalar registers.
    """
    return philox((*_halves(offset), *_halves(counter)), _halves(seed))


def uniform(
    seed: Any, counter: Any, offset: Any = 0, *, low: float = 0.0, high: float = 1.0
) -> tuple[Any, Any, Any, Any]:
    """Four f32, uniform from `low` up to, but not including, `high`: those of torch on CUDA.

    seed, counter, offset: as of `bits`. Each is one of 2**32 values; near 0 they are 2**-32 apart.
    Cost: `bits`, and for each number a conversion and a fused multiplication; for others than 0 and
    1 four more.
    """
    return tuple(_between(_fraction(one), low, high) for one in bits(seed, counter, offset))


def normal(
    seed: Any, counter: Any, offset: Any = 0, *, mean: float = 0.0, std: float = 1.0
) -> tuple[Any, Any, Any, Any]:
    """Four f32 of a normal distribution, by Box and Muller's transform: those of torch on CUDA, but
    for the error of its sine and logarithm.

    seed, counter, offset: as of `bits`. No number is further than 6.7 `std` from `mean`. Cost:
    `bits`, and for two numbers a logarithm, a square root, a sine and a cosine.
    """
    a, b, c, d = bits(seed, counter, offset)
    made = (*_box_muller(a, b), *_box_muller(c, d))
    if mean == 0.0 and std == 1.0:
        return made
    return tuple(one * std + mean for one in made)


def randint(
    seed: Any, counter: Any, offset: Any = 0, *, low: Any = 0, high: Any
) -> tuple[Any, Any, Any, Any]:
    """Four i32 from `low` up to, but not including, `high`: those of torch on CUDA, for ranges of
    less than 2**28.

    seed, counter, offset: as of `bits`. low, high: i32, or Python ints; what dynamic ones without a
    number between them give is not specified. Numbers are taken modulo the range: some are more
    likely, by one part in 2**32 / range. Cost: `bits`, and for each number a remainder.
    """
    if isinstance(low, int) and isinstance(high, int) and low >= high:
        tracing.refuse(f"fx.random.randint needs low < high, not {low} and {high}")
    least, most = (scalar(one, "a bound of fx.random.randint").to(fx.Int32) for one in (low, high))
    count = (most - least).to(fx.Uint32)
    return tuple((one % count).to(fx.Int32) + least for one in bits(seed, counter, offset))


def torch_position(index: Any, threads: Any, offset: Any = 0) -> tuple[Any, Any, Any]:
    """Where an element has its number in the stream of torch's generator on CUDA: the counter and
    the offset for this module's functions, and which of the four numbers it is, an i32.

    index: the element. threads: those of torch's kernel: 256 · min(ceil(n / 256), most resident
    blocks of 256 threads) for n elements. offset: that of the generator
    (`torch.cuda.default_generators[0].get_offset()`), which a call increases by
    4 · ceil(n / (4 · threads)).
    """
    place, count = (scalar(one, "a position").to(fx.Int64) for one in (index, threads))
    turn = place // count
    first = scalar(offset, "the offset of a generator").to(fx.Int64) // 4
    return place % count, first + turn // 4, (turn % 4).to(fx.Int32)


def _between(fraction: Any, low: Any, high: Any) -> Any:
    """Maps (0, 1] to [low, high) as torch does: the upper bound becomes the lower one."""
    value = fraction
    if (low, high) != (0.0, 1.0):
        value = fraction * (high - low) + low
    return fx.where(value == high, value.dtype(low), value)


def _fraction(word: Any) -> Any:
    """A number of (0, 1]."""
    return fx.fma(word.to(fx.Float32), _STEP, _STEP / 2)


def _box_muller(a: Any, b: Any) -> tuple[Any, Any]:
    angle = fx.fma(b.to(fx.Float32), _STEP * _TWO_PI, _STEP * _TWO_PI / 2)
    radius = fx.sqrt(fx.log(_fraction(a)) * -2.0)
    return fx.sin(angle) * radius, fx.cos(angle) * radius


def _upper(product: Any) -> Any:
    return (product >> 32).to(fx.Uint32)


def _word(value: Any) -> Any:
    if isinstance(value, int):
        return fx.Uint32(value & _HALF)
    found = scalar(value, "a word of fx.random")
    if not found.dtype.is_integer:
        tracing.refuse(f"a word of fx.random is an integer, not {describe(value)}")
    return found.to(fx.Uint32)


def _halves(value: Any) -> tuple[Any, Any]:
    """The lower and the upper 32 bits of an integer; one of 32 bits or less is extended."""
    if isinstance(value, int):
        return fx.Uint32(value & _HALF), fx.Uint32(value >> 32 & _HALF)
    found = scalar(value, "a seed, counter or offset")
    if not found.dtype.is_integer or found.dtype.bits > 64:
        tracing.refuse(f"a seed, counter or offset is an integer, not {describe(value)}")
    whole = found.to(fx.Uint64)
    return whole.to(fx.Uint32), _upper(whole)
