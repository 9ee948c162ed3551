// A matrix product on matrix instructions.
#include "device.h"

typedef half half4_ __attribute__((ext_vector_type(4)));
typedef half half8_ __attribute__((ext_vector_type(8)));
typedef float float16_ __attribute__((ext_vector_type(16)));

// C = A·B for f16 A [m, k] and f16 B transposed, [n, k]; C is f32 [m, n]. m and n are multiples of
// 64, k of 16. A wave makes 64 × 64 results, as 2 × 2 tiles: in a tile, lane l has row (column)
// l % 32 of A (B). Which k is which within an instruction does not matter, as long as A and B agree:
// a lane's eight consecutive ones go to two instructions.
kernel __attribute__((reqd_work_group_size(64, 1, 1))) void
gemm_f16(global const half *a, global const half *b, global float *c, int n, int k) {
    int lane = LID(x), row = WID(y) * 64, column = WID(x) * 64;
    float16_ sum[2][2] = {};
    for (int at = lane / 32 * 8; at < k; at += 16) {
        half8_ x[2], y[2];
        for (int i = 0; i < 2; ++i) {
            x[i] = *(global const half8_ *)(a + (long)(row + 32 * i + lane % 32) * k + at);
            y[i] = *(global const half8_ *)(b + (long)(column + 32 * i + lane % 32) * k + at);
        }
        for (int i = 0; i < 2; ++i)
            for (int j = 0; j < 2; ++j) {
                sum[i][j] = __builtin_amdgcn_mfma_f32_32x32x8f16(x[i].lo, y[j].lo, sum[i][j], 0, 0, 0);
                sum[i][j] = __builtin_amdgcn_mfma_f32_32x32x8f16(x[i].hi, y[j].hi, sum[i][j], 0, 0, 0);
            }
    }
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j)
            for (int r = 0; r < 16; ++r) {
                int at = row + 32 * i + r / 4 * 8 + lane / 32 * 4 + r % 4;
                c[(long)at * n + column + 32 * j + lane % 32] = sum[i][j][r];
            }
}
