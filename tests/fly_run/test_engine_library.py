"""The handler library: its tables, its building, its key."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from fly_common.errors import MissingError, UsageError
from fly_run.emulator import library
from fly_run.emulator.encode import EXPANSIONS
from fly_run.emulator.lower_valu import expansion
from fly_run.emulator.semantics import table

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


def known(mnemonic: str) -> bool:
    return (
        mnemonic in table.operations() or mnemonic in EXPANSIONS or expansion(mnemonic) is not None
    )


def test_everything_that_llvm_emits_is_there() -> None:
    assert [name for name in EMITTED if not known(name)] == []


def test_comparisons_are_there_in_every_type_and_condition() -> None:
    floats = "f lt eq le gt lg ge o u nge nlg ngt nle neq nlt tru".split()  # noqa: SIM905
    integers = "f lt eq le gt ne ge t".split()  # noqa: SIM905
    names = [f"{c}_f{w}" for c in floats for w in (16, 32, 64)]
    names += [f"{c}_{s}{w}" for c in integers for s in "iu" for w in (16, 32, 64)]
    assert [n for n in names if not known(f"v_cmp_{n}") or not known(f"v_cmpx_{n}")] == []


def test_absent_instructions_have_no_handler() -> None:
    for name in ("v_cvt_pk_fp8_f32", "ds_read_b64_tr_b16", "s_rfe_b64"):
        assert not known(name)


def test_the_library_holds_every_handler_of_the_tables() -> None:
    handlers = library.load().handlers
    for operation in table.operations().values():
        missing = [name for name in operation.handlers if not handlers.get(name)]
        assert not missing


def test_ir_is_the_same_every_time() -> None:
    assert table.modules(2) == table.modules(2)


def test_two_processes_build_one_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLY_CACHE_DIR", str(tmp_path))
    code = "from fly_run.emulator import library; print(library.load().path)"
    start = time.perf_counter()
    both = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    printed = {process.communicate()[0] for process in both}
    assert time.perf_counter() - start < 60
    assert len(printed) == 1
    # Beside it: the lock, and the store, which remembers what LLVM's library holds.
    assert [path.suffix for path in sorted(tmp_path.iterdir()) if path.is_file()] in (
        [".so"],
        [".lock", ".so"],
        [".so", ".lock"],
    )


def test_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    v3 = frozenset(library.NEEDS["x86-64-v3"].split())
    v4 = v3 | frozenset(library.NEEDS["x86-64-v4"].split())
    monkeypatch.delenv("FLY_EMULATOR_CPU", raising=False)
    for flags, level in ((v3, "x86-64-v3"), (v4, "x86-64-v4")):
        monkeypatch.setattr(library, "_cpu_flags", lambda flags=flags: flags)
        assert library.host_level() == level
    monkeypatch.setenv("FLY_EMULATOR_CPU", "x86-64-v3")
    assert library.host_level() == "x86-64-v3"
    monkeypatch.setattr(library, "_cpu_flags", lambda: v3 - {"avx2", "f16c"})
    with pytest.raises(MissingError) as caught:
        library.host_level()
    assert str(caught.value) == (
        "the emulator needs an x86-64-v3 processor; this one lacks avx2, f16c\n"
        "  run on an x86-64 processor with AVX2, FMA and F16C (any since 2015)"
    )
    monkeypatch.setenv("FLY_EMULATOR_CPU", "x86-64-v4")
    monkeypatch.setattr(library, "_cpu_flags", lambda: v3)
    with pytest.raises(MissingError, match="needs an x86-64-v4 processor; this one lacks avx512f"):
        library.host_level()
    monkeypatch.setenv("FLY_EMULATOR_CPU", "znver4")
    with pytest.raises(UsageError, match="FLY_EMULATOR_CPU=znver4 is no level"):
        library.host_level()


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another cache folder, and nothing loaded yet."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("FLY_CACHE_DIR", str(folder))
    library.load.cache_clear()
    library.library_path.cache_clear()
    yield folder
    library.load.cache_clear()
    library.library_path.cache_clear()


def test_a_cache_that_can_not_be_written(elsewhere: Path, capfd: pytest.CaptureFixture) -> None:
    """The library is built for this process, with one warning."""
    elsewhere.write_text("")  # a file where the folder should be
    loaded = library.load()
    assert loaded.handlers
    assert not loaded.path.exists()
    warning, advice = capfd.readouterr().err.splitlines()
    assert warning.startswith("fly: warning: the emulator's library can't be kept in ")
    assert warning.endswith("; it is built anew each time")
    assert advice == "  set FLY_CACHE_DIR to a folder that can be written and has 10 MB"


def test_a_disk_that_is_full(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """llc meets the full disk: what it says about it is not taken for a refusal of the handlers.
    No temporary folder has room either: that is the end."""

    def full(*_: object, **__: object) -> None:
        library._check_room(b"llc: error: IO failure on output stream: No space left on device")

    monkeypatch.setattr(library, "build", full)
    with pytest.raises(MissingError, match="can't be built: No space left on device"):
        library.load()


def test_other_words_of_llc_are_not_a_full_disk() -> None:
    library._check_room(b"llc: error: expected instruction opcode")
