"""Instructions whose result no public source specifies: `--strict` rejects them.

Without `--strict` the emulator behaves as documented in docs/emulator.md, "Unspecified behavior".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fly_run.emulator.isa.instruction import Immediate, Instruction
from fly_run.emulator.isa.matrix import SCALED
from fly_run.emulator.semantics.base.small_float import FP16_OVFL


@dataclass(frozen=True)
class Question:
    """The result of instructions with these mnemonics is unspecified if one of these bits of MODE
    is set."""

    mnemonics: re.Pattern[str]
    mode: int
    text: str


QUESTIONS = (
    Question(
        re.compile(r"v_ma[dc](?:[am]k)?(?:_legacy)?_f16(?:_\w+)?"),
        FP16_OVFL,
        "whether MODE.FP16_OVFL limits the product too, before the sum",
    ),
    Question(
        re.compile(r"s_(?:add|sub|mul|fmac|cvt)_f16(?:_f32)?"),
        FP16_OVFL,
        "whether MODE.FP16_OVFL limits results in scalar registers",
    ),
)


SCALE = "what the constant 0 in place of a matrix's scales stands for, 1 or 2^-127"


def question(instruction: Instruction, mode: int) -> str | None:
    """Returns what is unspecified about an instruction under this MODE, None for nothing."""
    mnemonic = instruction.mnemonic
    if mnemonic.startswith(SCALED):
        scales = instruction.operands[4:6]
        # Any other constant is refused before anything runs.
        return SCALE if any(isinstance(one, Immediate) for one in scales) else None
    if not mode:
        return None
    for one in QUESTIONS:
        if mode & one.mode and one.mnemonics.fullmatch(mnemonic):
            return one.text
    return None
