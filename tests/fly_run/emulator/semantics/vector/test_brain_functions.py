"""gfx1250's functions of one bf16, of every bf16 that there is."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_support import frame
from emulator_support.engine import assemble, launch
from oracle.vector.cdna5_valu import BRAIN, narrowed, widened

ITEMS = 1024
NUMBERS = np.arange(1 << 16, dtype=np.uint32)
OLD = 0x5A5A0000  # the upper half of the result's register, which stays
TURNS = 256  # beyond, sine and cosine are not specified


def results(function: str, mode: tuple[str, ...]) -> np.ndarray:
    code = f"""  s_load_b64 s[4:5], s[0:1], 0x0
  s_lshl_b32 s6, ttmp9, 10
  v_and_b32 v0, {ITEMS - 1}, v0
  v_add_nc_u32 v1, s6, v0
  v_lshlrev_b32 v2, 2, v1
  v_mov_b32 v3, {OLD:#x}
  {function}_e64 v3, v1
  s_wait_kmcnt 0x0
  global_store_b32 v2, v3, s[4:5]
  s_endpgm"""
    found = np.zeros(len(NUMBERS), np.uint32)
    text = frame.kernel("gfx1250", code, directives=mode)
    launch(assemble(text, "gfx1250"), [found], len(NUMBERS) // ITEMS, ITEMS)
    return found


# bf16 is rounded to nearest even, and has denormals, whatever MODE says of f32.
MODES = (
    (".amdhsa_float_denorm_mode_32 3",),
    (".amdhsa_float_denorm_mode_32 0", ".amdhsa_float_round_mode_32 1"),
)


@pytest.mark.parametrize("mode", MODES, ids=("plain", "flushing"))
def test_every_argument(mode: tuple[str, ...]) -> None:
    with np.errstate(all="ignore"):
        values = widened(NUMBERS)
        for name, function in BRAIN.items():
            turns = name in ("v_sin_bf16", "v_cos_bf16")
            specified = ~(np.abs(values) > TURNS) if turns else np.ones(len(values), bool)
            exact = function(np.where(specified, values, 0))
            wanted = narrowed(exact)
            found = results(name, mode)
            assert (found & 0xFFFF0000 == OLD).all()
            equal = (found & 0xFFFF == wanted) | (
                np.isnan(widened(found & 0xFFFF)) & np.isnan(widened(wanted))
            )
            if turns:  # a zero has either sign; the host's π is not π
                equal |= (np.abs(exact) < 1e-12) & (found & 0x7FFF == 0)
            wrong = np.flatnonzero(specified & ~equal)
            assert not len(wrong), f"{name} of {wrong[:8]}: {found[wrong[:8]]}"
