"""The order of keys by their bits, as radix sorts have it."""

from __future__ import annotations

from typing import Any

from fly_trace.values.dtypes import BOOL, U8, U16, U32, U64

from fly.flydsl.extension.coop._common import number

_WORDS = {8: U8, 16: U16, 32: U32, 64: U64}


def word_of(key: Any) -> Any:
    """The bits of an integer as an unsigned one."""
    return number(key).bitcast(_WORDS[number(key).dtype.bits])


def ordered_bits(key: Any) -> Any:
    """An unsigned integer that orders like the key. -0.0 and 0.0 are equal; a NaN comes behind all
    numbers, or before them if its sign is set."""
    key = number(key)
    dtype = key.dtype
    if dtype is BOOL:
        return key.select(U8(1), U8(0))
    if dtype.bits not in _WORDS:
        raise TypeError(f"radix sorts take keys of 8 to 64 bits here, not {dtype.__name__}")
    word, top = _WORDS[dtype.bits], 1 << (dtype.bits - 1)
    bits = key.bitcast(word)
    if dtype.is_float:
        bits = (bits == word(top)).select(word(0), bits)
        return ((bits & word(top)) != 0).select(~bits, bits | word(top))
    return bits ^ word(top) if dtype.kind == "int" else bits


def width_of(key: Any) -> int:
    dtype = number(key).dtype
    return 1 if dtype is BOOL else dtype.bits


def bits_less(descending: bool, begin: int, end: int | None, decomposer: Any) -> Any:
    """`less` of two keys by bits from `begin` to before `end`."""

    def fields(key: Any) -> tuple[Any, ...]:
        if decomposer is None:
            return (key,)
        found = decomposer(key)
        return tuple(found) if isinstance(found, (tuple, list)) else (found,)

    def parts(key: Any) -> list[Any]:
        """The bits of each field that count, the most significant field first."""
        found: list[Any] = []
        given = fields(key)
        whole = sum(width_of(one) for one in given)
        last = whole if end is None else end
        if not 0 <= begin <= last <= whole:
            raise ValueError(f"bits {begin} to {last} of keys of {whole} bits")
        low = 0
        for one in reversed(given):
            width = width_of(one)
            first, stop = max(begin - low, 0), min(last - low, width)
            if first < stop:
                bits = ordered_bits(one)
                mask = ((1 << stop) - 1) & ~((1 << first) - 1)
                found.insert(0, bits & bits.dtype(mask))
            low += width
        return found

    def less(a: Any, b: Any) -> Any:
        if descending:
            a, b = b, a
        result: Any = BOOL(False)
        for one, other in reversed([*zip(parts(a), parts(b), strict=True)]):
            result = (one < other) | ((one == other) & result)
        return result

    return less
