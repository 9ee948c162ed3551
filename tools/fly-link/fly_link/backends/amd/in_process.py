"""Whether `one_object` stands for the installed ld.lld: known after the first link of the process.

That one is ld.lld's, and is compared. Of the versions of ld.lld, only those that the tests have
compared are imitated; their name, which they write into images, comes from the first one.
`FLY_LLVM_IN_PROCESS=0` leaves every object to ld.lld, and `check` compares each image with
ld.lld's.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from fly_image.elf import Elf
from fly_store import identity

from fly_link.backends.amd import one_object

if TYPE_CHECKING:
    from fly_link.backends.amd.inputs import Input

VARIABLE = "FLY_LLVM_IN_PROCESS"

_TESTED = re.compile(rb"Linker: (?:Debian |Ubuntu )?LLD 22\.1\.\d+\0")

_comments: dict[str, bytes | None] = {}  # of each build of ld.lld; None if it is not imitated


def linked(item: Input) -> bytes | None:
    """Returns what ld.lld makes of an object, or None if only ld.lld can tell."""
    comment = _comment()
    return None if comment is None else one_object.linked(item, comment)


def is_checked() -> bool:
    """Whether each image is compared with ld.lld's."""
    return os.environ.get(VARIABLE) == "check"


def expected() -> bool:
    """Whether the next object will be linked without ld.lld, if it is one of a plain kernel."""
    return _comment() is not None and not is_checked()


def learn(item: Input, image: bytes) -> None:
    """Takes note of what ld.lld has made of an object."""
    build = identity.program("ld.lld")
    if build in _comments:
        return
    found = Elf.parse(image).section(".comment")
    if found is None or not _TESTED.fullmatch(found.data):
        _comments[build] = None
    elif (own := one_object.linked(item, found.data)) is not None:
        _comments[build] = found.data if own == image else None


def _comment() -> bytes | None:
    if not _comments or os.environ.get(VARIABLE) == "0":
        return None
    return _comments.get(identity.program("ld.lld"))
