// Two-dimensional grids, tiles in LDS, atomics, private arrays and calls.
#include "device.h"

kernel __attribute__((reqd_work_group_size(16, 16, 1))) void
transpose(global const float *in, global float *out, int rows, int columns) {
    local float tile[16][17];
    int x = WID(x) * 16 + LID(x), y = WID(y) * 16 + LID(y);
    if (x < columns && y < rows)
        tile[LID(y)][LID(x)] = in[(long)y * columns + x];
    BARRIER();
    x = WID(y) * 16 + LID(x);
    y = WID(x) * 16 + LID(y);
    if (x < rows && y < columns)
        out[(long)y * rows + x] = tile[LID(x)][LID(y)];
}

kernel __attribute__((reqd_work_group_size(16, 16, 1))) void
matmul(global const float *a, global const float *b, global float *c, int m, int n, int k) {
    local float ta[16][16], tb[16][16];
    int column = WID(x) * 16 + LID(x), row = WID(y) * 16 + LID(y);
    float sum = 0.0f;
    for (int t = 0; t < k; t += 16) {
        ta[LID(y)][LID(x)] = row < m && t + LID(x) < k ? a[(long)row * k + t + LID(x)] : 0.0f;
        tb[LID(y)][LID(x)] = column < n && t + LID(y) < k ? b[(long)(t + LID(y)) * n + column] : 0.0f;
        BARRIER();
        for (int i = 0; i < 16; ++i)
            sum = __builtin_fmaf(ta[LID(y)][i], tb[i][LID(x)], sum);
        BARRIER();
    }
    if (row < m && column < n)
        c[(long)row * n + column] = sum;
}

kernel BLOCK(256) void histogram(global const uchar *in, global uint *counts, int n) {
    local uint bins[256];
    bins[LID(x)] = 0;
    BARRIER();
    for (int i = GID(x); i < n; i += 1024)
        __atomic_fetch_add(&bins[in[i]], 1u, __ATOMIC_RELAXED);
    BARRIER();
    if (bins[LID(x)])
        __atomic_fetch_add(&counts[LID(x)], bins[LID(x)], __ATOMIC_RELAXED);
}

kernel void atomics(global int *smallest, global uint *largest, global uint *bits,
                    global float *sum, global uint *order, global const int *in, int n) {
    int i = GID(x);
    if (i >= n)
        return;
    __atomic_fetch_min(smallest, in[i], __ATOMIC_RELAXED);
    __atomic_fetch_max(largest, (uint)in[i], __ATOMIC_RELAXED);
    __atomic_fetch_or(bits, 1u << (in[i] & 31), __ATOMIC_RELAXED);
    __opencl_atomic_fetch_add((global atomic_float *)sum, 1.0f, __ATOMIC_RELAXED,
                              __OPENCL_MEMORY_SCOPE_DEVICE);
    uint seen = *order, next;
    do {
        next = seen * 2 + 1;
    } while (!__atomic_compare_exchange_n(&order[i & 7], &seen, next, 0, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
}

kernel void stencil(global const float *u, global const float *v, global float *un,
                    global float *vn, int width, int height) {
    int x = GID(x), y = GID(y);
    if (x >= width || y >= height)
        return;
    int left = x ? x - 1 : width - 1, right = x + 1 < width ? x + 1 : 0;
    int up = y ? y - 1 : height - 1, down = y + 1 < height ? y + 1 : 0;
    int at = y * width + x;
    float lu = u[y * width + left] + u[y * width + right] + u[up * width + x] +
               u[down * width + x] - 4.0f * u[at];
    float lv = v[y * width + left] + v[y * width + right] + v[up * width + x] +
               v[down * width + x] - 4.0f * v[at];
    float uvv = u[at] * v[at] * v[at];
    un[at] = u[at] + 0.16f * lu - uvv + 0.035f * (1.0f - u[at]);
    vn[at] = v[at] + 0.08f * lv + uvv - 0.1f * v[at];
}

__attribute__((noinline)) static uint mix(uint *state, int i) {
    state[i & 7] = state[(i + 3) & 7] * 1664525u + 1013904223u + (uint)i;
    return state[i & 7] >> 7;
}

// A private array with addresses only known at run time, and a call: scratch, s_swappc, flat.
kernel void scratch(global const uint *seed, global uint *out, int n) {
    int i = GID(x);
    if (i >= n)
        return;
    uint state[8];
    for (int j = 0; j < 8; ++j)
        state[j] = seed[i] + (uint)j;
    uint sum = 0;
    for (int j = 0; j < 8 + (i & 7); ++j)
        sum += mix(state, i + j * (int)(seed[i] & 7));
    out[i] = sum ^ state[seed[i] & 7];
}

// An index that is -1 before the constant is added to it: gfx90a's buffer access adds both.
kernel void scratch_below(global const int *index, global int *out, int n) {
    int i = GID(x);
    if (i >= n)
        return;
    volatile int a[8];
    a[0] = i;
    a[5] = -i;
    out[i] = a[index[i] + 1];
}
