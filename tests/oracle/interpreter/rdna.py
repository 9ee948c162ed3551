"""Instructions that gfx11 and gfx12 have and gfx9 does not, or that differ: functions of waves.

Sources: the RDNA3 and RDNA4 ISA manuals; LLVM's AMDGPUUsage and test/MC/AMDGPU. Names of operations
identical to gfx9's are in rdna_names.py; the arithmetic of new vector instructions in rdna_valu.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from oracle.matrix import rdna_wmma
from oracle.memory import rdna_memory, rdna_registers, rdna_transposed
from oracle.program import rdna_names
from oracle.program.text import Instruction, Operand, parse
from oracle.scalar import rdna_salu
from oracle.scalar.scalar import SAVE_EXEC
from oracle.state.waves import EXEC, VCC, Waves
from oracle.vector import (
    cdna5_convert,
    cdna5_valu,
    rdna_dots,
    rdna_lanes,
    rdna_valu,
    relative,
    valu,
    vector,
)

Step = Callable[[Waves], None]

# Waits and hints, which have no effect in an interpreter that completes each instruction at once.
NOTHING = {
    *("s_clause", "s_delay_alu", "s_set_inst_prefetch_distance", "s_sendmsg", "s_wait_idle"),
    *("s_waitcnt_vscnt", "s_waitcnt_vmcnt", "s_waitcnt_expcnt", "s_waitcnt_lgkmcnt"),
    *("s_wait_alu", "s_wait_loadcnt", "s_wait_storecnt", "s_wait_dscnt", "s_wait_kmcnt"),
    *("s_wait_expcnt", "s_wait_bvhcnt", "s_wait_samplecnt", "s_wait_loadcnt_dscnt"),
    *("s_wait_storecnt_dscnt", "s_wait_event", "s_sleep_var", "s_code_end"),
    *("buffer_gl0_inv", "buffer_gl1_inv", "global_inv", "global_wb", "global_wbinv"),
    *("s_wait_asynccnt", "s_wait_tensorcnt", "s_wait_xcnt", "s_set_vgpr_msb"),
    *("s_prefetch_inst", "s_prefetch_inst_pc_rel", "s_prefetch_data", "s_prefetch_data_pc_rel"),
}


def float_mode(mode: int, target: str) -> int:
    """Returns the MODE register's float bits. In gfx12's descriptor other fields replace DX10_CLAMP
    and IEEE_MODE: gfx12 clamps NaN to 0, and its minimum is always IEEE 754-2019's."""
    return mode & ~(1 << 9) | 1 << 8 if target.startswith("gfx12") else mode


def renamed(ins: Instruction, target: str) -> Instruction:
    """Returns `ins` with gfx9's name and modifiers."""
    if not target.startswith("gfx1"):
        return ins
    modifiers = dict(ins.modifiers)
    if modifiers.get("th") in ("TH_ATOMIC_RETURN", "TH_ATOMIC_NT_RETURN", "TH_ATOMIC_RT_RETURN"):
        modifiers["glc"] = 1
    return replace(ins, mnemonic=rdna_names.of_gfx9(ins.mnemonic), modifiers=modifiers)


def build(ins: Instruction, mode: int, target: str) -> Step | None:
    """Returns a function of Waves; None for an instruction that is the same on gfx9."""
    name = ins.mnemonic
    if target == "gfx1250" and (step := cdna5_valu.build(ins, mode) or cdna5_convert.build(ins)):
        return step
    if step := rdna_wmma.build(ins, target) or rdna_dots.build(ins, target):
        return step
    for module in (rdna_salu, rdna_lanes, rdna_memory, rdna_registers, rdna_transposed, relative):
        if step := module.build(ins):
            return step
    if name in rdna_valu.TABLE:
        return vector.table(ins, mode, rdna_valu.TABLE[name])
    if name in valu.VALU and valu.VALU[name].result.endswith("16"):
        # From gfx10 on a 16-bit result preserves the register's other half.
        return vector.table(ins, mode, replace(valu.VALU[name], keeps_high=True))
    if match := re.fullmatch(r"s_(\w+)_(save|wr)exec_b(32|64)", name):
        return _save_exec(ins, match[1], match[2] == "wr", int(match[3]))
    if name == "v_cndmask_b16":
        return _select_halves(ins)
    return None


def dual(text: str, words: tuple[int, ...], target: str, mode: int) -> Step:
    """VOPD: two instructions that both read before either writes."""
    halves = []
    for half in text.split(" :: "):
        ins = parse(half.replace("v_dual_", "v_", 1), words)
        ins = renamed(ins, target)
        if ins.mnemonic.startswith("v_dot2"):
            ins = replace(ins, mnemonic=ins.mnemonic.replace("v_", "v_dual_", 1))
        step = build(ins, mode, target) or vector.build(ins, mode)
        if step is None:
            raise NotImplementedError(text)
        halves.append(step)

    def both(w: Waves) -> None:
        w.held = []
        for step in halves:
            step(w)
        held, w.held = w.held, None
        for index, value, lanes in held:
            w.put_v32(index, value, lanes)

    return both


def _save_exec(ins: Instruction, name: str, result_to_target: bool, bits: int) -> Step:
    """EXEC = S0 op EXEC; the old EXEC (the new one for wrexec) goes to the destination."""
    function = SAVE_EXEC[name.replace("not0", "n1").replace("not1", "n2").replace("_", "")]
    target, source = ins.operands

    def step(w: Waves) -> None:
        old = (w.s64(EXEC) if bits == 64 else w.s32(EXEC)).copy()
        new = function(w.read_scalar(source, bits), old)
        put = w.put_s64 if bits == 64 else w.put_s32
        put(EXEC, new)
        put(target.index, new if result_to_target else old)
        w.put_scc(np.broadcast_to(new != 0, w.n))

    return step


def _select_halves(ins: Instruction) -> Step:
    mask = ins.operands[3] if len(ins.operands) > 3 else Operand("s", VCC, 1)
    sources = [vector.reader(ins, k, o, "b16") for k, o in enumerate(ins.operands[1:3])]
    write = vector.writer(ins, "b16", keeps_high=True)

    def step(w: Waves) -> None:
        a, b = (read(w) for read in sources)
        write(w, np.where(w.read_mask(mask), b, a))

    return step
