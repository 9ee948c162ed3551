"""The report's second part: how many DPP moves LLVM has folded into their users."""

from __future__ import annotations

import sys
from collections.abc import Callable

from fly_llc import mir

from fly_dpp.options import Options

MOVE = "V_MOV_B32_dpp"


def content(options: Options) -> Callable[[bytes], bytes] | None:
    """What is at the slot: nothing without the report."""
    return counted if options.report else None


def counted(data: bytes) -> bytes:
    """Reports the instructions with DPP in the final code, which is not changed."""
    for function in mir.parse(data.decode()).functions:
        opcodes = [
            inner.opcode
            for block in function.blocks
            for one in block.instructions
            for inner in (one, *one.bundled)
            if "_dpp" in inner.opcode
        ]
        if opcodes:
            moves = opcodes.count(MOVE)
            print(
                f"dpp: {function.name}: {len(opcodes) - moves} instructions have a folded DPP"
                f" operand, {moves} DPP moves are left",
                file=sys.stderr,
            )
    return data
