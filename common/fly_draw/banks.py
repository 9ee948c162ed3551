"""LDS banks: which one an element lies in, and how many ways an access conflicts.

LDS has BANKS banks of four bytes. Lanes of one pass that want different words of one bank wait for
each other; the number of such words is the degree of the conflict, 1 where there is none. A picture
knows no kernel, so a pass is taken to serve as many lanes, in their order, as fill the banks once:
32 for four bytes a lane, 8 for sixteen. Which lanes of a wave really go together differs by target
and width: `fly-run --stats` counts by that model (`fly_run.emulator.measure`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

BANKS = 32
BANK_BYTES = 4


def bank(address: int, banks: int = BANKS) -> int:
    """The bank of the byte at `address`."""
    return address // BANK_BYTES % banks


def degree(addresses: Sequence[int], width: int, banks: int = BANKS) -> int:
    """The worst conflict of lanes that read `width` bytes each at `addresses`, in their order."""
    at_once = max(1, banks * BANK_BYTES // max(width, BANK_BYTES))
    return max(
        (
            _words(addresses[first : first + at_once], width, banks)
            for first in range(0, len(addresses), at_once)
        ),
        default=1,
    )


def _words(addresses: Sequence[int], width: int, banks: int) -> int:
    """The most different words of one bank that these lanes want."""
    wanted: dict[int, set[int]] = defaultdict(set)
    for address in addresses:
        for byte in range(address, address + width, BANK_BYTES):
            wanted[bank(byte, banks)].add(byte // BANK_BYTES)
        wanted[bank(address + width - 1, banks)].add((address + width - 1) // BANK_BYTES)
    return max(map(len, wanted.values()), default=1)
