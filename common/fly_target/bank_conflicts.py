"""A model of LDS bank conflicts: the banks, and which lanes of a wave are served together.

LDS has 32 banks, each 4 bytes wide. An access is served in phases. Within a phase, two lanes
conflict if they access different dwords in the same bank. For 4-byte accesses, a phase has 32
lanes; for wider ones, as many lanes as access 128 bytes together. The lanes of a phase are
consecutive, except for 12- and 16-byte loads on CDNA, whose groups of eight are those of the
Composable Kernel documentation ("Understanding AMD GPU LDS and Bank Conflicts") and of the
measurements published with HipKittens (arXiv:2511.08083). The same measurements show 64 banks for
8- and 16-byte loads on gfx950, with twice the lanes per phase; what was not measured there is
assumed to be as on gfx942. Atomics are assumed to behave like stores of their size.

`Target.lds_banks` selects the variant. `fly-run --stats` counts a kernel's cycles by this model,
and `fly_draw` shows conflicts by it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from fly_target.target import Target

LANES = 64  # of the largest waves; a wave of 32 has the first half of the phases
BANK_BYTES = 4
# First lanes of the two runs of four lanes in a phase of a 16-byte load; repeated from lane 32 on.
CROSSED = ((0, 20), (4, 16), (8, 28), (12, 24))
# With twice the banks, each phase combines two of these groups.
DOUBLED = ((0, 3), (1, 2))


def banks(target: Target, kind: str, size: int) -> int:
    """Returns the number of banks that serve a load or store (`kind`) of `size` bytes per lane."""
    doubled = (kind, size) in target.lds_banks.doubled
    return 2 * target.lds_banks.count if doubled else target.lds_banks.count


def phases(target: Target, kind: str, size: int) -> list[tuple[int, ...]]:
    """Returns the lanes of each phase of a load or store of `size` bytes per lane."""
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
    """Returns the worst conflict of an access of `size` bytes at each of `addresses`, those of one
    wave from lane 0 on: the maximum number of different dwords that lanes of one phase access in
    one bank. 1 means no conflict."""
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
