"""The tables by which a loader finds symbols: their names, `.gnu.hash` and `.hash`.

Sources: the System V ABI (`.hash`); the GNU hash table as glibc reads it, with the number of
buckets and the size of the filter that ld.lld chooses.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate

from fly_image.elf import Symbol


def strings(names: Sequence[str]) -> tuple[bytes, list[int]]:
    """A table of strings, and the offset of each name."""
    encoded = [name.encode() for name in names]
    offsets = list(accumulate((len(one) + 1 for one in encoded), initial=1))
    return b"\0" + b"".join(one + b"\0" for one in encoded), offsets[:-1]


def gnu_hash(
    symbols: list[tuple[Symbol, int]],
) -> tuple[list[tuple[Symbol, int]], bytes]:
    """The symbols by their buckets, and the table `.gnu.hash` for them: a Bloom filter of 12 bits a
    symbol, buckets of about four symbols, and the hashes, whose lowest bit ends a bucket."""
    buckets = max(len(symbols) // 4, 1)
    hashed = []
    for symbol in symbols:
        value = 5381
        for byte in symbol[0].name.encode():
            value = value * 33 + byte & 0xFFFFFFFF
        hashed.append((value % buckets, value, symbol))
    hashed.sort(key=lambda one: one[0])
    words = 1 << (len(symbols) * 12 // 64).bit_length()
    bloom = [0] * words
    first = [0] * buckets
    chain = []
    for at, (bucket, value, _) in enumerate(hashed):
        bloom[value // 64 & words - 1] |= 1 << value % 64 | 1 << (value >> 26) % 64
        first[bucket] = first[bucket] or at + 1
        is_last = at + 1 == len(hashed) or hashed[at + 1][0] != bucket
        chain.append(value | 1 if is_last else value & ~1)
    form = f"<4I{words}Q{buckets}I{len(chain)}I"
    table = struct.pack(form, buckets, 1, words, 26, *bloom, *first, *chain)
    return [symbol for _, _, symbol in hashed], table


def hash_table(names: Sequence[str]) -> bytes:
    """The table `.hash`, with as many buckets as symbols. The first symbol has no name."""
    count = len(names) + 1
    buckets, chains = [0] * count, [0] * count
    for at, name in enumerate(names, start=1):
        value = 0
        for byte in name.encode():
            value = (value << 4) + byte
            high = value & 0xF0000000
            value = (value ^ high >> 24) & ~high & 0xFFFFFFFF
        chains[at] = buckets[value % count]
        buckets[value % count] = at
    return struct.pack(f"<{2 + 2 * count}I", count, count, *buckets, *chains)
