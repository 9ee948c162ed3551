"""The plugins that objects were made with, where these have something at a slot of the link."""

from __future__ import annotations

from collections.abc import Sequence

from fly_common import artifact
from fly_plugin import stamps


def check(objects: Sequence[bytes], names: Sequence[str]) -> None:
    """Raises InputError if a plugin of an object is not active, or active with another version."""
    for data, name in zip(objects, names, strict=True):
        stamps.check(stamps.in_section(_section(data)), name, "fly-link", "object")


def _section(data: bytes) -> bytes:
    """The stamps of an object or of PTX; b"" if it has none, and for what the linker refuses."""
    kind = artifact.identify(data)
    if kind == artifact.OBJECT:
        from fly_image.elf import Elf

        found = Elf.parse(data).section(stamps.SECTION)
        return b"" if found is None else found.data
    if kind == artifact.PTX:
        from fly_image.nvidia import ptx

        return ptx.sections(data.decode(errors="replace")).get(stamps.SECTION, b"")
    return b""
