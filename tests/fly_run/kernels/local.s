// Takes two local pointers and a buffer; does nothing with them.
  .text
  .globl local
  .p2align 8
  .type local,@function
local:
  s_endpgm

  .rodata
  .p2align 6
  .amdhsa_kernel local
    .amdhsa_group_segment_fixed_size 40
    .amdhsa_kernarg_size 16
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_accum_offset 4
    .amdhsa_next_free_vgpr 4
    .amdhsa_next_free_sgpr 8
  .end_amdhsa_kernel

  .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: local
    .symbol: local.kd
    .kernarg_segment_size: 16
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 40
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 14
    .vgpr_count: 4
    .max_flat_workgroup_size: 256
    .args:
      - {.name: a, .offset: 0, .size: 4, .value_kind: dynamic_shared_pointer, .pointee_align: 4}
      - {.name: b, .offset: 4, .size: 4, .value_kind: dynamic_shared_pointer, .pointee_align: 8}
      - {.name: c, .offset: 8, .size: 8, .value_kind: global_buffer, .type_name: 'double*'}
...
  .end_amdgpu_metadata
