// What these kernels use of the device, as clang's builtins: no OpenCL library is linked. Without a
// device (`opencl/host.c`) the work items of a workgroup are coroutines of the host's processor.
#pragma once
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

#ifdef __AMDGCN__
#define LID(d) ((int)__builtin_amdgcn_workitem_id_##d())
#define WID(d) ((int)__builtin_amdgcn_workgroup_id_##d())
#define LSZ(d) ((int)__builtin_amdgcn_workgroup_size_##d())
#define GSZ(d) ((int)__builtin_amdgcn_grid_size_##d())
#define BARRIER()                                                                                  \
    do {                                                                                           \
        __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");                                     \
        __builtin_amdgcn_s_barrier();                                                              \
        __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");                                     \
    } while (0)
#else
enum { AXIS_x, AXIS_y, AXIS_z };
extern int host_item[3], host_group[3], host_block[3], host_grid[3];
void host_barrier(void);
#define LID(d) host_item[AXIS_##d]
#define WID(d) host_group[AXIS_##d]
#define LSZ(d) host_block[AXIS_##d]
#define GSZ(d) (host_grid[AXIS_##d] * host_block[AXIS_##d])
#define BARRIER() host_barrier()
#endif

#define GID(d) (WID(d) * LSZ(d) + LID(d))
#if defined(__GFX9__) || defined(WIDE) // WIDE: -mwavefrontsize64
#define LANES 64 // of a wave
#else
#define LANES 32
#endif
#define BLOCK(n) __attribute__((reqd_work_group_size(n, 1, 1)))
#define NOINLINE __attribute__((noinline))

// Relaxed atomics; `op`: add, sub, and, or, xor, min, max. They give the old value.
#define ATOMIC(op, pointer, value)                                                                 \
    __scoped_atomic_fetch_##op(pointer, value, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE)
#define ATOMIC_LOCAL(op, pointer, value)                                                           \
    __scoped_atomic_fetch_##op(pointer, value, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP)

#ifdef __AMDGCN__
#if (defined(__GFX11__) || defined(__GFX12__)) && !defined(WIDE)
#define WAVE 32
#else
#define WAVE 64
#endif
#define LANE() ((int)__builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u)))

static inline int shuffle(int value, int lane) {
    return __builtin_amdgcn_ds_bpermute(lane << 2, value);
}
static inline float shuffle_xor(float value, int mask) {
    return __builtin_bit_cast(float, shuffle(__builtin_bit_cast(int, value), LANE() ^ mask));
}
static inline float exp_(float x) { return __builtin_amdgcn_exp2f(x * 1.44269504f); }
#endif
