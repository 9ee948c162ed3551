#include "../device.h"

// Operations that C has no name for, of bytes and bits.
kernel void bytes(global const uint2 *in, global uint *to, int n) {
    if (GID(x) >= n)
        return;
    global uint *out = to + GID(x) * 16;
    uint a = in[GID(x)].x, b = in[GID(x)].y;
    out[0] = __builtin_amdgcn_perm(a, b, 0x03060c01);
    out[1] = __builtin_amdgcn_perm(a, b, 0x0908000d);
    out[2] = __builtin_amdgcn_perm(a, b, b & 0x07070707);
    out[3] = __builtin_amdgcn_alignbyte(a, b, b);
    out[4] = __builtin_amdgcn_alignbit(a, b, a);
    out[5] = __builtin_amdgcn_ubfe(a, b & 31, b >> 8 & 31);
    out[6] = __builtin_amdgcn_sbfe(a, b & 31, b >> 8 & 31);
    out[7] = __builtin_amdgcn_sad_u8(a, b, a);
    out[8] = __builtin_amdgcn_msad_u8(a, b, b);
    out[9] = __builtin_amdgcn_sad_u16(a, b, 5);
    out[10] = __builtin_amdgcn_lerp(a, b, 0x01000101);
    out[11] = __builtin_amdgcn_udot4(a, b, a, false);
    out[12] = __builtin_amdgcn_udot8(a, b, b, false);
#ifndef __GFX9__
    out[13] = __builtin_amdgcn_sudot4(true, a, true, b, a, false);
    out[14] = __builtin_amdgcn_sudot4(true, a, true, b, 0x7fffff00, true);
#else
    out[13] = __builtin_amdgcn_sdot4(a, b, a, false);
    out[14] = __builtin_amdgcn_sdot4(a, b, 0x7fffff00, true);
#endif
    out[15] = __builtin_amdgcn_cvt_pk_u8_f32((float)(a & 1023), 2, b);
}

// Operations that C has no name for, of floats.
kernel void parts(global const float *in, global float *floats, global int *integers) {
    int i = GID(x);
    float x = in[i];
    floats[4 * i] = __builtin_amdgcn_fractf(x);
    floats[4 * i + 1] = __builtin_amdgcn_frexp_mantf(x);
    floats[4 * i + 2] = __builtin_amdgcn_fmed3f(x, 1.5f, -0.25f);
    floats[4 * i + 3] = __builtin_ldexpf(x, (i % 80 - 40) * 4);
    integers[4 * i] = __builtin_amdgcn_frexp_expf(x);
    // A signalling NaN, -subnormal, +0, +subnormal or +infinity.
    integers[4 * i + 1] = __builtin_amdgcn_classf(x, 0x2d1);
    integers[4 * i + 2] = __builtin_bit_cast(int, __builtin_amdgcn_cvt_pkrtz(x, -x * 3.0f));
    integers[4 * i + 3] = __builtin_bit_cast(int, __builtin_amdgcn_cvt_pk_i16(i * 991 - 70000, -i));
}

// 2ˣ, log₂, 1/x, 1/√x, √ and turns' sine and cosine: the instructions themselves.
kernel void transcendental(global const float *in, global float *out) {
    int i = GID(x);
    float x = in[i];
    out[7 * i] = __builtin_amdgcn_exp2f(x * 4.0f - 20.0f);
    out[7 * i + 1] = __builtin_amdgcn_logf(x);
    out[7 * i + 2] = __builtin_amdgcn_rcpf(x);
    out[7 * i + 3] = __builtin_amdgcn_rsqf(x);
    out[7 * i + 4] = __builtin_amdgcn_sqrtf(x);
    out[7 * i + 5] = __builtin_amdgcn_sinf(x);
    out[7 * i + 6] = __builtin_amdgcn_cosf(x);
}

#if !defined(__gfx1250__) // which has no such instruction
// Dot products of pairs of f16, and bf16 made by the compiler's own conversion.
kernel void dot_half(global const half2 *a, global const half2 *b, global float *out,
                     global ushort *bf16) {
    int i = GID(x);
    out[3 * i] = __builtin_amdgcn_fdot2(a[i], b[i], (float)i, false);
    out[3 * i + 1] = __builtin_amdgcn_fdot2(a[i].yx, b[i], -0.5f, true);
    out[3 * i + 2] = __builtin_amdgcn_fdot2(-a[i], b[i], -(float)(3 * i), false);
    bf16[2 * i] = __builtin_bit_cast(ushort, (__bf16)((float)a[i].x * 1.01f));
    bf16[2 * i + 1] = __builtin_bit_cast(ushort, (__bf16)((float)b[i].y * 0.0037f));
}
#endif

#if defined(__gfx942__) || defined(__gfx950__) || defined(__GFX12__)
// fp8 and bf8, to and from; stochastic rounding by bits that are an argument.
kernel void convert_fp8(global const float2 *in, global const int *noise, global float *out) {
    int i = GID(x);
    int fp8 = __builtin_amdgcn_cvt_pk_fp8_f32(in[i].x, in[i].y, 0, true);
    int bf8 = __builtin_amdgcn_cvt_pk_bf8_f32(in[i].x, in[i].y, 0, false);
    out[8 * i] = __builtin_amdgcn_cvt_f32_fp8(fp8, 2);
    out[8 * i + 1] = __builtin_amdgcn_cvt_f32_fp8(fp8, 3);
    out[8 * i + 2] = __builtin_amdgcn_cvt_pk_f32_fp8(fp8, true)[1];
    out[8 * i + 3] = __builtin_amdgcn_cvt_f32_bf8(bf8, 0);
    out[8 * i + 4] = __builtin_amdgcn_cvt_f32_bf8(bf8, 1);
    out[8 * i + 5] = __builtin_amdgcn_cvt_pk_f32_bf8(bf8, false)[0];
    int rounded = __builtin_amdgcn_cvt_sr_fp8_f32(in[i].x, noise[i], 0, 1);
    rounded = __builtin_amdgcn_cvt_sr_bf8_f32(in[i].y, noise[i], rounded, 3);
    out[8 * i + 6] = __builtin_amdgcn_cvt_f32_fp8(rounded, 1);
    out[8 * i + 7] = __builtin_amdgcn_cvt_f32_bf8(rounded, 3);
}
#endif
