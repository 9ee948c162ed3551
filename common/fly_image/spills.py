"""Warnings about kernels with more values than registers, from what their image says of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from fly_common.diagnostics import Warning

if TYPE_CHECKING:
    from fly_common.errors import Place

    from fly_image.image import Image, KernelInterface

HINT = (
    "keep fewer values at a time, by smaller tiles or less unrolling; known_block_size= of a"
    " smaller block leaves each work item more registers"
)
# A count other than 0, in AMD's metadata, which is MessagePack, or in what ptxas said.
_COUNTED = re.compile(rb"gpr_spill_count[^\x00]|[1-9][0-9]* bytes spill ")


def warnings(data: bytes, place_of: Callable[[str], Place | None] | None = None) -> list[Warning]:
    """Returns a warning for each kernel of an image that spills registers. `place_of` gives a
    kernel's place by its name; by default it is that of its first instruction, if the image has
    lines."""
    if not _COUNTED.search(data):  # nearly always; parsing an image takes milliseconds
        return []
    import fly_image

    image = fly_image.read(data)
    found = []
    for name, kernel in image.kernels.items():
        if spilled := getattr(kernel, "spilled", ""):
            place = place_of(name) if place_of else _first_line(image, kernel)
            message = f"the kernel {name} spills registers: {spilled}"
            found.append(Warning(message, place=place, hint=HINT))
    return found


def _first_line(image: Image, kernel: KernelInterface) -> Place | None:
    entry = getattr(kernel, "entry", None)
    return None if entry is None else image.line(entry)
