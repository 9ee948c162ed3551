"""Variables of modules whose memory is the host's."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from fly_common.errors import InputError


@dataclass(frozen=True)
class HostVariable:
    """A variable at the host's address `host`. `owner` keeps the memory. See Variable."""

    name: str
    address: int
    nbytes: int
    host: int
    owner: object

    def read(self, nbytes: int | None = None) -> bytes:
        """See Variable."""
        return ctypes.string_at(self.host, self._checked(nbytes))

    def write(self, data: bytes) -> None:
        """See Variable."""
        ctypes.memmove(self.host, data, self._checked(len(data)))

    def clear(self, nbytes: int | None = None) -> None:
        """See Variable."""
        ctypes.memset(self.host, 0, self._checked(nbytes))

    def _checked(self, nbytes: int | None) -> int:
        return checked(self.name, self.nbytes, nbytes)


def checked(name: str, held: int, asked: int | None) -> int:
    """The number of bytes that are asked for. InputError if a variable does not have so many."""
    if asked is None:
        return held
    if not 0 <= asked <= held:
        raise InputError(f"the variable {name} has {held} bytes, not {asked}")
    return asked
