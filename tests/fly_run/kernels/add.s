// C[i] = A[i] + B[i] for i < n, one work item an element. Arguments: A, B, C, n (64 bits).
  .text
  .globl add
  .p2align 8
  .type add,@function
add:
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  s_load_dwordx4 s[8:11], s[0:1], 0x10
  v_lshl_add_u32 v0, s2, 6, v0
  v_mov_b32_e32 v1, 0
  s_waitcnt lgkmcnt(0)
  v_cmp_gt_i64_e32 vcc, s[10:11], v[0:1]
  s_and_saveexec_b64 s[0:1], vcc
  s_cbranch_execz end
  v_lshlrev_b32_e32 v0, 2, v0
  global_load_dword v2, v0, s[4:5]
  global_load_dword v3, v0, s[6:7]
  s_waitcnt vmcnt(0)
  v_add_f32_e32 v2, v2, v3
  global_store_dword v0, v2, s[8:9]
end:
  s_endpgm
  .size add, .-add

  .rodata
  .p2align 6
  .amdhsa_kernel add
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_system_sgpr_workgroup_id_x 1
    .amdhsa_kernarg_size 32
    .amdhsa_accum_offset 4
    .amdhsa_next_free_vgpr 4
    .amdhsa_next_free_sgpr 12
  .end_amdhsa_kernel

  .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: add
    .symbol: add.kd
    .kernarg_segment_size: 32
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 18
    .vgpr_count: 4
    .agpr_count: 0
    .max_flat_workgroup_size: 64
    .args:
      - {.offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.offset: 8, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.offset: 16, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.offset: 24, .size: 8, .value_kind: by_value}
...
  .end_amdgpu_metadata
