// Control flow that only registers know: a call to an address formed from s_getpc_b64, one through
// a pointer that the loader fills, and one through s_call_b64.
  .text
  .globl near
  .hidden near
  .p2align 8
  .type near,@function
near:
  v_mov_b32_e32 v1, 1
  s_setpc_b64 s[30:31]
  .long 0xbfffffff  // no instruction
  // As far behind it as the second s_getpc_b64 of s[4:5] stands behind the first: the second one's
  // constants, added to where the first one stands, would lead to it.
  .fill 5, 4, 0xbf800000
later:
  v_mov_b32_e32 v4, 4
  s_setpc_b64 s[30:31]

  .globl far
  .p2align 8
  .type far,@function
far:
  v_mov_b32_e32 v2, 2
  s_setpc_b64 s[30:31]

  .globl direct
  .hidden direct
  .p2align 8
direct:
  v_mov_b32_e32 v3, 3
  s_setpc_b64 s[30:31]
  v_mov_b32_e32 v9, 9  // reached by nothing

  .globl calls
  .p2align 8
  .type calls,@function
calls:
  s_getpc_b64 s[4:5]
  s_add_u32 s4, s4, near@rel32@lo+4
  s_addc_u32 s5, s5, near@rel32@hi+12
  s_swappc_b64 s[30:31], s[4:5]
  s_getpc_b64 s[4:5]
  s_add_u32 s4, s4, later@rel32@lo+4
  s_addc_u32 s5, s5, later@rel32@hi+12
  s_swappc_b64 s[30:31], s[4:5]
  s_getpc_b64 s[6:7]
  s_add_u32 s6, s6, far@gotpcrel32@lo+4
  s_addc_u32 s7, s7, far@gotpcrel32@hi+12
  s_load_dwordx2 s[6:7], s[6:7], 0x0
  s_waitcnt lgkmcnt(0)
  s_swappc_b64 s[30:31], s[6:7]
  s_call_b64 s[30:31], direct
  s_cbranch_scc1 fail
  s_endpgm
fail:
  s_trap 2
  .long 0xbfffffff
  .size calls, .-calls

  .rodata
  .p2align 6
  .amdhsa_kernel calls
    .amdhsa_accum_offset 4
    .amdhsa_next_free_vgpr 4
    .amdhsa_next_free_sgpr 32
  .end_amdhsa_kernel

  .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: calls
    .symbol: calls.kd
    .kernarg_segment_size: 0
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 38
    .vgpr_count: 4
    .max_flat_workgroup_size: 1024
    .args: []
...
  .end_amdgpu_metadata
