// What these kernels use of the device, as clang's builtins: no OpenCL library is linked.
#define LID(d) ((int)__builtin_amdgcn_workitem_id_##d())
#define WID(d) ((int)__builtin_amdgcn_workgroup_id_##d())
#define LSZ(d) ((int)__builtin_amdgcn_workgroup_size_##d())
#define GID(d) (WID(d) * LSZ(d) + LID(d))
#define BARRIER()                                                                                  \
    do {                                                                                           \
        __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");                                     \
        __builtin_amdgcn_s_barrier();                                                              \
        __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");                                     \
    } while (0)
#define BLOCK(n) __attribute__((reqd_work_group_size(n, 1, 1)))

static inline float shuffle_xor(float value, int mask) {
    int lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
    return __builtin_bit_cast(
        float, __builtin_amdgcn_ds_bpermute((lane ^ mask) << 2, __builtin_bit_cast(int, value)));
}
static inline float exp_(float x) { return __builtin_amdgcn_exp2f(x * 1.44269504f); }
