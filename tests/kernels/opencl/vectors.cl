#include "../device.h"

// Every width: vectors of 2, 3, 4, 8 and 16, each loaded, turned around and stored elsewhere.
kernel void vector_widths(global const char16 *c16, global const short8 *s8,
                          global const int3 *i3, global const long4 *l4,
                          global const double2 *d2, global char16 *oc, global short8 *os,
                          global int4 *oi, global long4 *ol, global double2 *od) {
    int i = GID(x);
    oc[i] = c16[i].s0f1e2d3c4b5a6978;
    os[i] = s8[i].s73625140 * (short8)(3);
    oi[i] = (int4)(i3[i].zxy - i3[i].yyx, i);
    ol[i] = l4[i].wzyx + (l4[i] >> (long4)(7));
    od[i] = d2[i].yx * (double2)(0.5, -2.0);
}

// Loads and stores at every alignment: a byte offset differs from lane to lane.
typedef struct __attribute__((packed)) {
    int v;
} LooseInt;
typedef struct __attribute__((packed)) {
    long v;
} LooseLong;
typedef struct __attribute__((packed)) {
    short v;
} LooseShort;
kernel void unaligned(global const uchar *in, global uchar *out) {
    int i = GID(x), at = i * 19;
    ((global LooseLong *)(out + at))->v = ((global const LooseLong *)(in + at + 1))->v * 3;
    ((global LooseInt *)(out + at + 8))->v = ((global const LooseInt *)(in + at + 9))->v - i;
    ((global LooseShort *)(out + at + 12))->v = ((global const LooseShort *)(in + at + 13))->v ^ 0x55;
    __builtin_memcpy(out + at + 14, in + at + 15, 3);
    out[at + 17] = in[at];
    out[at + 18] = (uchar)at;
}

// The same pointer to global, LDS or private memory: flat addresses, of any alignment in the struct.
static NOINLINE int sum_bytes(const uchar *from, int count) {
    int sum = 0;
    for (int i = 0; i < count; ++i)
        sum += from[i] << (i & 7);
    return sum;
}
kernel BLOCK(80) void generic_pointers(global const uchar *in, global int *out) {
    local uchar shared[80 * 4];
    uchar own[12];
    int t = LID(x);
    for (int i = 0; i < 4; ++i)
        shared[t * 4 + i] = in[GID(x) * 4 + i] ^ 0x11;
    for (int i = 0; i < 12; ++i)
        own[i] = (uchar)(in[GID(x) * 4] + i * t);
    BARRIER();
    const uchar *where = t % 3 == 0 ? (const uchar *)in + t : t % 3 == 1 ? (const uchar *)shared + t : own;
    out[GID(x)] = sum_bytes(where, 12);
}

// Integers of 8, 16, 32 and 64 bits and floats of 16, 32 and 64, from and to each other.
kernel void convert(global const float *in, global const long *big, global int *i32,
                    global uint *u32, global long *i64, global double *f64, global half *f16,
                    global float *back, int n) {
    int i = GID(x);
    if (i >= n)
        return;
    float v = in[i];
    i32[2 * i] = (int)v;
    i32[2 * i + 1] = (short)v + (signed char)big[i];
    u32[2 * i] = (uint)__builtin_fabsf(v);
    u32[2 * i + 1] = (uchar)big[i] << 8 | (ushort)big[i] >> 8;
    i64[2 * i] = (long)((double)v * 1e6);
    i64[2 * i + 1] = (long)(v * 1e6f);
    f64[2 * i] = (double)big[i];
    f64[2 * i + 1] = (double)(ulong)big[i] + (double)v;
    f16[2 * i] = (half)v;
    f16[2 * i + 1] = (half)(float)(short)big[i];
    back[3 * i] = (float)(half)(v + 0.1f);
    back[3 * i + 1] = (float)big[i];
    back[3 * i + 2] = (float)(ulong)big[i] + (float)(uchar)big[i];
}

// bf16 by its bits: round to nearest even, NaNs stay quiet.
static ushort to_bf16(float x) {
    uint bits = __builtin_bit_cast(uint, x);
    return (bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 64 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
kernel void convert_bf16(global const float *in, global ushort *made, global float *back) {
    int i = GID(x);
    made[i] = to_bf16(in[i]);
    back[i] = __builtin_bit_cast(float, (uint)made[i] << 16) * 1.5f;
}

// f16 arithmetic in pairs and fours; each operation is rounded.
kernel void packed_half(global const half4 *a, global const half4 *b, global half4 *out) {
    int i = GID(x);
    half4 x = a[i], y = b[i];
    out[4 * i] = x + y;
    out[4 * i + 1] = x * y - y;
    out[4 * i + 2] = -x * y.wzyx + (half4)(0.5h);
    out[4 * i + 3] = __builtin_elementwise_max(x.s0123, y.s2301) - __builtin_elementwise_min(x, y);
}

// 16-bit integers in pairs, and the dot products of bytes.
kernel void packed_integers(global const short4 *a, global const ushort4 *b, global short4 *out,
                            global int *dots) {
    int i = GID(x);
    short4 x = a[i], y = __builtin_astype(b[i], short4);
    ushort4 u = __builtin_astype(x, ushort4);
    out[4 * i] = x * y + y;
    out[4 * i + 1] = (x >> (y & (short4)(15))) - (y << (short4)(2));
    out[4 * i + 2] = __builtin_elementwise_max(x, y) ^ __builtin_elementwise_min(x, y);
    out[4 * i + 3] =
        __builtin_astype((u >> (ushort4)(3)) + __builtin_elementwise_max(u, b[i]), short4);
    char8 p = __builtin_astype(x, char8), q = __builtin_astype(y, char8);
    int sum = i;
    for (int k = 0; k < 8; ++k)
        sum += p[k] * q[k];
    dots[i] = sum;
}
