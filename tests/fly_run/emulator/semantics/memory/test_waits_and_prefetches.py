"""Instructions of gfx1250 that have no effect in an emulator: prefetches, also of addresses that
are not mapped, waits for each counter, priorities, sleeping."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_support.copies import run

# Distinct values in registers; what is mapped at s[4:5], and nothing at s[20:21].
BEFORE = """
  s_mov_b32 s20, 0x12345678
  s_mov_b32 s21, 0x123
  s_mov_b64 s[24:25], s[4:5]
  s_mov_b32 s26, -1
  s_mov_b32 s27, 0x3fff
  v_mov_b32 v1, 0x7777
  v_mov_b32 v2, s4
  v_mov_b32 v3, s5
  v_mov_b32 v4, s20
  v_mov_b32 v5, s21
  v_mov_b32 v6, 0x6666
  s_mov_b32 m0, 0x1234
  s_mov_b32 vcc_lo, 0x5555aaaa
  v_mov_b32 v7, 0x2222
  s_cmp_eq_u32 s4, s4
  s_mov_b32 exec_lo, 0xf0f0ffff
"""
AFTER = """
  s_cselect_b32 s28, 1, 2
  s_mov_b32 s29, exec_lo
  s_mov_b32 exec_lo, -1
  v_mov_b32 v8, s28
  v_mov_b32 v9, s29
  v_mov_b32 v10, vcc_lo
  v_mov_b32 v11, m0
  v_mov_b32 v12, s20
  v_mov_b32 v13, s21
""" + "".join(
    f"  global_store_b32 v250, v{number}, s[10:11] offset:{128 * (number - 1)}\n"
    for number in (1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)
)
PREFETCHES = (
    *("global_prefetch_b8 v250, s[4:5]", "global_prefetch_b8 v[2:3], off offset:64"),
    *("global_prefetch_b8 v1, s[20:21]", "global_prefetch_b8 v[4:5], off scope:SCOPE_SYS"),
    *("flat_prefetch_b8 v[2:3]", "flat_prefetch_b8 v[4:5]", "flat_prefetch_b8 v1, s[20:21]"),
    *("s_prefetch_data s[4:5], 0x10, s20, 3", "s_prefetch_data s[20:21], 0x10, null, 7"),
    *("s_buffer_prefetch_data s[24:27], 0x0, s20, 1", "s_prefetch_data_pc_rel 0x100, s20, 1"),
    *("s_prefetch_inst s[20:21], 0x0, null, 5", "s_prefetch_inst_pc_rel 0x100, s20, 1"),
)
WAITS = (
    *("s_wait_loadcnt 0x0", "s_wait_storecnt 0x0", "s_wait_dscnt 0x0", "s_wait_kmcnt 0x0"),
    *("s_wait_asynccnt 0x0", "s_wait_tensorcnt 0x0", "s_wait_xcnt 0x0", "s_wait_loadcnt_dscnt 0x0"),
    *("s_wait_storecnt_dscnt 0x0", "s_wait_alu 0x0", "s_wait_idle"),
)
HINTS = ("s_setprio 3", "s_setprio_inc_wg 1", "s_nop 7", "s_sleep 3", "s_monitor_sleep 0x8001")


@pytest.mark.parametrize("instruction", [*PREFETCHES, *WAITS, *HINTS])
def test_no_effect(instruction: str) -> None:
    results = []
    for body in ("", f"  {instruction}"):
        arrays = [np.arange(4096, dtype=np.uint32) for _ in range(3)]
        got = np.zeros(4096, np.uint32)
        run(BEFORE + body + AFTER, [*arrays, got])
        results.append([array.tobytes() for array in arrays] + [got[: 32 * 13].tolist()])
        assert got[32 * 7] == 1
    assert results[0][3][32 * 3 :] == results[1][3][32 * 3 :]
    assert results[0][:3] == results[1][:3]


@pytest.mark.parametrize("lanes", ["0xffffffff", "0x0"])
@pytest.mark.parametrize("instruction", PREFETCHES)
def test_prefetches_of_undefined_addresses(instruction: str, lanes: str) -> None:
    """Nothing depends on them, so `--strict` does not report them."""
    arrays = [np.zeros(4096, np.uint32) for _ in range(4)]
    run(f"  s_mov_b32 exec_lo, {lanes}\n  {instruction}", arrays, strict=True)
