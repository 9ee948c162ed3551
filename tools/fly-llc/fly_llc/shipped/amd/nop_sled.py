"""nop-sled: inserts `s_nop` instructions at the start of each kernel.

    fly-llc k.ll --insert 'pre-emit=nop-sled --count 8'

Useful to find a kernel's entry in a trace, to patch it later, and to test that insertion works.
"""

from __future__ import annotations

from collections.abc import Sequence

from fly_common.errors import UsageError

from fly_llc import mir
from fly_llc.shipped import arguments

LONGEST = 15  # S_NOP waits for up to 16 cycles on gfx9 and later


def main(text: str, words: Sequence[str]) -> str:
    """Inserts `--count N` instructions [4] of `--cycles C` each [1]."""
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
