"""Kernels of one wave on gfx1250 for tests of copies between memory and LDS."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from emulator_support import frame
from emulator_support.engine import assemble, launch

TARGET = "gfx1250"
LDS_BYTES = 32768
CODE = """  s_load_b256 s[4:11], s[0:1], 0x0
  v_lshlrev_b32 v250, 2, v0
  s_wait_kmcnt 0x0
{body}
  s_endpgm"""


def run(body: str, arrays: list[np.ndarray], **options: Any) -> None:
    """Runs a wave; s[4:5], s[6:7], s[8:9] and s[10:11] are the addresses of four arrays, v250 is
    four times the lane."""
    text = frame.kernel(
        TARGET,
        CODE.format(body=body),
        arrays="a b c d",
        vgprs=256,
        sgprs=64,
        items=32,
        lds=LDS_BYTES,
    )
    launch(assemble(text, TARGET), arrays, block=32, **options)


def fill_lds(pair: str) -> str:
    """Copies an array of LDS_BYTES to LDS."""
    return _each_row(
        f"  global_load_b32 v251, v252, {pair}\n  s_wait_loadcnt 0x0\n"
        "  ds_store_b32 v252, v251\n  s_wait_dscnt 0x0"
    )


def store_lds(pair: str) -> str:
    return _each_row(
        f"  ds_load_b32 v251, v252\n  s_wait_dscnt 0x0\n"
        f"  global_store_b32 v252, v251, {pair}\n  s_wait_storecnt 0x0"
    )


def _each_row(body: str) -> str:
    label = f"row_{zlib.crc32(body.encode())}"
    return f"""
  v_mov_b32 v252, v250
  s_mov_b32 s60, {LDS_BYTES // 128}
{label}:
{body}
  v_add_nc_u32 v252, 0x80, v252
  s_sub_co_i32 s60, s60, 1
  s_cmp_lg_u32 s60, 0
  s_cbranch_scc1 {label}
"""
