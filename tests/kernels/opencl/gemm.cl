#include "../device.h"

// C = A B in f32, 16×16 tiles; m, n and k need not be multiples of 16.
kernel __attribute__((reqd_work_group_size(16, 16, 1))) void
gemm_tiled(global const float *a, global const float *b, global float *c, int m, int n, int k) {
    local float left[16][16], right[16][17];
    int x = LID(x), y = LID(y), row = GID(y), column = GID(x);
    float sum = 0;
    for (int base = 0; base < k; base += 16) {
        left[y][x] = row < m && base + x < k ? a[row * k + base + x] : 0;
        right[y][x] = base + y < k && column < n ? b[(base + y) * n + column] : 0;
        BARRIER();
        for (int i = 0; i < 16; ++i)
            sum = __builtin_fmaf(left[y][i], right[i][x], sum);
        BARRIER();
    }
    if (row < m && column < n)
        c[row * n + column] = sum;
}

// y = scale · W x with 8-bit weights and f16 vector; a row for each workgroup.
kernel BLOCK(64) void gemv_quantised(global const char4 *weights, global const half4 *x,
                                     global const half *scale, global float *y, int quads) {
    local float part[64];
    int t = LID(x), row = WID(x);
    float sum = 0;
    for (int i = t; i < quads; i += 64) {
        char4 w = weights[row * quads + i];
        half4 v = x[i];
        sum += (float)w.x * (float)v.x;
        sum += (float)w.y * (float)v.y;
        sum += (float)w.z * (float)v.z;
        sum += (float)w.w * (float)v.w;
    }
    part[t] = sum;
    for (int step = 32; step > 0; step /= 2) {
        BARRIER();
        if (t < step)
            part[t] += part[t + step];
    }
    if (t == 0)
        y[row] = (float)scale[row] * part[0];
}

// LU factors without pivoting of an 8×8 matrix for each workgroup: unit lower below the diagonal.
kernel __attribute__((reqd_work_group_size(8, 8, 1))) void lu(global double *matrices) {
    local double a[8][8];
    int i = LID(y), j = LID(x);
    global double *mine = matrices + WID(x) * 64;
    a[i][j] = mine[i * 8 + j];
    for (int k = 0; k < 7; ++k) {
        BARRIER();
        if (i > k && j == k)
            a[i][k] = a[i][k] / a[k][k];
        BARRIER();
        if (i > k && j > k)
            a[i][j] -= a[i][k] * a[k][j];
    }
    BARRIER();
    mine[i * 8 + j] = a[i][j];
}

// The inverse of a 4×4 matrix by cofactors: 2×2 minors of the upper and of the lower rows.
kernel void inverse(global const double4 *in, global double4 *out, int n) {
    int i = GID(x);
    if (i >= n)
        return;
    double4 a = in[4 * i], b = in[4 * i + 1], c = in[4 * i + 2], d = in[4 * i + 3];
    double s0 = a.x * b.y - b.x * a.y, s1 = a.x * b.z - b.x * a.z, s2 = a.x * b.w - b.x * a.w;
    double s3 = a.y * b.z - b.y * a.z, s4 = a.y * b.w - b.y * a.w, s5 = a.z * b.w - b.z * a.w;
    double c0 = c.x * d.y - d.x * c.y, c1 = c.x * d.z - d.x * c.z, c2 = c.x * d.w - d.x * c.w;
    double c3 = c.y * d.z - d.y * c.z, c4 = c.y * d.w - d.y * c.w, c5 = c.z * d.w - d.z * c.w;
    double r = 1.0 / (s0 * c5 - s1 * c4 + s2 * c3 + s3 * c2 - s4 * c1 + s5 * c0);
    out[4 * i] = r * (double4)(b.y * c5 - b.z * c4 + b.w * c3, -a.y * c5 + a.z * c4 - a.w * c3,
                               d.y * s5 - d.z * s4 + d.w * s3, -c.y * s5 + c.z * s4 - c.w * s3);
    out[4 * i + 1] = r * (double4)(-b.x * c5 + b.z * c2 - b.w * c1, a.x * c5 - a.z * c2 + a.w * c1,
                                   -d.x * s5 + d.z * s2 - d.w * s1, c.x * s5 - c.z * s2 + c.w * s1);
    out[4 * i + 2] = r * (double4)(b.x * c4 - b.y * c2 + b.w * c0, -a.x * c4 + a.y * c2 - a.w * c0,
                                   d.x * s4 - d.y * s2 + d.w * s0, -c.x * s4 + c.y * s2 - c.w * s0);
    out[4 * i + 3] = r * (double4)(-b.x * c3 + b.y * c1 - b.z * c0, a.x * c3 - a.y * c1 + a.z * c0,
                                   -d.x * s3 + d.y * s1 - d.z * s0, c.x * s3 - c.y * s1 + c.z * s0);
}
