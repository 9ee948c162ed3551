"""The controls of DPP: from which lane of its row each lane reads.

Sources: CDNA3 ISA manual, section 4.9.1 "DPP"; RDNA3 ISA manual, section 7.7 "DPP16". The numbers
are the same in both, and are those of LLVM (`AMDGPU::DPP`, SIDefines.h).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

ROW = 16  # the lanes that a control permutes; it is the same in each row of a wave
QUAD_PERM, ROW_ROR, ROW_MIRROR, ROW_HALF_MIRROR = 0x000, 0x120, 0x140, 0x141
ROW_SHARE, ROW_XMASK = 0x150, 0x160
# The chips of generation 9 on which 0x150 is row_newbcast, which is row_share.
_NEW_BROADCAST = ("gfx90a", "gfx942", "gfx950")


def controls(chip: str, generation: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yields each control that permutes the lanes of rows, and the lane of its row from which each
    lane of a row reads. Controls with lanes that read nothing (row_shl, row_shr) are not among
    them, nor those of whole waves, which only generation 9 has."""
    rows = range(ROW)
    for quad in itertools.product(range(4), repeat=4):
        number = sum(place << 2 * lane for lane, place in enumerate(quad))
        yield QUAD_PERM + number, tuple(lane & ~3 | quad[lane & 3] for lane in rows)
    for turn in range(1, ROW):
        yield ROW_ROR + turn, tuple((lane - turn) % ROW for lane in rows)
    yield ROW_MIRROR, tuple(ROW - 1 - lane for lane in rows)
    yield ROW_HALF_MIRROR, tuple(lane ^ 7 for lane in rows)
    if generation > 9 or chip in _NEW_BROADCAST:
        for place in rows:
            yield ROW_SHARE + place, tuple(place for _ in rows)
    if generation > 9:
        for mask in range(1, ROW):
            yield ROW_XMASK + mask, tuple(lane ^ mask for lane in rows)


def find(sources: Sequence[int], chip: str, generation: int) -> int | None:
    """Returns the control by which lane n reads from lane `sources[n]`, for the lanes of a wave, or
    None if there is none."""
    first = tuple(sources[:ROW])
    if any(
        source != lane - lane % ROW + first[lane % ROW] for lane, source in enumerate(sources)
    ) or not all(0 <= source < ROW for source in first):
        return None
    return next((one for one, row in controls(chip, generation) if row == first), None)
