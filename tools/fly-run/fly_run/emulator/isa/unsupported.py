"""Instructions that the emulator does not execute, and the reasons. `coverage` finds them.

A pattern matches a whole mnemonic without its encoding suffix, or with it if only that encoding is
missing. Tests check that every missing instruction matches one, and that each pattern matches a
missing instruction and no other.
"""

from __future__ import annotations

import functools
import re

from fly_run.emulator.isa.instruction import split_mnemonic

# Only of targets that have none (`AmdFacts.named_barriers`); the others execute these.
NAMED_BARRIERS = "named barriers: only gfx1250 has them"

REASONS: dict[str, tuple[str, ...]] = {
    "half of an instruction: scales without their matrices": ("v_mfma_ld_scale_b32",),
    "stores from LDS: no compiler emits them": ("buffer_store_lds_dword",),
    "both operands in LDS: no compiler emits them": ("ds_.*_src2_.*",),
    "formatted buffers": ("t?buffer_(?:load|store)_(?:d16_)?(?:hi_)?format_.*",),
    "scalar access to private memory: its layout is not documented": (
        "s_scratch_(?:load|store)_.*",
    ),
    "images: the processor's texture units are not emulated": ("image_.*",),
    "global wave sync: a driver resource": ("ds_gws_.*",),
    "messages that have a reply or stop the wave": ("s_sendmsghalt", "s_sendmsg_rtn_b32"),
    "debugging, trap handlers and graphics": (
        "s_cbranch_cdbg.*",
        "s_cbranch_[gi]_fork",
        "s_cbranch_join",
        "s_rfe(?:_restore)?_b64",
        "s_sethalt",
        "s_setkill",
        "s_setvskip",
        "s_endpgm_ordered_ps_done",
        "v_screen_partition_4se_b32",
        "s_rfe_i64",
        "tensor_(?:save|stop)",
    ),
    # gfx11 and gfx12
    "graphics: the processor's fixed functions are not emulated": (
        "exp(?:ort)?",
        "v_interp_.*",
        "(?:lds|ds)_(?:direct|param)_load",
        "ds_bvh_.*",
        "v_mullit_f32",
    ),
    "global data share: a driver resource": (
        "ds_(?:add|sub)_gs_reg_rtn",
        "ds_ordered_count",
        "global_atomic_ordered_add_b64",
    ),
    NAMED_BARRIERS: ("s_barrier_(?:init|join|leave)",),
    "named barriers: what this does is not documented": (
        "s_get_barrier_state",
        "s_wakeup_barrier",
    ),
    # gfx1250
    "the first half of an instruction": ("v_wmma_ld_scale(?:16)?_paired_b(?:32|64)",),
    "C of f32 and D of bf16 in the same registers: their places are not documented": (
        "v_swmmac_bf16f32_16x16x64_bf16",
    ),
    "registers given and taken while a wave runs: no code object can ask for such waves": (
        "s_alloc_vgpr",
    ),
    "markers for data in the code": ("s_code_end", "v_illegal"),
}


@functools.cache
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple(
        (re.compile(pattern), reason) for reason, many in REASONS.items() for pattern in many
    )


@functools.cache
def reason(mnemonic: str) -> str | None:
    """Returns why an instruction is missing; None if no pattern matches it."""
    return next((text for pattern, text in _patterns() if matches(pattern.pattern, mnemonic)), None)


def matches(pattern: str, mnemonic: str) -> bool:
    return any(re.fullmatch(pattern, name) for name in (mnemonic, split_mnemonic(mnemonic)[0]))
