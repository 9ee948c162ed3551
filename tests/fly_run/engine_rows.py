"""A few instructions on rows of registers: what goes in, what comes out."""

from __future__ import annotations

import numpy as np

from .engine_support import assemble, launch
from .test_engine_forms import KERNEL

LANES = 64


def run(
    target: str, body: str, *rows: np.ndarray, outputs: int = 1, vgprs: int = 64, lds: int = 0
) -> np.ndarray:
    """Runs `body` with the rows of input in v1, v2, …; v0 is the lane. The result is what `body`
    leaves in v40 and the registers behind it. s[2:3] is the address of the inputs, a row of 256
    bytes each."""
    loads = ["s_load_dwordx2 s[2:3], s[0:1], 0x0", "s_waitcnt lgkmcnt(0)"]
    loads += [
        f"v_lshlrev_b32 v63, 2, v0\n global_load_dword v{n + 1}, v63, s[2:3] offset:{256 * n}"
        for n in range(len(rows))
    ]
    loads += [f"v_mov_b32 v{40 + n}, 0x11111111" for n in range(outputs)]
    stores = [f"global_store_dword v63, v{40 + n}, s[2:3] offset:{256 * n}" for n in range(outputs)]
    text = "\n".join([*loads, "s_waitcnt vmcnt(0)", body, *stores, "s_endpgm"])
    code = assemble(KERNEL.format(target=target, body=text, vgprs=vgprs, more=""), target)
    data = np.zeros((max(len(rows), outputs), LANES), np.uint32)
    for number, row in enumerate(rows):
        data[number] = row.view(np.uint32)
    launch(code, [data], lds=lds)
    return data[:outputs].copy()
