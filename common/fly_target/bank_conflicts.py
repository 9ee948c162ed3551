"""How LDS serves a wave: its banks, and which lanes it serves together. A model, of each target.

Banks are 4 bytes wide; there are 32 of them. A wave's access takes phases, in each of which some
lanes may not meet in a bank with different dwords. 4-byte accesses: 32 lanes at once; wider ones:
as many as ask for 128 bytes together. They are consecutive lanes, except for 12- and 16-byte loads
on CDNA, whose groups of eight are those of the Composable Kernel documentation ("Understanding AMD
GPU LDS and Bank Conflicts") and of the measurements published with HipKittens (arXiv:2511.08083).
The same measurements show 64 banks for 8- and 16-byte loads on gfx950, with twice the lanes in a
phase; what was not measured there is taken as on gfx942. Atomics are taken as stores of their size.

`Target.lds_banks` says which of this a target has. `fly-run --stats` counts a kernel's cycles by
it, `fly_draw` a picture's conflicts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from fly_target.target import Target

LANES = 64  # of the longest waves; a wave of 32 has the first half of the phases
BANK_BYTES = 4
# First lanes of the two runs of four that are one phase of a 16-byte load; the same behind lane 32.
CROSSED = ((0, 20), (4, 16), (8, 28), (12, 24))
# Where there are twice the banks, two of these groups go together.
DOUBLED = ((0, 3), (1, 2))


def banks(target: Target, kind: str, size: int) -> int:
    """How many banks serve a load or store (`kind`) of `size` bytes a lane."""
    doubled = (kind, size) in target.lds_banks.doubled
    return 2 * target.lds_banks.count if doubled else target.lds_banks.count


def phases(target: Target, kind: str, size: int) -> list[tuple[int, ...]]:
    """The lanes that LDS serves together, for a load or store of `size` bytes a lane."""
    if target.lds_banks.crossed and kind == "load" and size in (12, 16):
        groups = [
            tuple(lane + n for lane in (half + a, half + b) for n in range(4))
            for half in (0, 32)
            for a, b in CROSSED
        ]
        if (kind, size) in target.lds_banks.doubled:
            return [groups[at + a] + groups[at + b] for at in (0, 4) for a, b in DOUBLED]
        return groups
    together = banks(target, kind, size) * BANK_BYTES // max(BANK_BYTES, 16 if size == 12 else size)
    return [tuple(range(at, at + together)) for at in range(0, LANES, together)]


def degree(target: Target, kind: str, size: int, addresses: Sequence[int]) -> int:
    """The worst conflict of an access of `size` bytes at each of `addresses`, which are one wave's
    from lane 0 on: the most different dwords that lanes of one phase want of one bank. 1 where they
    don't conflict."""
    count = banks(target, kind, size)
    return max(
        _busiest((addresses[lane] for lane in lanes if lane < len(addresses)), size, count)
        for lanes in phases(target, kind, size)
    )


def _busiest(addresses: Iterable[int], size: int, count: int) -> int:
    wanted: dict[int, set[int]] = defaultdict(set)
    for address in addresses:
        for dword in range(address // BANK_BYTES, (address + size - 1) // BANK_BYTES + 1):
            wanted[dword % count].add(dword)
    return max(map(len, wanted.values()), default=1)
