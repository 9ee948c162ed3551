"""Decodes an instruction's text to a function of Waves.

An instruction's effect depends on its text and on the wave's MODE, not on its address, so each is
decoded once for all kernels.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from oracle.interpreter import rdna
from oracle.matrix import matrix, matrix_scaled
from oracle.memory import access, buffers, lds, lds_direct, lds_rare, scalar_memory, transposed
from oracle.program.text import Instruction, parse
from oracle.scalar import scalar
from oracle.state import modes
from oracle.state.waves import Waves
from oracle.vector import conversions, rare, vector

Step = Callable[[Waves], None]


class Unsupported(Exception):
    """An instruction that the oracle does not support."""


@dataclass(frozen=True)
class Decoded:
    """`step` of a normal instruction; `flow` of one that sets the pc: (waves, pc) → targets."""

    text: str
    size: int
    step: Step | None = None
    flow: str = ""
    instruction: Instruction | None = None


@functools.lru_cache(maxsize=1 << 16)
def decode(text: str, words: tuple[int, ...], target: str, state: int) -> Decoded:
    """Decodes an instruction. `state`: MODE, and the other state in modes.states."""
    mode = state & 0xFFFFFFFF
    if " :: " in text:
        return Decoded(text, 4 * len(words), rdna.dual(text, words, target, mode))
    ins = modes.indexed(rdna.renamed(parse(text, words), target), state)
    name = ins.mnemonic
    if name in NOTHING or name in rdna.NOTHING:
        return Decoded(text, ins.size, lambda w: None)
    if name in FLOW or name.startswith("s_cbranch_"):
        return Decoded(text, ins.size, None, name, ins)
    step = rdna.build(ins, mode, target) if target.startswith("gfx1") else None
    step = step or _build(ins, target, mode)
    if step is None:
        raise Unsupported(text)
    return Decoded(text, ins.size, step)


def _build(ins: Instruction, target: str, mode: int) -> Step | None:
    name = ins.mnemonic
    if name.startswith(("v_", "ds_bperm", "ds_perm", "ds_swizzle")):
        step = conversions.build(ins, target) or matrix.build(ins, target)
        step = step or matrix_scaled.build(ins)
        return step or rare.build(ins) or vector.build(ins, mode)
    if name.startswith("s_"):
        return modes.build(ins) or scalar_memory.build(ins) or scalar.build(ins)
    return (
        lds.build(ins)
        or lds_rare.build(ins)
        or transposed.build(ins)
        or lds_direct.build(ins, target)
        or buffers.build(ins, target)
        or access.build(ins)
    )


NOTHING = {
    *(
        "s_nop",
        "s_waitcnt",
        "s_setprio",
        "s_sleep",
        "s_icache_inv",
        "s_dcache_wb",
        "s_inst_prefetch",
    ),
    *("s_dcache_inv", "buffer_inv", "buffer_wbl2", "buffer_wbinvl1", "buffer_wbinvl1_vol", "v_nop"),
    *("s_ttracedata", "s_sethalt_nothing", "s_waitcnt_depctr", "s_dcache_discard", "s_version"),
}
FLOW = {
    *("s_branch", "s_endpgm", "s_barrier", "s_trap", "s_getpc_b64", "s_setpc_b64"),
    *("s_swappc_b64", "s_call_b64", "s_barrier_signal", "s_barrier_wait"),
}
