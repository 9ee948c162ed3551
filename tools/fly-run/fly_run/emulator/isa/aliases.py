"""Names on gfx11 and gfx12 of instructions that gfx9 has under another name.

Only instructions with the same semantics are listed; others have rows of their own in the semantics
tables. Sources: LLVM's AMDGPU instruction definitions, where a pseudo-instruction has a name for
each generation; RDNA3 and RDNA4 ISA manuals.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from fly_target import registry
from fly_target.amd.facts import facts_of

WIDTHS = {"b32": "dword", "b64": "dwordx2", "b96": "dwordx3", "b128": "dwordx4"}
LOADS = {
    **WIDTHS,
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
}
STORES = {
    **WIDTHS,
    "b8": "byte",
    "b16": "short",
    "d16_hi_b8": "byte_d16_hi",
    "d16_hi_b16": "short_d16_hi",
}
SCALAR_LOADS = {
    "b32": "dword",
    "b64": "dwordx2",
    "b96": "dwordx3",
    "b128": "dwordx4",
    "b256": "dwordx8",
    "b512": "dwordx16",
}
# new name without its type → (old name, its types)
ATOMICS = {
    "swap": ("swap", "b"),
    "cmpswap": ("cmpswap", "b"),
    "add": ("add", "u"),
    "sub": ("sub", "u"),
    "min_i": ("smin", ""),
    "min_u": ("umin", ""),
    "max_i": ("smax", ""),
    "max_u": ("umax", ""),
    "and": ("and", "b"),
    "or": ("or", "b"),
    "xor": ("xor", "b"),
    "inc": ("inc", "u"),
    "dec": ("dec", "u"),
}

SCALAR = {
    "s_add_co_u32": "s_add_u32",
    "s_sub_co_u32": "s_sub_u32",
    "s_add_co_i32": "s_add_i32",
    "s_sub_co_i32": "s_sub_i32",
    "s_add_co_ci_u32": "s_addc_u32",
    "s_sub_co_ci_u32": "s_subb_u32",
    "s_addk_co_i32": "s_addk_i32",
    "s_ctz_i32_b32": "s_ff1_i32_b32",
    "s_ctz_i32_b64": "s_ff1_i32_b64",
    "s_clz_i32_u32": "s_flbit_i32_b32",
    "s_clz_i32_u64": "s_flbit_i32_b64",
    "s_cls_i32": "s_flbit_i32",
    "s_cls_i32_i64": "s_flbit_i32_i64",
}
# gfx1250's program counter.
SCALAR |= {
    "s_get_pc_i64": "s_getpc_b64",
    "s_set_pc_i64": "s_setpc_b64",
    "s_swap_pc_i64": "s_swappc_b64",
    "s_call_i64": "s_call_b64",
    "s_get_shader_cycles_u64": "s_memtime",
}
VECTOR = {
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
    "v_mad_co_u64_u32": "v_mad_u64_u32",
    "v_mad_co_i64_i32": "v_mad_i64_i32",
    "v_clz_i32_u32": "v_ffbh_u32",
    "v_ctz_i32_b32": "v_ffbl_b32",
    "v_cls_i32": "v_ffbh_i32",
    "v_mul_dx9_zero_f32": "v_mul_legacy_f32",
    "v_cvt_pk_rtz_f16_f32": "v_cvt_pkrtz_f16_f32",
    "v_cvt_pk_norm_i16_f32": "v_cvt_pknorm_i16_f32",
    "v_cvt_pk_norm_u16_f32": "v_cvt_pknorm_u16_f32",
    "v_cvt_pk_norm_i16_f16": "v_cvt_pknorm_i16_f16",
    "v_cvt_pk_norm_u16_f16": "v_cvt_pknorm_u16_f16",
    "v_cvt_nearest_i32_f32": "v_cvt_rpi_i32_f32",
    "v_cvt_floor_i32_f32": "v_cvt_flr_i32_f32",
    "v_dot2acc_f32_f16": "v_dot2c_f32_f16",
    "v_dot2acc_f32_bf16": "v_dot2c_f32_bf16",
}


def _logic() -> Iterator[tuple[str, str]]:
    for width in (32, 64):
        for name in ("and", "or"):
            yield f"s_{name}_not1_b{width}", f"s_{name}n2_b{width}"
            for action in ("saveexec", "wrexec"):
                yield f"s_{name}_not0_{action}_b{width}", f"s_{name}n1_{action}_b{width}"
                yield f"s_{name}_not1_{action}_b{width}", f"s_{name}n2_{action}_b{width}"


def _memory() -> Iterator[tuple[str, str]]:
    for new, old in SCALAR_LOADS.items():
        yield f"s_load_{new}", f"s_load_{old}"
        yield f"s_buffer_load_{new}", f"s_buffer_load_{old}"
    for space in ("global", "flat", "buffer"):
        yield f"{space}_atomic_sub_clamp_u32", f"{space}_atomic_csub_u32"
        for name in ("min", "max"):
            for size in ("f32", "f64"):
                yield f"{space}_atomic_{name}_num_{size}", f"{space}_atomic_{name}_{size}"
    for space in ("global", "flat", "scratch", "buffer"):
        for new, old in LOADS.items():
            yield f"{space}_load_{new}", f"{space}_load_{old}"
        for new, old in STORES.items():
            yield f"{space}_store_{new}", f"{space}_store_{old}"
        for name, (old, letter) in ATOMICS.items():
            for width, ending in ((32, ""), (64, "_x2")):
                typed = f"{name}_{letter}{width}" if letter else f"{name}{width}"
                yield f"{space}_atomic_{typed}", f"{space}_atomic_{old}{ending}"


def _lds() -> Iterator[tuple[str, str]]:
    yield "ds_load_addtid_b32", "ds_read_addtid_b32"
    yield "ds_store_addtid_b32", "ds_write_addtid_b32"
    for kind in ("b32", "b64", "b96", "b128", "u8", "i8", "u16", "i16"):
        yield f"ds_load_{kind}", f"ds_read_{kind}"
    for kind in ("u8_d16", "u8_d16_hi", "i8_d16", "i8_d16_hi", "u16_d16", "u16_d16_hi"):
        yield f"ds_load_{kind}", f"ds_read_{kind}"
    for kind in ("b8", "b16", "b32", "b64", "b96", "b128", "b8_d16_hi", "b16_d16_hi"):
        yield f"ds_store_{kind}", f"ds_write_{kind}"
    for width in (32, 64):
        for new, old in (("2addr", "2"), ("2addr_stride64", "2st64")):
            yield f"ds_load_{new}_b{width}", f"ds_read{old}_b{width}"
            yield f"ds_store_{new}_b{width}", f"ds_write{old}_b{width}"
            yield f"ds_storexchg_{new}_rtn_b{width}", f"ds_wrxchg{old}_rtn_b{width}"
        yield f"ds_storexchg_rtn_b{width}", f"ds_wrxchg_rtn_b{width}"
        for middle in ("", "rtn_"):
            for kind in ("b", "f"):
                # The operands' order differs: the lowering checks the instruction's own name.
                yield f"ds_cmpstore_{middle}{kind}{width}", f"ds_cmpst_{middle}{kind}{width}"
            for name in ("min", "max"):
                yield f"ds_{name}_num_{middle}f{width}", f"ds_{name}_{middle}f{width}"


def _floats() -> Iterator[tuple[str, str]]:
    for size in ("f16", "f32", "f64"):
        # gfx12's "number" minimum and maximum: without an IEEE bit in MODE they are the same.
        for name in ("min", "max"):
            yield f"v_{name}_num_{size}", f"v_{name}_{size}"
            yield f"v_{name}3_num_{size}", f"v_{name}3_{size}"
        yield f"v_med3_num_{size}", f"v_med3_{size}"
        yield f"v_cmp_t_{size}", f"v_cmp_tru_{size}"
    for name in ("min", "max"):
        yield f"v_pk_{name}_num_f16", f"v_pk_{name}_f16"


@functools.cache
def aliases_of(target: str) -> dict[str, str]:
    """Maps the target's names to gfx9's, without encoding suffixes. Empty for gfx9's targets."""
    if facts_of(registry.find(target)).is_gfx9:
        return {}
    return {**SCALAR, **VECTOR, **dict((*_logic(), *_memory(), *_lds(), *_floats()))}
