"""Runs a few instructions on rows of registers."""

from __future__ import annotations

import numpy as np

from emulator_support.engine import assemble, launch

LANES = 64
# One pointer argument; v0 has the work item; sixteen vector registers unless told otherwise.
KERNEL = """
.amdgcn_target "amdgcn-amd-amdhsa--{target}"
.text
.globl k
.p2align 8
.type k,@function
k:
{body}
.size k, .-k
.rodata
.p2align 6
.amdhsa_kernel k
  .amdhsa_kernarg_size 16
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_next_free_vgpr {vgprs}
  .amdhsa_next_free_sgpr 32
  .amdhsa_accum_offset {vgprs}
  .amdhsa_system_vgpr_workitem_id 0
  {more}
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: k
    .symbol: k.kd
    .kernarg_segment_size: 16
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .wavefront_size: 64
    .sgpr_count: 32
    .vgpr_count: {vgprs}
    .max_flat_workgroup_size: 256
    .args:
      - {{.name: A, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}}
...
.end_amdgpu_metadata
"""


def run(
    target: str, body: str, *rows: np.ndarray, outputs: int = 1, vgprs: int = 64, lds: int = 0
) -> np.ndarray:
    """Runs `body` with the input rows in v1, v2, …; v0 is the lane number. Returns the content of
    v40 and the following registers. s[2:3] is the address of the inputs, a row of 256 bytes
    each."""
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
