#include "device.h"
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL FP_CONTRACT OFF

kernel void vector_add(global const float *a, global const float *b, global float *c, int n) {
    int i = GID(x);
    if (i < n)
        c[i] = a[i] + b[i];
}

kernel void saxpy(global const float *x, global float *y, float alpha, long n) {
    long i = (long)WID(x) * LSZ(x) + LID(x);
    if (i < n)
        y[i] = __builtin_fmaf(alpha, x[i], y[i]);
}

// A loop whose length differs from lane to lane: the Collatz steps of each element.
kernel void collatz(global const uint *start, global uint *steps, int n) {
    int i = GID(x);
    if (i >= n)
        return;
    uint value = start[i], count = 0;
    while (value != 1) {
        value = value & 1 ? 3 * value + 1 : value / 2;
        ++count;
    }
    steps[i] = count;
}

// Division, remainder and shifts by amounts that are only known at run time.
kernel void integers(global const int *a, global const int *b, global int *out, global long *wide,
                     int n) {
    int i = GID(x);
    if (i >= n)
        return;
    int d = b[i] | 1;
    uint ua = (uint)a[i], ud = (uint)d;
    out[6 * i + 0] = a[i] / d;
    out[6 * i + 1] = a[i] % d;
    out[6 * i + 2] = (int)(ua / ud);
    out[6 * i + 3] = (int)(ua % ud);
    out[6 * i + 4] = a[i] >> (b[i] & 31);
    out[6 * i + 5] = __builtin_popcount(ua) - __builtin_clz(ua | 1);
    wide[2 * i + 0] = (long)a[i] * b[i] + ((long)b[i] << 20);
    wide[2 * i + 1] = ((long)a[i] * 1000003l) / d;
}

// IEEE division and square root: what div_scale, div_fmas and div_fixup are for.
kernel void divide(global const float *a, global const float *b, global float *q, int n) {
    int i = GID(x);
    if (i < n)
        q[i] = a[i] / b[i];
}

kernel void divide_double(global const double *a, global const double *b, global double *q,
                          int n) {
    int i = GID(x);
    if (i < n)
        q[i] = a[i] / b[i];
}

kernel void root(global const float *a, global const double *b, global float *r,
                 global double *s, int n) {
    int i = GID(x);
    if (i < n) {
        r[i] = __builtin_sqrtf(a[i]);
        s[i] = __builtin_sqrt(b[i]);
    }
}

// Every width of load and store, and the conversions between them.
kernel void widths(global const uchar *a, global const short *b, global const char *c,
                   global ushort *u16, global uchar *u8, global half *f16, global long *i64,
                   global double *f64, int n) {
    int i = GID(x);
    if (i >= n)
        return;
    int sum = a[i] + b[i] - c[i];
    u16[i] = (ushort)sum;
    u8[i] = (uchar)(sum >> 3);
    f16[i] = (half)((float)sum * 0.37f);
    i64[i] = (long)sum << 20 ^ b[i];
    f64[i] = (double)sum / 3.0 + (double)(float)c[i];
}
