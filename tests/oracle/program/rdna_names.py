"""RDNA's names of gfx9 operations: gfx11's for memory, gfx12's also for more of the ALU.

Sources: the RDNA3 and RDNA4 ISA manuals' opcode tables, LLVM's tests in test/MC/AMDGPU. Only
operations that are identical to the bit are listed; others are in rdna.py and related modules.
"""

from __future__ import annotations

import re

# Memory elements: RDNA → gfx9 loads, stores.
LOADS = {
    "u8": "ubyte",
    "i8": "sbyte",
    "u16": "ushort",
    "i16": "sshort",
    "d16_u8": "ubyte_d16",
    "d16_hi_u8": "ubyte_d16_hi",
    "d16_i8": "sbyte_d16",
    "d16_hi_i8": "sbyte_d16_hi",
    "d16_b16": "short_d16",
    "d16_hi_b16": "short_d16_hi",
    "b32": "dword",
    "b64": "dwordx2",
    "b96": "dwordx3",
    "b128": "dwordx4",
}
STORES = {
    "b8": "byte",
    "d16_hi_b8": "byte_d16_hi",
    "b16": "short",
    "d16_hi_b16": "short_d16_hi",
    "b32": "dword",
    "b64": "dwordx2",
    "b96": "dwordx3",
    "b128": "dwordx4",
}
ATOMICS = {}
for _bits, _tail in ((32, ""), (64, "_x2")):
    for _name in ("add_u", "sub_u", "inc_u", "dec_u", "and_b", "or_b", "xor_b"):
        ATOMICS[f"{_name}{_bits}"] = _name[:-2] + _tail
    for _name in ("swap", "cmpswap"):
        ATOMICS[f"{_name}_b{_bits}"] = _name + _tail
    for _name in ("min", "max"):
        ATOMICS[f"{_name}_i{_bits}"] = f"s{_name}{_tail}"
        ATOMICS[f"{_name}_u{_bits}"] = f"u{_name}{_tail}"
SCALAR_LOADS = {"b32": "", "b64": "x2", "b96": "x3", "b128": "x4", "b256": "x8", "b512": "x16"}
DS = {
    "load_2addr_stride64": "read2st64",
    "load_2addr": "read2",
    "load": "read",
    "store_2addr_stride64": "write2st64",
    "store_2addr": "write2",
    "storexchg_2addr_stride64_rtn": "wrxchg2st64_rtn",
    "storexchg_2addr_rtn": "wrxchg2_rtn",
    "storexchg_rtn": "wrxchg_rtn",
    "store": "write",
}

# Whole names of both families, those only on gfx12, and those only on gfx1250.
PLAIN = {
    "s_and_not1_b32": "s_andn2_b32",
    "s_and_not1_b64": "s_andn2_b64",
    "s_or_not1_b32": "s_orn2_b32",
    "s_or_not1_b64": "s_orn2_b64",
    "s_ctz_i32_b32": "s_ff1_i32_b32",
    "s_ctz_i32_b64": "s_ff1_i32_b64",
    "s_clz_i32_u32": "s_flbit_i32_b32",
    "s_clz_i32_u64": "s_flbit_i32_b64",
    "s_cls_i32": "s_flbit_i32",
    "s_cls_i32_i64": "s_flbit_i32_i64",
    "v_add_nc_u32": "v_add_u32",
    "v_sub_nc_u32": "v_sub_u32",
    "v_subrev_nc_u32": "v_subrev_u32",
    "v_add_nc_i32": "v_add_i32",
    "v_sub_nc_i32": "v_sub_i32",
    "v_add_nc_u16": "v_add_u16",
    "v_sub_nc_u16": "v_sub_u16",
    "v_add_nc_i16": "v_add_i16",
    "v_sub_nc_i16": "v_sub_i16",
    "v_add_co_ci_u32": "v_addc_co_u32",
    "v_sub_co_ci_u32": "v_subb_co_u32",
    "v_subrev_co_ci_u32": "v_subbrev_co_u32",
    "v_clz_i32_u32": "v_ffbh_u32",
    "v_ctz_i32_b32": "v_ffbl_b32",
    "v_cls_i32": "v_ffbh_i32",
    "v_cvt_floor_i32_f32": "v_cvt_flr_i32_f32",
    "v_cvt_nearest_i32_f32": "v_cvt_rpi_i32_f32",
    "v_cvt_pk_norm_i16_f32": "v_cvt_pknorm_i16_f32",
    "v_cvt_pk_norm_u16_f32": "v_cvt_pknorm_u16_f32",
    "v_cvt_pk_norm_i16_f16": "v_cvt_pknorm_i16_f16",
    "v_cvt_pk_norm_u16_f16": "v_cvt_pknorm_u16_f16",
    "v_cvt_pk_rtz_f16_f32": "v_cvt_pkrtz_f16_f32",
    "v_mul_dx9_zero_f32": "v_mul_legacy_f32",
    "v_dot2acc_f32_f16": "v_dot2c_f32_f16",
}
GFX12 = {
    "s_add_co_u32": "s_add_u32",
    "s_sub_co_u32": "s_sub_u32",
    "s_add_co_i32": "s_add_i32",
    "s_sub_co_i32": "s_sub_i32",
    "s_add_co_ci_u32": "s_addc_u32",
    "s_sub_co_ci_u32": "s_subb_u32",
    "s_addk_co_i32": "s_addk_i32",
    "v_mad_co_u64_u32": "v_mad_u64_u32",
    "v_mad_co_i64_i32": "v_mad_i64_i32",
    "ds_min_num_rtn_f32": "ds_min_rtn_f32",
    "ds_max_num_rtn_f32": "ds_max_rtn_f32",
    "ds_min_num_f32": "ds_min_f32",
    "ds_max_num_f32": "ds_max_f32",
    "ds_min_num_rtn_f64": "ds_min_rtn_f64",
    "ds_max_num_rtn_f64": "ds_max_rtn_f64",
    "ds_min_num_f64": "ds_min_f64",
    "ds_max_num_f64": "ds_max_f64",
}
GFX1250 = {
    "s_get_pc_i64": "s_getpc_b64",
    "s_set_pc_i64": "s_setpc_b64",
    "s_swap_pc_i64": "s_swappc_b64",
    "s_call_i64": "s_call_b64",
    **{
        f"{space}_atomic_{which}_num_f64": f"{space}_atomic_{which}_f64"
        for space in ("global", "flat", "buffer")
        for which in ("min", "max")
    },
}
for _type in ("f16", "f32", "f64"):
    for _cmp in ("cmp", "cmpx"):
        PLAIN[f"v_{_cmp}_t_{_type}"] = f"v_{_cmp}_tru_{_type}"
for _which in ("min", "max"):
    for _type in ("f16", "f32", "f64"):
        GFX12[f"v_{_which}_num_{_type}"] = f"v_{_which}_{_type}"
        GFX12[f"v_{_which}3_num_{_type}"] = f"v_{_which}3_{_type}"
    GFX12[f"v_pk_{_which}_num_f16"] = f"v_pk_{_which}_f16"
for _type in ("f16", "f32"):
    GFX12[f"v_med3_num_{_type}"] = f"v_med3_{_type}"


def of_gfx9(name: str) -> str:
    """Returns `name` as on gfx9; unchanged if it is the same."""
    if other := PLAIN.get(name) or GFX12.get(name) or GFX1250.get(name):
        return other
    if match := re.fullmatch(r"(global|flat|scratch|buffer)_(load|store|atomic)_(\w+)", name):
        table = {"load": LOADS, "store": STORES, "atomic": ATOMICS}[match[2]]
        return f"{match[1]}_{match[2]}_{table.get(match[3], match[3])}"
    if match := re.fullmatch(r"s_(buffer_)?load_(\w+)", name):
        if match[2] in SCALAR_LOADS:
            return f"s_{match[1] or ''}load_dword{SCALAR_LOADS[match[2]]}"
        return name
    if match := re.fullmatch(rf"ds_({'|'.join(DS)})_(\w+)", name):
        return f"ds_{DS[match[1]]}_{match[2]}"
    return name


_INVERSE = {value: key for key, value in PLAIN.items()}
_INVERSE_GFX12 = {value: key for key, value in GFX12.items()}
_INVERSE_GFX1250 = {value: key for key, value in GFX1250.items()}
_ELEMENTS = {
    "load": {value: key for key, value in LOADS.items()},
    "store": {value: key for key, value in STORES.items()},
    "atomic": {value: key for key, value in ATOMICS.items()},
}


def of_rdna(name: str, target: str) -> str:
    """Returns gfx9's `name` as on `target`: the inverse."""
    if target == "gfx1250" and name in _INVERSE_GFX1250:
        return _INVERSE_GFX1250[name]
    if target.startswith("gfx12") and name in _INVERSE_GFX12:
        return _INVERSE_GFX12[name]
    if name in _INVERSE:
        return _INVERSE[name]
    if match := re.fullmatch(r"(global|flat|scratch|buffer)_(load|store|atomic)_(\w+)", name):
        return f"{match[1]}_{match[2]}_{_ELEMENTS[match[2]].get(match[3], match[3])}"
    if match := re.fullmatch(r"s_(buffer_)?load_dword(\w*)", name):
        width = next(key for key, value in SCALAR_LOADS.items() if value == match[2])
        return f"s_{match[1] or ''}load_{width}"
    for mine, other in DS.items():
        if match := re.fullmatch(rf"ds_{other}_(\w+)", name):
            return f"ds_{mine}_{match[1]}"
    return name
