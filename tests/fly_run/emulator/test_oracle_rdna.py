"""Instruction by instruction on gfx1100, gfx1201 and gfx1250: the emulator against the oracle.

As test_oracle_instructions.py does it for gfx9, with waves of 32 lanes.
"""

from __future__ import annotations

import pytest
from oracle.comparison import runs
from oracle.comparison.compare import differing
from oracle.launching import build
from oracle.probes import try_rdna
from oracle.scalar import rdna_salu

TYPES = ("i16", "u16", "i32", "u32", "i64", "u64", "f16", "f32", "f64")
# Mnemonics of the tables, in the target's spelling, that a target does not have: what llvm-mc
# refuses, exactly. Neither has these of gfx9…
COMMON = {
    *("ds_add_f64", "ds_add_rtn_f64", "s_ff0_i32_b32", "s_ff0_i32_b64"),
    *(
        f"{space}_atomic_{name}_f64"
        for space in ("flat", "global", "buffer")
        for name in ("add", "min", "max")
    ),
    *("v_cvt_pk_f16_f32", "v_cvt_f32_bf16"),
    *("v_cvt_pk_bf16_f32", "v_exp_legacy_f32", "v_log_legacy_f32", "v_fmac_f64", "v_lshl_add_u64"),
    *("v_mac_f16", "v_mac_f32", "v_mad_f16", "v_mad_f32", "v_mad_legacy_f32", "v_mad_legacy_i16"),
    *("v_mad_legacy_u16", "v_madak_f16", "v_madak_f32", "v_madmk_f16", "v_madmk_f32", "v_mov_b64"),
    *("v_pk_add_f32", "v_pk_fma_f32", "v_pk_mul_f32", "v_pk_mov_b32", "v_subrev_u16"),
    *("v_pk_minimum3_f16", "v_pk_maximum3_f16", "v_dot2_i32_i16", "v_dot2_u32_u16"),
    *("v_ashr_pk_i8_i32", "v_ashr_pk_u8_i32", "v_cvt_pkaccum_u8_f32", "v_div_fixup_legacy_f16"),
    *(
        "v_fma_legacy_f16",
        "v_mad_legacy_f16",
        "v_prng_b32",
        "v_cvt_sr_bf16_f32",
        "v_cvt_sr_f16_f32",
    ),
    *("v_dot2c_i32_i16", "v_dot4c_i32_i8", "v_dot8c_i32_i4", "v_dot2c_f32_bf16"),
    *("v_ashr_pk_i8_i32", "v_ashr_pk_u8_i32", "v_cvt_sr_f16_f32", "v_cvt_sr_bf16_f32"),
    *("v_prng_b32", "v_cvt_pkaccum_u8_f32"),
    *(f"v_{name}_legacy_f16" for name in ("div_fixup", "fma", "mad")),
    *(f"v_{cmp}_{c}_{t}" for cmp in ("cmp", "cmpx") for c in "ft" for t in ("i16", "u16")),
}
LITERAL = ("ak", "mk")  # f16 has no such form
ABSENT = {
    # …gfx1100 none of what gfx12 brings…
    "gfx1100": COMMON
    | {f"s_{name}_f32" for name in (*rdna_salu.ARITHMETIC, "fmac", "cvt_pk_rtz_f16")}
    | {f"s_{name}_f16" for name in (*rdna_salu.ARITHMETIC, "fmac") if name[-2:] not in LITERAL}
    | {f"s_cmp_{name}_{t}" for name in rdna_salu.CONDITIONS for t in ("f16", "f32")}
    | {*rdna_salu.CONVERSIONS, *rdna_salu.INTEGER, *rdna_salu.LOADS, *rdna_salu.TRANSCENDENTAL}
    | {"s_buffer_load_b96", "s_load_b96"}
    | {f"v_{name}_{t}" for name in ("minimum", "maximum") for t in ("f16", "f32", "f64")}
    | {
        f"v_{name}_{t}"
        for name in ("minimum3", "maximum3", "minimummaximum", "maximumminimum", "maxmin_num")
        for t in ("f16", "f32")
    }
    | {"v_minmax_num_f16", "v_minmax_num_f32", "v_permlane16_var_b32", "v_permlanex16_var_b32"}
    | {"v_pk_minimum_f16", "v_pk_maximum_f16"}
    | {
        f"ds_{name}_{rtn}{kind}"
        for name, kind in (("cond_sub", "u32"), ("sub_clamp", "u32"), ("pk_add", "f16"))
        for rtn in ("", "rtn_")
    }
    | {"ds_pk_add_bf16", "ds_pk_add_rtn_bf16", "flat_atomic_pk_add_f16", "flat_atomic_pk_add_bf16"}
    | {
        f"{space}_atomic_{name}"
        for space in ("global", "flat", "buffer")
        for name in ("cond_sub_u32", "sub_clamp_u32", "min_num_f32", "max_num_f32")
    }
    | {"global_atomic_pk_add_f16", "global_atomic_pk_add_bf16", "buffer_atomic_pk_add_bf16"}
    | {"buffer_atomic_pk_add_f16", "global_load_tr_b64", "global_load_tr_b128"}
    | {"flat_atomic_csub_u32", "ds_bpermute_fi_b32"}
    | {f"{space}_{way}_block" for space in ("global", "scratch") for way in ("load", "store")},
    # …and gfx1201 has no compare with a constant answer, nor a scalar one with a constant operand.
    "gfx1201": COMMON
    | {f"v_{cmp}_{c}_{t}" for cmp in ("cmp", "cmpx") for c in "ft" for t in TYPES}
    | {f"s_cmpk_{c}_{t}" for c in ("eq", "lg", "gt", "ge", "lt", "le") for t in ("i32", "u32")}
    | {"v_fmac_dx9_zero_f32", "v_mov_b16", "v_dot2acc_f32_f16"}
    | {f"{space}_atomic_cmpswap_f32" for space in ("global", "flat", "buffer")},
}
ABSENT["gfx1100"].remove("s_pack_hl_b32_b16")
# gfx1250 has more of gfx9's, and lacks products of pairs and other logic as halves of VOPD.
ABSENT["gfx1250"] = ABSENT["gfx1201"] - {
    *("ds_add_f64", "ds_add_rtn_f64", "v_ashr_pk_i8_i32", "v_ashr_pk_u8_i32", "v_cvt_f32_bf16"),
    *(
        f"{space}_atomic_{name}_f64"
        for space in ("flat", "global", "buffer")
        for name in ("add", "min", "max")
    ),
    *("v_cvt_pk_bf16_f32", "v_cvt_pk_f16_f32", "v_fmac_f64", "v_lshl_add_u64", "v_mov_b64"),
    *("v_pk_add_f32", "v_pk_fma_f32", "v_pk_mul_f32", "v_prng_b32"),
    *("v_pk_maximum3_f16", "v_pk_minimum3_f16"),
} | {
    *("v_dot2_bf16_bf16", "v_dot2_f16_f16", "v_dot2_f32_bf16", "v_dot2_f32_f16"),
    *("v_dual_mov_b32 v_dual_and_b32", "v_dual_mul_f32 v_dual_and_b32"),
}
# DS_STOREXCHG has no form without a result.
NOWHERE = {"ds_wrxchg_b32", "ds_wrxchg_b64"}


@pytest.mark.parametrize("run", [*runs.rdna(), *runs.wide()], ids=str)
def test_family(run):
    batch = run.batch(run.probes())
    lines = differing(batch, build.assemble(batch.text, run.target), run.frame)
    assert not lines, f"{len(lines)} of {len(batch.probes)}:\n" + "\n".join(lines[:20])


@pytest.mark.parametrize("target", build.RDNA)
def test_absent(target):
    """Nothing falls out of the comparison unseen."""
    assert try_rdna.missing(target) - NOWHERE == ABSENT[target]
