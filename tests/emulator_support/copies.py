"""Kernels of one wave on gfx1250 for tests of copies between memory and LDS."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from emulator_support.engine import assemble, launch

TARGET = "gfx1250"
LDS_BYTES = 32768
KERNEL = """
.text
.globl k
.p2align 8
.type k,@function
k:
  s_load_b256 s[4:11], s[0:1], 0x0
  v_lshlrev_b32 v250, 2, v0
  s_wait_kmcnt 0x0
{body}
  s_endpgm
.rodata
.p2align 6
.amdhsa_kernel k
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_next_free_vgpr 256
  .amdhsa_next_free_sgpr 64
  .amdhsa_kernarg_size 32
  .amdhsa_group_segment_fixed_size {lds}
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx1250
amdhsa.kernels:
  - .name: k
    .symbol: k.kd
    .kernarg_segment_size: 32
    .kernarg_segment_align: 8
    .group_segment_fixed_size: {lds}
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 64
    .vgpr_count: 256
    .max_flat_workgroup_size: 32
    .args:
      - {{.name: a, .size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global}}
      - {{.name: b, .size: 8, .offset: 8, .value_kind: global_buffer, .address_space: global}}
      - {{.name: c, .size: 8, .offset: 16, .value_kind: global_buffer, .address_space: global}}
      - {{.name: d, .size: 8, .offset: 24, .value_kind: global_buffer, .address_space: global}}
...
.end_amdgpu_metadata
"""


def run(body: str, arrays: list[np.ndarray], **options: Any) -> None:
    """Runs a wave; s[4:5], s[6:7], s[8:9] and s[10:11] are the addresses of four arrays, v250 is
    four times the lane."""
    launch(assemble(KERNEL.format(body=body, lds=LDS_BYTES), TARGET), arrays, block=32, **options)


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
