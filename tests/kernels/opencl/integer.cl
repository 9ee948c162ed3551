#include "../device.h"

// Quotients and remainders, signed and unsigned, 64 bits; the upper half of a product.
kernel void divide_long(global const long *a, global const long *b, global long *out, int n) {
    int i = GID(x);
    if (i >= n)
        return;
    ulong ua = (ulong)a[i], ub = (ulong)b[i];
    out[5 * i] = a[i] / b[i];
    out[5 * i + 1] = a[i] % b[i];
    out[5 * i + 2] = (long)(ua / ub);
    out[5 * i + 3] = (long)(ua % ub);
    out[5 * i + 4] = (long)((unsigned __int128)ua * ub >> 64);
}

// The 512-bit product of 256-bit numbers, eight words each; the carries through 64-bit sums.
kernel void multiply_wide(global const uint *a, global const uint *b, global uint *product, int n) {
    int item = GID(x);
    if (item >= n)
        return;
    uint out[16];
    for (int i = 0; i < 16; ++i)
        out[i] = 0;
    for (int i = 0; i < 8; ++i) {
        ulong carry = 0;
        for (int j = 0; j < 8; ++j) {
            carry += (ulong)a[8 * item + i] * b[8 * item + j] + out[i + j];
            out[i + j] = (uint)carry;
            carry >>= 32;
        }
        out[i + 8] = (uint)carry;
    }
    for (int i = 0; i < 16; ++i)
        product[16 * item + i] = out[i];
}

// Sum and difference of 256-bit numbers by carry chains of 32-bit words; the last carries too.
kernel void add_wide(global const uint *a, global const uint *b, global uint *sum,
                     global uint *difference, int n) {
    int item = GID(x);
    if (item >= n)
        return;
    uint carry = 0, borrow = 0;
    for (int i = 0; i < 8; ++i) {
        sum[9 * item + i] = __builtin_addc(a[8 * item + i], b[8 * item + i], carry, &carry);
        difference[9 * item + i] = __builtin_subc(a[8 * item + i], b[8 * item + i], borrow, &borrow);
    }
    sum[9 * item + 8] = carry;
    difference[9 * item + 8] = borrow;
}

// Euclid's algorithm: as many steps as the pair needs. Powers modulo a number of 31 bits.
kernel void number_theory(global const uint *a, global const uint *b, global uint *gcd,
                          global uint *power, int n) {
    int i = GID(x);
    if (i >= n)
        return;
    uint x = a[i], y = b[i];
    while (y) {
        uint r = x % y;
        x = y;
        y = r;
    }
    gcd[i] = x;
    uint modulus = (b[i] >> 1) + 2;
    ulong base = a[i] % modulus, result = 1;
    for (uint e = b[i]; e; e >>= 1) {
        if (e & 1)
            result = result * base % modulus;
        base = base * base % modulus;
    }
    power[i] = (uint)result;
}

// Bits of 8, 16, 32 and 64: counts, leading and trailing zeros, reversal, rotation, saturation.
kernel void bits(global const ulong *in, global int *counts, global ulong *turned,
                 global short *saturated, int n) {
    int i = GID(x);
    if (i >= n)
        return;
    ulong v = in[i];
    uint w = (uint)(v >> 17);
    counts[6 * i] = __builtin_popcountl(v);
    counts[6 * i + 1] = v ? __builtin_clzl(v) : 64;
    counts[6 * i + 2] = v ? __builtin_ctzl(v) : 64;
    counts[6 * i + 3] = __builtin_popcount(w) - __builtin_clz(w | 1);
    counts[6 * i + 4] = (int)__builtin_bswap32(w);
    counts[6 * i + 5] = __builtin_elementwise_sub_sat((int)v, (int)(v >> 32));
    turned[2 * i] = __builtin_bitreverse64(v);
    turned[2 * i + 1] = v << (w & 63) | v >> (-w & 63);
    saturated[2 * i] = __builtin_elementwise_add_sat((short)v, (short)(v >> 16));
    saturated[2 * i + 1] =
        (short)__builtin_elementwise_sub_sat((ushort)v, (ushort)(v >> 16));
}
