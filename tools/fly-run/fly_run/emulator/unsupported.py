"""Instructions that the emulator does not execute, and why. `coverage` finds them.

A pattern matches a whole mnemonic, without its encoding suffix, or with it where only that encoding
is missing. Tests hold that every missing instruction matches one, and that each matches a missing
instruction and no other.
"""

from __future__ import annotations

import functools
import re

from fly_run.emulator.instruction import split_mnemonic

REASONS: dict[str, tuple[str, ...]] = {
    "half of an instruction: scales without their matrices": ("v_mfma_ld_scale_b32",),
    "8-, 6- and 4-bit floating point": (
        "v_cvt_(?:f32|pk_f32)_(?:fp8|bf8)",
        "v_cvt_(?:pk|sr)_(?:fp8|bf8)_f32",
        "v_cvt_scalef32_.*",
        "v_cvt_sr_(?:f16|bf16)_f32",
        "v_prng_b32",
    ),
    "loads straight to LDS": (".*_load_lds_.*", "buffer_store_lds_dword"),
    "transposed reads of LDS": ("ds_read_b(?:64|96)_tr_b(?:16|8|6|4)",),
    "formatted buffers": ("t?buffer_(?:load|store)_(?:d16_)?(?:hi_)?format_.*",),
    "scalar stores, atomics and buffers": (
        "s_buffer_load_.*",
        "s_(?:buffer_|scratch_)?store_.*",
        "s_scratch_load_.*",
        "s_(?:buffer_)?atomic_.*",
        "s_dcache_discard(?:_x2)?",
        "s_atc_probe(?:_buffer)?",
    ),
    "images: the processor's texture units are not emulated": ("image_.*",),
    "global wave sync: a resource of the driver's": ("ds_gws_.*",),
    "append buffers": ("ds_append", "ds_consume"),
    "no handler so far": (
        "ds_(?:mskor|wrap|condxchg32)_.*",
        "ds_wrxchg2(?:st64)?_rtn_.*",
        "ds_(?:read|write)_addtid_b32",
        "s_andn[12]_wrexec_b64",
        "s_movrel[sd]_b(?:32|64)",
        "s_set_gpr_idx_(?:idx|mode)",
        "v_ashr_pk_[iu]8_i32",
        "v_cube(?:id|ma|sc|tc)_f32",
        "v_cvt_off_f32_i4",
        "v_cvt_pkaccum_u8_f32",
        "v_cvt_pknorm_[iu]16_f16",
        "v_(?:div_fixup|fma|mad)_legacy_f16",
        "v_mad_legacy_f32",
        "v_(?:exp|log)_legacy_f32",
        "v_mad[am]k_f16",
        "v_m?q?sad_(?:pk_u16|u32)_u8",
        "v_pk_fmac_f16",
        "v_dot2c?_f32_bf16",
        "v_trig_preop_f64",
    ),
    "messages to the host or to other shader stages": ("s_sendmsghalt", "s_sendmsg_rtn_b32"),
    "debugging, trap handlers and graphics": (
        "s_cbranch_cdbg.*",
        "s_cbranch_[gi]_fork",
        "s_cbranch_join",
        "s_rfe(?:_restore)?_b64",
        "s_sethalt",
        "s_setkill",
        "s_setvskip",
        "s_endpgm_ordered_ps_done",
        "v_clrexcp",
        "v_screen_partition_4se_b32",
    ),
    # gfx11 and gfx12
    "graphics: the processor's fixed functions are not emulated": (
        "exp(?:ort)?",
        "v_interp_.*",
        "(?:lds|ds)_(?:direct|param)_load",
        "ds_bvh_.*",
        "v_mullit_f32",
    ),
    "global data share: a resource of the driver's": (
        "ds_(?:add|sub)_gs_reg_rtn",
        "ds_ordered_count",
        "global_atomic_ordered_add_b64",
    ),
    "named barriers": ("s_barrier_(?:init|join|leave|signal_isfirst)", "s_get_barrier_state"),
    "transposed loads": ("global_load_tr_b(?:64|128)",),
    "registers given and taken while a wave runs": ("s_alloc_vgpr",),
    "marks of what is no code": ("s_code_end", "v_illegal"),
    "no handler so far on gfx11 and gfx12": (
        "ds_(?:load|store)_addtid_b32",
        "global_(?:load|store)_addtid_b32",
        "ds_storexchg_2addr_.*",
        "ds_bpermute_fi_b32",
        "(?:global|scratch)_(?:load|store)_block",
        "s_movrelsd_2_b32",
        "s_subvector_loop_(?:begin|end)",
        "v_cvt_pk_norm_[iu]16_f16",
        "v_dot2_f16_f16",
        "v_dot2_bf16_bf16",
        "v_dual_dot2acc_f32_bf16",
        "v_movrel(?:s|d|sd)_b32_dpp",
        "v_movrelsd_2_b32",
        "v_swaprel_b32",
    ),
}


@functools.cache
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple(
        (re.compile(pattern), reason) for reason, many in REASONS.items() for pattern in many
    )


@functools.cache
def reason(mnemonic: str) -> str | None:
    """Why an instruction is not there; None for one that no pattern matches."""
    return next((text for pattern, text in _patterns() if matches(pattern.pattern, mnemonic)), None)


def matches(pattern: str, mnemonic: str) -> bool:
    return any(re.fullmatch(pattern, name) for name in (mnemonic, split_mnemonic(mnemonic)[0]))
