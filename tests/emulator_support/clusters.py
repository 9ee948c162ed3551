"""Kernels in assembly for tests of clusters of workgroups."""

from __future__ import annotations

from typing import Any

import numpy as np

from emulator_support.engine import assemble, launch

KERNEL = """
.text
.globl k
.p2align 8
.type k,@function
k:
  s_load_b64 s[4:5], s[0:1], 0x0
  v_and_b32 v1, 0x3ff, v0
  v_readfirstlane_b32 s6, v1
  s_lshr_b32 s6, s6, 5
  s_and_b32 s7, ttmp6, 15
  v_mov_b32 v0, v1
  v_mov_b32 v10, 0
  s_wait_kmcnt 0x0
{body}
  s_endpgm
.rodata
.p2align 6
.amdhsa_kernel k
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_next_free_vgpr 16
  .amdhsa_next_free_sgpr 32
  .amdhsa_kernarg_size 8
  .amdhsa_group_segment_fixed_size 1024
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx1250
amdhsa.kernels:
  - .name: k
    .symbol: k.kd
    .kernarg_segment_size: 8
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 1024
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 32
    .vgpr_count: 16
    .max_flat_workgroup_size: 1024
    .cluster_dims: [{cluster}]
    .args:
      - {{.name: a, .size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global}}
...
.end_amdgpu_metadata
"""


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
    code = assemble(KERNEL.format(body=body, cluster=f"{size}, 1, 1"), "gfx1250")
    launch(code, [words], groups, 32 * waves, max_instructions=limit, **options)
    return words
