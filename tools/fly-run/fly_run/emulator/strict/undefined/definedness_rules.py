"""The `definedness` rule of each operation."""

from __future__ import annotations

import functools
import re

from fly_run.emulator.strict.undefined.definedness import (
    LEFT,
    RIGHT,
    Rule,
    align,
    and_,
    and_not,
    arithmetic,
    bit_select,
    byte_into,
    each_byte,
    each_half,
    extend,
    field,
    halves,
    insert,
    low_24,
    or_,
    or_not,
    pack,
    part,
    permute,
    placed,
    quads,
    replicate,
    reverse,
    saturated_bytes,
    scalar_field,
    select,
    set_bit,
    shift,
    shifted_sum,
    signed_field,
    signs,
    swapped_and,
    swapped_or,
    test_bit,
    then,
    truth_table,
    union,
    upwards,
    whole,
)

_PATTERNS: tuple[tuple[str, Rule], ...] = (
    (r"[sv]_(and|nand)_b(16|32|64)|s_n?and_saveexec_b(32|64)", and_),
    (r"s_andn2(_saveexec|_wrexec)?_b(32|64)", and_not),
    (r"s_andn1_(save|wr)exec_b(32|64)", swapped_and),
    (r"[sv]_(or|nor)_b(16|32|64)|s_n?or_saveexec_b(32|64)", or_),
    (r"s_orn2_\w+", or_not),
    (r"s_orn1_saveexec_b(32|64)", swapped_or),
    (r"[sv]_(xor|xnor|not|mov|movk)_[bi](16|32|64)|s_xn?or_saveexec_b(32|64)", union),
    (r"v_accvgpr_(read|write|mov)_b32|v_xor3_b32", union),
    (r"v_(add|sub)(rev)?(_nc)?_[ui](16|32|64)|v_add3_u32|[sv]_mul_lo_u(16|32)", upwards),
    (r"v_(add|addc|sub|subb|subrev|subbrev|add_ci|sub_ci|subrev_ci)_co(_ci)?_u32", upwards),
    (r"s_(add|addc|sub|subb|mul)_[iu](32|64)|s_mulk_i32|s_addk_i32|s_(add|sub)_nc_u64", upwards),
    (r"v_mad_(co_|nc_)?[ui]64_[ui]32|v_mad_u32|v_mul_u64", upwards),
    (r"v_(mul|mad)_[ui]32_[ui]24", low_24),
    (r"v_lshlrev_b(16|32|64)", shift(True, LEFT)),
    (r"v_lshrrev_b(16|32|64)", shift(True, RIGHT)),
    (r"v_ashrrev_i32", shift(True, arithmetic(32))),
    (r"v_ashrrev_i16", shift(True, arithmetic(16))),
    (r"v_ashrrev_i64", shift(True, arithmetic(64))),
    (r"s_lshl_b(32|64)", shift(False, LEFT)),
    (r"s_lshr_b(32|64)", shift(False, RIGHT)),
    (r"s_ashr_i32", shift(False, arithmetic(32))),
    (r"s_ashr_i64", shift(False, arithmetic(64))),
    (r"[v]_bfe_u32", field),
    (r"[v]_bfe_i32", signed_field),
    (r"v_lshl_or_b32", then(shift(False, LEFT), or_)),
    (r"v_lshl_add_u32", then(shift(False, LEFT), upwards)),
    (r"v_lshl_add_u64", then(shift(False, LEFT, most=7), upwards)),
    (r"v_and_or_b32", then(and_, or_)),
    (r"v_or3_b32", then(or_, or_)),
    (r"v_add_lshl_u32", then(upwards, shift(False, LEFT))),
    (r"v_cndmask_b(16|32)", select),
    (r"v_bfi_b32", bit_select),
    (r"v_perm_b32", permute),
    (r"v_alignbit_b32", align(1)),
    (r"v_alignbyte_b32", align(8)),
    (r"fly_insert", insert),
    (r"fly_sign_(32|64)", signs),
    (r"s_pack_ll_b32_b16", pack(0, 0)),
    (r"s_pack_lh_b32_b16", pack(0, 16)),
    (r"s_pack_hh_b32_b16", pack(16, 16)),
    (r"s_pack_hl_b32_b16", pack(16, 0)),
    (r"(v|fly_(flush_\w+|clamp|hold|finite))_pk_\w*16(\.clamp)?", halves),
    *((rf"v_cvt_f32_ubyte{number}", part(8 * number, 8)) for number in range(4)),
    *(
        (rf"s_bfe_{kind}{width}", scalar_field(width, kind == "i"))
        for width in (32, 64)
        for kind in "iu"
    ),
    (r"s_sext_i32_i8", extend(8, True)),
    (r"s_sext_i32_i16|v_cvt_i32_i16", extend(16, True)),
    (r"v_cvt_u32_u16", extend(16, False)),
    (r"fly_lane_of_32", extend(5, False)),
    (r"v_cvt_f32_bf16", placed(16, union)),
    (r"v_cvt_f32_(fp8|bf8)", part(0, 8)),
    (r"fly_decode_(fp6|bf6)", part(0, 6)),
    (r"fly_decode_fp4|v_cvt_off_f32_i4", part(0, 4)),
    (r"s_cvt_hi_f32_f16", part(16, 16)),
    (r"s_cvt_pk_rtz_f16_f32|fly_finite_pair", each_half),
    (r"v_cvt_pk(rtz|norm|_norm)?_(bf16|[fiu]16)_[fiu](16|32)", each_half),
    (r"v_cvt_pk_(fp8|bf8)_f32", each_byte),
    (r"v_sat_pk_u8_i16", saturated_bytes),
    (r"v_cvt_pk(accum)?_u8_f32", byte_into),
    (r"[sv]_b(f)?rev_b(32|64)", reverse),
    (r"s_bitreplicate_b64_b32", replicate),
    (r"s_bitset[01]_b(32|64)", set_bit),
    *((rf"s_bitcmp[01]_b{width}", test_bit(width)) for width in (32, 64)),
    (r"s_wqm_b(32|64)", quads(packed=False)),
    (r"s_quadmask_b(32|64)", quads(packed=True)),
    *((rf"s_lshl{by}_add_u32", shifted_sum(by)) for by in (1, 2, 3, 4)),
    (r"v_xad_u32", then(union, upwards)),
    (r"v_mad(_legacy)?_[iu]16|v_mad_(u32_u16|i32_i16)", upwards),
    # Any bit of a result may depend on any bit of a source.
    (r"(s|v|v_s)_\w+_(f16|f32|f64|bf16|fp8|bf8)|fly_\w+", whole),
    (r"[sv]_cmp[kx]?_\w+|[sv]_(min|max|med)3?_\w+|v_(maxmin|minmax)_\w+", whole),
    (r"[sv]_mul_hi_\w+|v_dot\w+|v_m?q?sad_\w+|v_msad_u8|v_sad_\w+|v_lerp_u8|\w+\.clamp", whole),
    (
        r"s_cvt_f32_[iu]32|s_abs(diff)?_i32|[sv]_bfm_b(32|64)|s_bcnt\w+|s_ff[01]\w+|s_flbit\w+",
        whole,
    ),
    (r"v_ff[bh]\w+|v_m?bcnt\w+|v_cvt_\w+|v_ashr_pk\w+|v_prng_b32|v_frexp\w+", whole),
    (r"s_set_gpr_idx_\w+|ds_(append|consume)", whole),
    (r"v_(pk_)?add_(min|max)_[iu](16|32)|v_sat_pk4_\w+|v_permlane_idx_gen_b32", whole),
)
TABLES = ("v_bitop3_b16", "v_bitop3_b32")
_COMPILED = [(re.compile(pattern), rule) for pattern, rule in _PATTERNS]


# Operations whose SCC tells whether the result is zero.
NONZERO = re.compile(
    r"s_(and|or|xor|nand|nor|xnor|andn2|orn2|not|wqm|quadmask)_b(32|64)|s_bfe_\w+|s_bcnt\w+"
    r"|s_(lshl|lshr|ashr)_[bi](32|64)|s_abs(diff)?_i32"
)


def known(mnemonic: str) -> bool:
    """Whether an operation has an explicit rule."""
    return mnemonic in TABLES or any(pattern.fullmatch(mnemonic) for pattern, _ in _COMPILED)


@functools.cache
def rule_of(mnemonic: str, immediate: int = 0) -> Rule:
    """Returns the propagation rule of an operation; the immediate is a truth table."""
    if mnemonic in TABLES:
        return truth_table(immediate)
    found = (rule for pattern, rule in _COMPILED if pattern.fullmatch(mnemonic))
    return next(found, whole)
