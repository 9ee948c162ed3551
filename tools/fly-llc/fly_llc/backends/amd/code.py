"""The instructions of an object, to search for some of them by their encodings."""

from __future__ import annotations

SHF_EXECINSTR = 4


def sections(obj: bytes) -> list[bytes]:
    """Returns the contents of the sections with instructions."""
    from fly_image.elf import Elf

    return [section.data for section in Elf.parse(obj).sections if section.flags & SHF_EXECINSTR]
