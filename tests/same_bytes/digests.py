"""Digests of what a device executes: an HSACO without the host program."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from hashlib import sha256
from io import BytesIO

from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile

from same_bytes.sides import Side

Digest = Callable[[str], str]


def of_code(sides: Iterable[Side]) -> Digest:
    """Returns a function from the digest of an HSACO, as the sides keep it, to that of its code."""
    folders = [side.folder / name for side in sides for name in ("made", "records")]

    @functools.cache
    def of(digest: str) -> str:
        path = next(path for folder in folders if (path := folder / digest).exists())
        return code(path.read_bytes())

    return of


def code(image: bytes) -> str:
    """Returns a digest of the sections that are loaded: instructions, descriptors, notes, symbols.
    The host program's is not loaded."""
    found = sha256()
    for section in ELFFile(BytesIO(image)).iter_sections():
        if section["sh_flags"] & SH_FLAGS.SHF_ALLOC:
            found.update(f"{section.name} {section['sh_addr']:x} {section['sh_size']:x}\n".encode())
            found.update(section.data())
    return found.hexdigest()
