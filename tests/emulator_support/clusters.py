"""Kernels in assembly for tests of clusters of workgroups."""

from __future__ import annotations

from typing import Any

import numpy as np

from emulator_support import frame
from emulator_support.engine import assemble, launch

CODE = """  s_load_b64 s[4:5], s[0:1], 0x0
  v_and_b32 v1, 0x3ff, v0
  v_readfirstlane_b32 s6, v1
  s_lshr_b32 s6, s6, 5
  s_and_b32 s7, ttmp6, 15
  v_mov_b32 v0, v1
  v_mov_b32 v10, 0
  s_wait_kmcnt 0x0
{body}
  s_endpgm"""


def run(
    body: str,
    size: int = 2,
    groups: int = 2,
    waves: int = 1,
    limit: int = 100_000,
    **options: Any,
) -> np.ndarray:
    """Runs the instructions `body` in `groups` workgroups, `size` of them in a cluster. s[4:5] is
    the address of 64 words, which are returned; s6 is the number of the wave, s7 that of the
    workgroup in its cluster; v0 and v1 are the work item's, v10 is 0."""
    words = np.zeros(64, np.uint32)
    dims = f".cluster_dims: [{size}, 1, 1]"
    text = frame.kernel("gfx1250", CODE.format(body=body), lds=1024, metadata=(dims,))
    launch(
        assemble(text, "gfx1250"), [words], groups, 32 * waves, max_instructions=limit, **options
    )
    return words
