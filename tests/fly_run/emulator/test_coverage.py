"""Every instruction of a target is executed, or stands on the list of those that are not, with a
reason; there is no third state."""

import functools
import random
from collections.abc import Iterator

import pytest
from chosen_targets import one_of_each
from fly_common.errors import InputError
from fly_run.emulator import coverage
from fly_run.emulator.coverage import STRIDE, universe
from fly_run.emulator.isa import unsupported
from fly_run.emulator.isa.disassemble import Disassembler
from fly_run.emulator.isa.instruction import split_mnemonic
from fly_run.emulator.isa.parse import parse
from fly_run.emulator.lowering.encode import Encoder
from fly_run.emulator.lowering.registers import Allocation, Constants, Registers, Unsupported
from fly_run.emulator.semantics import table
from fly_target.amd.facts import facts_of
from fly_target.registry import EMULATED

TARGETS = one_of_each(EMULATED)
# Mnemonics without encoding suffix that the emulator executes at least, by family.
IMPLEMENTED = {
    "CDNA1": 1015,
    "CDNA2": 1040,
    "CDNA3": 1080,
    "CDNA4": 1175,
    "RDNA3": 925,
    "RDNA3.5": 985,
    "RDNA4": 1060,
    "CDNA5": 1313,
}


# What LLVM 22 emits for 34 probe kernels on gfx90a, gfx942 and gfx950 at -O0 and -O3, without what
# the documentation lists as absent.
EMITTED = """
ds_add_f32 ds_add_rtn_u32 ds_add_u32 ds_bpermute_b32 ds_max_i32 ds_max_rtn_i32 ds_permute_b32
ds_read2_b32 ds_read2st64_b32 ds_read_b128 ds_read_b32 ds_read_b64 ds_read_u16 ds_read_u8
ds_swizzle_b32 ds_write_b128 ds_write_b16 ds_write_b32 ds_write_b64 ds_write_b8 flat_load_dword
flat_load_dwordx2 flat_load_dwordx3 flat_load_dwordx4 flat_load_ushort flat_store_byte
flat_store_dword flat_store_dwordx2 flat_store_dwordx3 flat_store_dwordx4 flat_store_short
global_atomic_add global_atomic_add_f32 global_atomic_add_f64 global_atomic_add_x2
global_atomic_cmpswap global_atomic_or global_atomic_smin global_atomic_swap global_load_dword
global_load_dwordx2 global_load_dwordx4 global_load_sbyte global_load_ubyte global_load_ushort
global_store_byte global_store_dword global_store_dwordx2 global_store_dwordx3 global_store_dwordx4
global_store_short global_store_short_d16_hi scratch_load_dword scratch_load_dwordx2
scratch_load_dwordx4 scratch_load_ubyte scratch_load_ushort scratch_store_byte scratch_store_dword
scratch_store_dwordx2 scratch_store_dwordx4 scratch_store_short scratch_store_short_d16_hi
v_accvgpr_read_b32 v_accvgpr_write_b32 buffer_inv buffer_load_dword buffer_load_dwordx2
buffer_load_dwordx4 buffer_load_ubyte buffer_load_ushort buffer_store_byte buffer_store_dword
buffer_store_dwordx2 buffer_store_dwordx4 buffer_store_short buffer_wbl2 buffer_wbinvl1_vol
s_abs_i32 s_add_i32 s_add_u32 s_addc_u32 s_and_b32 s_and_b64 s_and_saveexec_b64 s_andn2_b64
s_andn2_saveexec_b64 s_ashr_i32 s_bcnt1_i32_b64 s_brev_b32 s_cmp_eq_u32 s_cmp_lg_u32 s_cmp_lt_i32
s_cmpk_gt_i32 s_cselect_b32 s_cselect_b64 s_ff1_i32_b64 s_lshl_b32 s_lshl_b64 s_lshr_b32 s_min_i32
s_mov_b32 s_mov_b64 s_movk_i32 s_mul_hi_u32 s_mul_i32 s_or_b32 s_or_b64 s_or_saveexec_b64
s_orn2_b64 s_sub_i32 s_sub_u32 s_subb_u32 s_xor_b64 s_xor_saveexec_b64 s_load_dword s_load_dwordx2
s_load_dwordx4 s_load_dwordx8 s_barrier s_branch s_cbranch_execnz s_cbranch_execz s_cbranch_scc0
s_cbranch_scc1 s_endpgm s_getpc_b64 s_nop s_set_gpr_idx_off s_set_gpr_idx_on s_setpc_b64
s_swappc_b64 s_trap s_waitcnt v_add3_u32 v_add_co_u32 v_add_f32 v_add_f64 v_add_lshl_u32 v_add_u32
v_addc_co_u32 v_alignbit_b32 v_and_b32 v_ashrrev_i32 v_ashrrev_i64 v_bcnt_u32_b32 v_bfe_i32
v_bfe_u32 v_bfi_b32 v_bfrev_b32 v_bitop3_b16 v_bitop3_b32 v_ceil_f32 v_cndmask_b32 v_cos_f32
v_cvt_f16_f32 v_cvt_f32_f16 v_cvt_f32_i32 v_cvt_f32_u32 v_cvt_f32_ubyte0 v_cvt_f64_f32
v_cvt_f64_i32 v_cvt_f64_u32 v_cvt_i32_f32 v_cvt_pk_bf16_f32 v_cvt_u32_f32 v_div_fixup_f32
v_div_fixup_f64 v_div_fmas_f32 v_div_fmas_f64 v_div_scale_f32 v_div_scale_f64 v_exp_f32 v_ffbh_i32
v_ffbh_u32 v_floor_f32 v_floor_f64 v_fma_f32 v_fma_f64 v_fmac_f32 v_fmac_f64 v_fmamk_f32
v_fract_f32 v_frexp_exp_i32_f32 v_frexp_mant_f32 v_ldexp_f32 v_ldexp_f64 v_log_f32 v_lshl_add_u32
v_lshl_add_u64 v_lshl_or_b32 v_lshlrev_b16 v_lshlrev_b32 v_lshlrev_b64 v_lshrrev_b32 v_lshrrev_b64
v_mac_f32 v_mad_legacy_u16 v_mad_u64_u32 v_madmk_f32 v_max3_f32 v_max_f32 v_max_i32
v_mbcnt_hi_u32_b32 v_mbcnt_lo_u32_b32 v_med3_f32 v_min_f32 v_min_i32 v_min_u32 v_mov_b32 v_mov_b64
v_mul_f32 v_mul_f64 v_mul_hi_i32 v_mul_hi_u32 v_mul_lo_u16 v_mul_lo_u32 v_not_b32 v_or3_b32
v_or_b32 v_perm_b32 v_permlane16_swap_b32 v_permlane32_swap_b32 v_rcp_f32 v_rcp_f64 v_rcp_iflag_f32
v_readfirstlane_b32 v_readlane_b32 v_rndne_f32 v_rsq_f32 v_rsq_f64 v_sin_f32 v_sqrt_f32
v_sub_co_u32 v_sub_f32 v_sub_u16 v_sub_u32 v_subb_co_u32 v_subbrev_co_u32 v_subrev_co_u32
v_subrev_u32 v_trunc_f32 v_writelane_b32 v_xad_u32 v_xor_b32 v_dot2c_f32_f16 v_dot2c_i32_i16
v_dot4c_i32_i8 v_fma_mix_f32 v_pk_add_f32 v_pk_fma_f16 v_pk_fma_f32 v_pk_max_f16 v_pk_mov_b32
v_pk_mul_f32 v_cmp_class_f32 v_cmp_class_f64 v_minimum3_f32 v_maximum3_f32 v_pk_minimum3_f16
v_pk_maximum3_f16 v_cvt_f32_bf16 v_cvt_pk_f16_f32
""".split()  # noqa: SIM905


@functools.cache
def of(target: str) -> coverage.Coverage:
    return coverage.coverage(target)


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_missing_is_on_the_list(target):
    unexplained = [name for name in sorted(of(target).missing) if not unsupported.reason(name)]
    assert not unexplained


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_implemented_is_not_on_the_list(target):
    found = of(target)
    plain = found.plain_implemented
    # A pattern without suffix speaks of all encodings.
    stale = {name for name in found.implemented | plain if unsupported.reason(name)}
    if facts_of(EMULATED[target]).named_barriers:
        barriers = {
            name for name in stale if unsupported.reason(name) == unsupported.NAMED_BARRIERS
        }
        assert barriers == {f"s_barrier_{end}" for end in ("init", "join", "leave")}
        stale -= barriers
    assert not stale


def test_every_pattern_speaks_of_an_instruction():
    missing = set().union(*(of(target).missing for target in TARGETS))
    patterns = [pattern for many in unsupported.REASONS.values() for pattern in many]
    idle = [p for p in patterns if not any(unsupported.matches(p, name) for name in missing)]
    assert not idle


@pytest.mark.parametrize("target", TARGETS)
def test_the_number_of_instructions(target, capsys):
    found = of(target)
    with capsys.disabled():
        print(f"\n{next(coverage.report(target))}", end=" ")
    assert len(found.plain_implemented) >= IMPLEMENTED[EMULATED[target].family]


def test_the_report_names_what_is_missing_and_why():
    lines = list(coverage.report("gfx942"))
    assert "    ds_gws_barrier" in lines
    assert "  global wave sync: a driver resource:" in lines
    shown = {line.strip() for line in lines[1:] if line.startswith("    ")}
    assert {split_mnemonic(name)[0] for name in shown} == {
        split_mnemonic(name)[0] for name in of("gfx942").missing
    }


def test_an_unknown_target_is_a_usage_error(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["coverage", "gfx803"])
    assert coverage.main() == 2
    assert "gfx803" in capsys.readouterr().out


def test_everything_that_llvm_emits_is_there():
    there = set().union(
        *(of(target).plain_implemented for target in ("gfx90a", "gfx942", "gfx950"))
    )
    # Forms that the enumeration of encodings does not meet.
    there |= {operation.mnemonic for operation in table.operations().values()}
    assert sorted(set(EMITTED) - there) == []


def test_comparisons_are_there_in_every_type_and_condition():
    floats = "f lt eq le gt lg ge o u nge nlg ngt nle neq nlt tru".split()  # noqa: SIM905
    integers = "f lt eq le gt ne ge t".split()  # noqa: SIM905
    names = {f"{c}_f{w}" for c in floats for w in (16, 32, 64)}
    names |= {f"{c}_{s}{w}" for c in integers for s in "iu" for w in (16, 32, 64)}
    wanted = {f"{stem}_{name}" for name in names for stem in ("v_cmp", "v_cmpx")}
    assert wanted <= of("gfx942").plain_implemented


# Source numbers: v4, s4, 1, 1.0, vcc, m0 or null, exec, shared_base, vccz, scc, a literal.
SOURCES = (260, 4, 0x81, 242, 106, 124, 126, 235, 251, 253, 255)
# Their source is an accumulation register; the disassembler prints others too.
NO_SUCH_SOURCE = ("v_accvgpr_read_b32", "v_accvgpr_mov_b32")


def varied(code: bytes, choose: random.Random) -> bytes:
    """A vector instruction with other sources: VOP1, VOP2 and VOPC have one of nine bits, VOP3 and
    VOP3P three."""
    words = [int.from_bytes(code[at : at + 4], "little") for at in (0, 4, 8)]
    word, places = (0, (0,)) if words[0] >> 31 == 0 else (1, (0, 9, 18))
    for place in places:
        words[word] = words[word] & ~(0x1FF << place) | choose.choice(SOURCES) << place
    return b"".join(part.to_bytes(4, "little") for part in words)


def varied_forms(target: str, tries: int) -> Iterator[tuple[str, bytes]]:
    """Texts and encodings of vector instructions: forms that were found, and such with other
    sources, `tries` of each mnemonic."""
    choose, tried = random.Random(target), bytearray()
    for mnemonic, found in universe(target).items():
        if mnemonic.startswith("v_") and not mnemonic.startswith(("v_mfma", "v_smfmac", "v_dual")):
            yield from found[:2]
            for _ in range(tries):
                tried += varied(choose.choice(found)[1], choose).ljust(STRIDE, b"\0")
    disassembler = Disassembler(target, bytes(tried), 0)
    for at in range(0, len(tried), STRIDE):
        decoded = disassembler.at(at)
        if decoded is not None:
            yield decoded[0], bytes(tried[at : at + decoded[1]])


@pytest.mark.parametrize("target", TARGETS)
def test_every_step_has_a_handler(target):
    """Whatever its sources are and whatever MODE may be, each step of an instruction that is not
    refused has a handler (`Operation.kinds`); none is refused for want of one."""
    operations = table.operations_of(target)
    handlers = {name for operation in operations.values() for name in operation.handlers}
    allocation, constants = Allocation(256, 256, 256, 512), Constants(0, 1 << 26)
    registers = Registers(allocation, constants, EMULATED[target], EMULATED[target].wave_size)
    encoder = Encoder(registers, operations, {}, 0, True, True, True, modes_vary=True)
    wrong, executed = [], 0
    for text, code in varied_forms(target, tries=2):
        try:
            steps = encoder.lower(parse(text, 0, len(code)))
        except (InputError, Unsupported) as reason:
            if "sources of these kinds" in str(reason) and text.split()[0] not in NO_SUCH_SOURCE:
                wrong.append(f"{text}: {reason}")
            continue
        executed += 1
        wrong += [f"{text}: {step.handler}" for step in steps if step.handler not in handlers]
    assert executed > 2000
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong[:20])


def test_offsets_that_count_accesses_are_only_gfx1250s():
    """LLVM's disassembler prints `scale_offset` for gfx1201 too, where the bit means nothing."""
    text = "global_load_b32 v0, v1, s[0:1] scale_offset"
    for target, known in (("gfx1201", False), ("gfx1250", True)):
        operations = table.operations_of(target)
        handlers = {name: 1 for operation in operations.values() for name in operation.handlers}
        allocation, constants = Allocation(256, 256, 256, 512), Constants(0, 1 << 26)
        registers = Registers(allocation, constants, EMULATED[target], 32)
        encoder = Encoder(registers, operations, handlers, null_region=0)
        if known:
            assert [step.handler for step in encoder.lower(parse(text, 0, 12))]
        else:
            with pytest.raises(Unsupported, match="scale_offset"):
                encoder.lower(parse(text, 0, 12))
