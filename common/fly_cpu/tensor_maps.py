"""The form that tensor maps have on the host: what TMA's functions (`fly_cpu.copies`) read. A GPU's
form is not documented."""

from __future__ import annotations

import struct

from fly_host.tiles import Tile

BYTES = 128
MOST_MODES = 5
_FORM = struct.Struct("<Q5Q4Q5I5I")
# Offsets of the fields. Modes are listed from the innermost one out.
ADDRESS, EXTENTS, STRIDES, BOX, RANK, SIZE, SWIZZLE, MARK, ROUNDED = (
    0,
    8,
    48,
    80,
    100,
    104,
    108,
    112,
    116,
)
MAGIC = 0x70616D74  # so that other bytes are not taken for a map


def encoded(tile: Tile) -> bytes:
    """The 128 bytes of a map."""
    missing = MOST_MODES - len(tile.shape)
    extents = (*tile.shape, *[1] * missing)
    strides = (*tile.strides, *[0] * missing)
    box = (*tile.box, *[1] * missing)
    rest = (len(tile.shape), tile.itemsize, tile.swizzle, MAGIC, tile.rounded)
    return _FORM.pack(tile.address, *extents, *strides, *box, *rest).ljust(BYTES, b"\0")
