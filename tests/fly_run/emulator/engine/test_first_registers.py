"""What vector registers hold when a wave starts, in a slot that other waves have used before: only
the rows that code can name are set again."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_support import frame
from emulator_support.engine import assemble, launch
from fly_run.emulator import state
from oracle.probes.rdna_probe import GROUP, spelled

LANES = {"gfx942": 64, "gfx1100": 32, "gfx1250": 32}
GROUPS = 5
# v2: the offset of the lane's word in s[4:5].
BEGIN = """s_load_dwordx2 s[4:5], s[0:1], 0x0
v_and_b32 v2, 0x3ff, v0
v_lshlrev_b32 v2, 2, v2
s_mul_i32 s6, {group}, {bytes}
v_add_u32 v2, s6, v2
s_waitcnt lgkmcnt(0)
"""
# Stores a register that has not been written, and writes it.
USE = """global_store_dword v2, {row}, s[4:5]
v_mov_b32 {row}, 1
s_endpgm
"""
# Goes to code whose address is only known when it runs.
GO = """s_getpc_b64 s[10:11]
here:
s_add_u32 s10, s10, later-here
s_addc_u32 s11, s11, 0
s_setpc_b64 s[10:11]
s_endpgm
later:
"""


@pytest.mark.parametrize("target", LANES)
@pytest.mark.parametrize(
    "body",
    [USE.format(row="v5"), USE.format(row="v15"), GO + USE.format(row="v14")],
    ids=["v5", "the last", "found later"],
)
def test_a_wave_starts_with_poison(target: str, body: str) -> None:
    lanes, wide = LANES[target], target == "gfx942"
    text = BEGIN.format(group=GROUP.get(target, "s2"), bytes=4 * lanes) + body
    code = frame.kernel(
        target,
        text if wide else spelled(text, target),
        lanes=lanes,
        items=lanes,
        directives=(".amdhsa_accum_offset 16",) if wide else (),
        metadata=(".agpr_count: 0",) if wide else (),
    )
    found = np.zeros((GROUPS, lanes), np.uint32)
    launch(assemble(code, target), [found], grid=GROUPS, block=lanes)
    np.testing.assert_array_equal(found, state.POISON)
