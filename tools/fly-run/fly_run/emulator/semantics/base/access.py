"""Descriptions of the data that memory instructions move; their tables are in `memory`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fly_run.emulator.irgen import Value

# Flags of the resolvers: the access writes; may go to any address space; must be aligned.
WRITES, FLAT, ALIGNED = 1, 2, 4
# The extra word of a buffer access: its vector addresses, in this order; the resource is gfx1250's
# (`AmdFacts.wide_resources`).
BUFFER_INDEX, BUFFER_OFFSET, BUFFER_WIDE = 1, 2, 4
CHUNK = 16  # lanes whose addresses are processed at once


@dataclass(frozen=True)
class Access:
    """The data of a load or store. `half` is the half of a register that holds a 16-bit datum: None
    (the whole register), "low" or "high" (the other half is preserved)."""

    kind: str  # "load" or "store"
    size: int  # bytes
    signed: bool = False
    half: str | None = None

    @property
    def dwords(self) -> int:
        return max(1, self.size // 4)


@dataclass(frozen=True)
class Atomic:
    """`combine(handler, old, data)` computes the new value of a scalar `element`; with `compares`
    the data is (new, expected): the new value is stored if the old one equals `expected`. With
    `pairs` the data is two values, and `combine(handler, old, last, first)` gets both."""

    element: str
    combine: Callable[..., Value]
    returns: bool
    compares: bool = False
    pairs: bool = False

    @property
    def values(self) -> int:
        """The number of data values."""
        return 2 if self.compares or self.pairs else 1

    @property
    def size(self) -> int:
        return 8 if self.element in ("i64", "double") else 4


@dataclass(frozen=True)
class ScalarAccess:
    """The data of a scalar memory instruction: `size` bytes, at an address or in a buffer resource.
    A byte or short is widened to a dword."""

    kind: str  # "load", "store" or "atomic"
    size: int
    buffer: bool = False
    signed: bool = False
    atomic: Atomic | None = None

    @property
    def dwords(self) -> int:
        return max(1, self.size // 4)
