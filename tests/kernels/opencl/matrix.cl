#include "../device.h"

// C = A B by the matrix instructions of each target. 64 work items, one wave or two that do the same,
// make a tile of 16×16 or 32×32; what a lane holds of A, B and D is as the ISA manuals' tables say.
typedef float v2f __attribute__((ext_vector_type(2)));
typedef float v4f __attribute__((ext_vector_type(4)));
typedef float v8f __attribute__((ext_vector_type(8)));
typedef float v16f __attribute__((ext_vector_type(16)));
typedef int v2i __attribute__((ext_vector_type(2)));
typedef int v4i __attribute__((ext_vector_type(4)));
typedef int v8i __attribute__((ext_vector_type(8)));
typedef half v4h __attribute__((ext_vector_type(4)));
typedef half v8h __attribute__((ext_vector_type(8)));
typedef half v16h __attribute__((ext_vector_type(16)));
typedef short v2s __attribute__((ext_vector_type(2)));
typedef short v4s __attribute__((ext_vector_type(4)));
typedef short v8s __attribute__((ext_vector_type(8)));
typedef short v16s __attribute__((ext_vector_type(16)));
typedef __bf16 v16b __attribute__((ext_vector_type(16)));
typedef __bf16 v8b __attribute__((ext_vector_type(8)));
typedef double v4d __attribute__((ext_vector_type(4)));

// The lanes of a column of D, and of a step of k, come in groups of 16.
#define PART (LANE() / 16)
#if defined(__GFX11__)
#define K_PART 0 // both groups hold all of k
#define ROW(r) (2 * (r) + PART)
#define ROWS 8
#elif defined(__GFX12__)
#define K_PART PART
#define ROW(r) (8 * PART + (r))
#define ROWS 8
#else
#define K_PART PART
#define ROW(r) (4 * PART + (r))
#define ROWS 4
#endif

// The k of element j of a lane; gfx1250 has runs of eight from alternating groups of lanes.
#if defined(__gfx1250__)
#define K_OF(count, j) ((j) / 8 * 16 + PART * 8 + (j) % 8)
#else
#define K_OF(count, j) (K_PART * (count) + (j))
#endif

// `count` elements a lane of A's row and of B's column; `step` of k an instruction; `PUT` stores an
// element where the instruction wants it.
#define GEMM(name, element, to, vector, count, step, sums, rows, row, PUT, MULTIPLY)               \
    kernel BLOCK(64) void name(global const element *a, global const element *b, global to *c,   \
                                 int n, int k) {                                                   \
        int line = LANE() % 16;                                                                    \
        sums sum = 0;                                                                              \
        for (int base = 0; base < k; base += step) {                                               \
            vector left, right;                                                                    \
            for (int j = 0; j < count; ++j) {                                                      \
                int at = base + K_OF(count, j);                                                    \
                PUT(left, j, a[(WID(y) * 16 + line) * k + at]);                                    \
                PUT(right, j, b[at * n + WID(x) * 16 + line]);                                     \
            }                                                                                      \
            sum = MULTIPLY(left, right, sum);                                                      \
        }                                                                                          \
        for (int r = 0; r < rows; ++r)                                                             \
            c[(WID(y) * 16 + row(r)) * n + WID(x) * 16 + line] = ((const to *)&sum)[r];       \
    }
#define ELEMENT(v, j, x) ((v)[j] = (x))
#define BYTE(v, j, x) (((signed char *)&(v))[j] = (x))
#define SCALAR(v, j, x) ((v) = (x))
#define BF16_BITS(v, j, x) ((v)[j] = (short)(x))
#define BF16(v, j, x) ((v)[j] = __builtin_bit_cast(__bf16, x))

#if defined(__GFX11__)
#define F16(a, b, c) __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a, b, c)
#define BF(a, b, c) __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(a, b, c)
#define I8(a, b, c) __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(true, a, true, b, c, false)
#define HALF(a, b, c) __builtin_amdgcn_wmma_f16_16x16x16_f16_w32(a, b, c, false)
GEMM(gemm_f16, half, float, v16h, 16, 16, v8f, ROWS, ROW, ELEMENT, F16)
GEMM(gemm_bf16, ushort, float, v16s, 16, 16, v8f, ROWS, ROW, BF16_BITS, BF)
GEMM(gemm_i8, char, int, v4i, 16, 16, v8i, ROWS, ROW, BYTE, I8)
#elif defined(__gfx1250__)
#define F16(a, b, c) __builtin_amdgcn_wmma_f32_16x16x32_f16(0, a, 0, b, 0, c, false, false)
#define BF(a, b, c) __builtin_amdgcn_wmma_f32_16x16x32_bf16(0, a, 0, b, 0, c, false, false)
#define I8(a, b, c) __builtin_amdgcn_wmma_i32_16x16x64_iu8(true, a, true, b, c, false, false)
#define HALF(a, b, c) __builtin_amdgcn_wmma_f16_16x16x32_f16(0, a, 0, b, 0, c, false, false)
#define FP8(a, b, c) __builtin_amdgcn_wmma_f32_16x16x64_fp8_fp8(a, b, 0, c, false, false)
#define BF8(a, b, c) __builtin_amdgcn_wmma_f32_16x16x64_bf8_fp8(a, b, 0, c, false, false)
#define F32(a, b, c) __builtin_amdgcn_wmma_f32_16x16x4_f32(0, a, 0, b, 0, c, false, false)
GEMM(gemm_f16, half, float, v16h, 16, 32, v8f, ROWS, ROW, ELEMENT, F16)
GEMM(gemm_bf16, ushort, float, v16b, 16, 32, v8f, ROWS, ROW, BF16, BF)
GEMM(gemm_i8, char, int, v8i, 32, 64, v8i, ROWS, ROW, BYTE, I8)
GEMM(gemm_half, half, half, v16h, 16, 32, v8h, ROWS, ROW, ELEMENT, HALF)
#undef K_OF
#define K_OF(count, j) (PART * (count) + (j)) // f32
GEMM(gemm_f32, float, float, v2f, 2, 4, v8f, ROWS, ROW, ELEMENT, F32)
#elif defined(__GFX12__)
#define F16(a, b, c) __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(a, b, c)
#define BF(a, b, c) __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(a, b, c)
#define I8(a, b, c) __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(true, a, true, b, c, false)
#define HALF(a, b, c) __builtin_amdgcn_wmma_f16_16x16x16_f16_w32_gfx12(a, b, c)
#define FP8(a, b, c) __builtin_amdgcn_wmma_f32_16x16x16_fp8_fp8_w32_gfx12(a, b, c)
#define BF8(a, b, c) __builtin_amdgcn_wmma_f32_16x16x16_bf8_fp8_w32_gfx12(a, b, c)
GEMM(gemm_f16, half, float, v8h, 8, 16, v8f, ROWS, ROW, ELEMENT, F16)
GEMM(gemm_bf16, ushort, float, v8s, 8, 16, v8f, ROWS, ROW, BF16_BITS, BF)
GEMM(gemm_i8, char, int, v2i, 8, 16, v8i, ROWS, ROW, BYTE, I8)
GEMM(gemm_half, half, half, v8h, 8, 16, v8h, ROWS, ROW, ELEMENT, HALF)
#else
#define F16(a, b, c) __builtin_amdgcn_mfma_f32_16x16x16f16(a, b, c, 0, 0, 0)
#define F32(a, b, c) __builtin_amdgcn_mfma_f32_16x16x4f32(a, b, c, 0, 0, 0)
#define F64(a, b, c) __builtin_amdgcn_mfma_f64_16x16x4f64(a, b, c, 0, 0, 0)
#define FP8(a, b, c) __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(a, b, c, 0, 0, 0)
#define BF8(a, b, c) __builtin_amdgcn_mfma_f32_16x16x32_bf8_fp8(a, b, c, 0, 0, 0)
#define ROW_F64(r) (4 * (r) + PART)
GEMM(gemm_f16, half, float, v4h, 4, 16, v4f, ROWS, ROW, ELEMENT, F16)
GEMM(gemm_f32, float, float, float, 1, 4, v4f, ROWS, ROW, SCALAR, F32)
#if defined(__gfx908__)
#define BF(a, b, c) __builtin_amdgcn_mfma_f32_16x16x8bf16(a, b, c, 0, 0, 0)
GEMM(gemm_bf16, ushort, float, v2s, 2, 8, v4f, ROWS, ROW, BF16_BITS, BF)
#else
#define BF(a, b, c) __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(a, b, c, 0, 0, 0)
GEMM(gemm_bf16, ushort, float, v4s, 4, 16, v4f, ROWS, ROW, BF16_BITS, BF)
GEMM(gemm_f64, double, double, double, 1, 4, v4d, ROWS, ROW_F64, SCALAR, F64)
#endif
#if defined(__gfx908__) || defined(__gfx90a__)
#define I8(a, b, c) __builtin_amdgcn_mfma_i32_16x16x16i8(a, b, c, 0, 0, 0)
GEMM(gemm_i8, char, int, int, 4, 16, v4i, ROWS, ROW, BYTE, I8)
#else
#define I8(a, b, c) __builtin_amdgcn_mfma_i32_16x16x32_i8(a, b, c, 0, 0, 0)
GEMM(gemm_i8, char, int, long, 8, 32, v4i, ROWS, ROW, BYTE, I8)
#endif
#if defined(__gfx942__)
#define XF32(a, b, c) __builtin_amdgcn_mfma_f32_16x16x8_xf32(a, b, c, 0, 0, 0)
GEMM(gemm_xf32, float, float, float2, 2, 8, v4f, ROWS, ROW, ELEMENT, XF32)
#endif
#if defined(__gfx950__)
#define WIDE_F16(a, b, c) __builtin_amdgcn_mfma_f32_16x16x32_f16(a, b, c, 0, 0, 0)
#define WIDE_BF(a, b, c) __builtin_amdgcn_mfma_f32_16x16x32_bf16(a, b, c, 0, 0, 0)
#define WIDE_I8(a, b, c) __builtin_amdgcn_mfma_i32_16x16x64_i8(a, b, c, 0, 0, 0)
GEMM(gemm_f16_wide, half, float, v8h, 8, 32, v4f, ROWS, ROW, ELEMENT, WIDE_F16)
GEMM(gemm_bf16_wide, ushort, float, v8b, 8, 32, v4f, ROWS, ROW, BF16, WIDE_BF)
GEMM(gemm_i8_wide, char, int, v4i, 16, 64, v4i, ROWS, ROW, BYTE, WIDE_I8)
#endif

// Tiles of 32×32.
kernel BLOCK(64) void gemm_f16_32(global const half *a, global const half *b, global float *c,
                                  int n, int k) {
    int line = LANE() % 32, part = LANE() / 32;
    v16f sum = 0;
    for (int base = 0; base < k; base += 8) {
        v4h left, right;
        for (int j = 0; j < 4; ++j) {
            left[j] = a[(WID(y) * 32 + line) * k + base + part * 4 + j];
            right[j] = b[(base + part * 4 + j) * n + WID(x) * 32 + line];
        }
        sum = __builtin_amdgcn_mfma_f32_32x32x8f16(left, right, sum, 0, 0, 0);
    }
    for (int r = 0; r < 16; ++r)
        c[(WID(y) * 32 + r / 4 * 8 + part * 4 + r % 4) * n + WID(x) * 32 + line] = sum[r];
}
#endif

// 16-bit sums: on gfx11 each in the lower half of its register, which one flag chooses.
#if defined(__GFX11__)
kernel BLOCK(64) void gemm_half(global const half *a, global const half *b, global half *c, int n,
                                  int k) {
    int line = LANE() % 16;
    v16h sum = 0;
    for (int base = 0; base < k; base += 16) {
        v16h left, right;
        for (int j = 0; j < 16; ++j) {
            left[j] = a[(WID(y) * 16 + line) * k + base + j];
            right[j] = b[(base + j) * n + WID(x) * 16 + line];
        }
        sum = HALF(left, right, sum);
    }
    for (int r = 0; r < 8; ++r)
        c[(WID(y) * 16 + ROW(r)) * n + WID(x) * 16 + line] = sum[2 * r];
}
#endif

#ifdef FP8
// From floats, four of which become a word of fp8 or bf8.
#define EIGHTS 1
#if defined(__gfx1250__)
typedef v8i Eight;
typedef v8f Sums;
#undef EIGHTS
#define EIGHTS 4
#elif defined(__GFX12__)
typedef v2i Eight;
typedef v8f Sums;
#else
typedef long Eight;
typedef v4f Sums;
#endif
#define PACK(format, f)                                                                            \
    __builtin_amdgcn_cvt_pk_##format##_f32(                                                        \
        (f)[2], (f)[3], __builtin_amdgcn_cvt_pk_##format##_f32((f)[0], (f)[1], 0, false), true)
#define GEMM8(name, format, MULTIPLY)                                                              \
    kernel BLOCK(64) void name(global const float *a, global const float *b, global float *c,    \
                                 int n, int k) {                                                   \
        int line = LANE() % 16;                                                                    \
        Sums sum = 0;                                                                              \
        for (int base = 0; base < k; base += WAVE / 2 * EIGHTS) {                                  \
            Eight l, r;                                                                            \
            for (int run = 0; run < EIGHTS; ++run) {                                               \
                float left[8], right[8];                                                           \
                for (int j = 0; j < 8; ++j) {                                                      \
                    int at = base + run * WAVE / 2 + PART * 8 + j;                                 \
                    left[j] = a[(WID(y) * 16 + line) * k + at];                                    \
                    right[j] = b[at * n + WID(x) * 16 + line];                                     \
                }                                                                                  \
                ((v2i *)&l)[run] = (v2i){PACK(format, left), PACK(format, left + 4)};              \
                ((v2i *)&r)[run] = (v2i){PACK(fp8, right), PACK(fp8, right + 4)};                  \
            }                                                                                      \
            sum = MULTIPLY(l, r, sum);                                                             \
        }                                                                                          \
        for (int r = 0; r < ROWS; ++r)                                                             \
            c[(WID(y) * 16 + ROW(r)) * n + WID(x) * 16 + line] = ((const float *)&sum)[r];         \
    }
#if !defined(__gfx908__) && !defined(__gfx90a__)
GEMM8(gemm_fp8, fp8, FP8)
GEMM8(gemm_bf8, bf8, BF8)
#endif
#endif

#if defined(__gfx950__)
// The same with a scale (a power of two, biased by 127) for each row of A and column of B.
kernel BLOCK(64) void gemm_scaled(global const float *a, global const float *b, global float *c,
                                  int n, int k, global const uchar *rows, global const uchar *columns) {
    int line = LANE() % 16;
    v4f sum = 0;
    int scale_a = rows[WID(y) * 16 + line] << 8, scale_b = columns[WID(x) * 16 + line] << 24;
    for (int base = 0; base < k; base += 128) {
        v8i left, right;
        for (int word = 0; word < 8; ++word) {
            float l[4], r[4];
            for (int j = 0; j < 4; ++j) {
                int at = base + PART * 32 + word * 4 + j;
                l[j] = a[(WID(y) * 16 + line) * k + at];
                r[j] = b[at * n + WID(x) * 16 + line];
            }
            left[word] = PACK(fp8, l);
            right[word] = PACK(bf8, r);
        }
        sum = __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(left, right, sum, 0, 1, 1, scale_a, 3,
                                                               scale_b);
    }
    for (int r = 0; r < 4; ++r)
        c[(WID(y) * 16 + ROW(r)) * n + WID(x) * 16 + line] = sum[r];
}
#endif
