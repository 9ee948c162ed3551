"""What `ptxas -v` says of each kernel: registers, spills, memory.

    ptxas info    : Compiling entry function 'vadd' for 'sm_90a'
    ptxas info    : Function properties for vadd
        0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
    ptxas info    : Used 12 registers, used 1 barriers, 1024 bytes smem
    ptxas info    : Compile time = 2.646 ms

fly-link keeps it in the cubin, as the section `.fly.ptxas`, without the time. The numbers of a
cubin without that section are those of its own attributes, which do not count spills.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

SECTION = ".fly.ptxas"

_KERNEL = re.compile(r"Compiling entry function '([^']+)'")
_TIME = re.compile(r"^ptxas info +: Compile time = .*\n?", re.MULTILINE)
_FIELDS = {
    "stack": r"(\d+) bytes stack frame",
    "spill_stores": r"(\d+) bytes spill stores",
    "spill_loads": r"(\d+) bytes spill loads",
    "registers": r"Used (\d+) registers",
    "barriers": r"used (\d+) barriers",
    "shared": r"(\d+) bytes smem",
}


@dataclass(frozen=True)
class Resources:
    """Numbers of a kernel; sizes in bytes. `registers`, `stack` and the spills are per thread, of
    32 bits each; None is unknown."""

    registers: int | None = None
    stack: int | None = None
    spill_stores: int | None = None
    spill_loads: int | None = None
    barriers: int | None = None
    shared: int | None = None

    @property
    def spills(self) -> str:
        """The spills as text."""
        if self.spill_stores is None or self.spill_loads is None:
            return "spills unknown"
        if not self.spill_stores and not self.spill_loads:
            return "0 spilled"
        return f"{self.spill_stores} bytes of spill stores, {self.spill_loads} of spill loads"


def without_times(text: str) -> str:
    """Returns ptxas's text without what differs between two runs."""
    return _TIME.sub("", text)


def read(text: str) -> dict[str, Resources]:
    """Returns the numbers of each kernel in ptxas's text."""
    found: dict[str, Resources] = {}
    pieces = _KERNEL.split(text)
    for name, said in zip(pieces[1::2], pieces[2::2], strict=True):
        numbers = {
            field: int(match[1])
            for field, pattern in _FIELDS.items()
            if (match := re.search(pattern, said))
        }
        # ptxas says nothing of shared memory where there is none.
        found[name] = Resources(**{"shared": 0, **numbers})
    return found
