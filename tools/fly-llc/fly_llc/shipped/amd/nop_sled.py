"""nop-sled: `s_nop` instructions where a kernel begins.

    fly-llc k.ll --insert 'pre-emit=nop-sled --count 8'

Useful for finding a kernel's entry in a trace, for patching it later, and for seeing that an
insertion works at all.
"""

from __future__ import annotations

from collections.abc import Sequence

from fly_common.errors import UsageError

from fly_llc import mir
from fly_llc.shipped import arguments

LONGEST = 15  # S_NOP waits for up to 16 cycles on gfx9 and later


def main(text: str, words: Sequence[str]) -> str:
    """`--count N` instructions [4] of `--cycles C` each [1]."""
    options = arguments.read("nop-sled", words, count=4, cycles=1)
    count, cycles = options["count"], options["cycles"]
    if count < 0 or not 1 <= cycles <= LONGEST + 1:
        raise UsageError(
            f"nop-sled: --count must be at least 0, and --cycles from 1 to {LONGEST + 1}"
        )
    module = mir.parse(text)
    for function in module.functions:
        for entry in function.blocks[:1]:
            entry.insert(0, *[f"S_NOP {cycles - 1}"] * count)
    return str(module)
