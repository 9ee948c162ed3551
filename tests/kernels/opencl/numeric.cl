#include "../device.h"

// Steps until |z| > 2, in f32 and in f64.
kernel void mandelbrot(global ushort *single, global ushort *twice, int width, float x0, float y0,
                       float step) {
    int px = GID(x), py = GID(y);
    if (px >= width)
        return;
    float cx = x0 + step * (float)px, cy = y0 + step * (float)py, x = 0, y = 0;
    int n = 0;
    for (; n < 200 && x * x + y * y <= 4.0f; ++n) {
        float next = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = next;
    }
    single[py * width + px] = (ushort)n;
    double u = 0, v = 0;
    for (n = 0; n < 200 && u * u + v * v <= 4.0; ++n) {
        double next = u * u - v * v + (double)cx;
        v = 2.0 * u * v + (double)cy;
        u = next;
    }
    twice[py * width + px] = (ushort)n;
}

// Accelerations of n bodies (x, y, z, mass), softened; in tiles of 64 bodies through LDS.
kernel BLOCK(64) void nbody(global const float4 *bodies, global float4 *acceleration, int n) {
    local float4 tile[64];
    int t = LID(x), i = GID(x);
    float4 mine = i < n ? bodies[i] : (float4)(0);
    float3 sum = 0;
    for (int base = 0; base < n; base += 64) {
        tile[t] = base + t < n ? bodies[base + t] : (float4)(0);
        BARRIER();
        for (int j = 0; j < 64; ++j) {
            float3 d = tile[j].xyz - mine.xyz;
            float square = d.x * d.x + d.y * d.y + d.z * d.z + 0.01f;
            float root = 1.0f / __builtin_sqrtf(square);
            sum += d * (tile[j].w * root * root * root);
        }
        BARRIER();
    }
    if (i < n)
        acceleration[i] = (float4)(sum, mine.w);
}

// exp by 2^k times a polynomial; 2^k is made of its bits. x below 80; 0 below -80.
static float exponential(float x) {
    if (x < -80.0f)
        return 0.0f;
    float k = __builtin_rintf(x * 1.44269504f);
    float r = (x - k * 0.693359375f) + k * 2.12194440e-4f;
    float p = 1.0f + r * (1.0f + r * (0.5f + r * (0.16666667f + r * (0.041666668f +
              r * (0.008333334f + r * 0.0013888889f)))));
    return p * __builtin_bit_cast(float, ((int)k + 127) << 23);
}

// ln by ln m + e ln 2 with m in [√½, √2): 2 artanh((m - 1) / (m + 1)).
static float logarithm(float x) {
    int bits = __builtin_bit_cast(int, x);
    int e = (bits - 0x3f3504f3) >> 23;
    float m = __builtin_bit_cast(float, bits - (e << 23));
    float t = (m - 1.0f) / (m + 1.0f), s = t * t;
    float p = 2.0f * t * (1.0f + s * (0.33333334f + s * (0.2f + s * (0.14285715f + s * 0.11111111f))));
    return p + (float)e * 0.69314718f;
}

// The normal distribution function, Abramowitz and Stegun 26.2.17: within 7.5e-8.
static float distribution(float x) {
    float a = __builtin_fabsf(x), t = 1.0f / (1.0f + 0.2316419f * a);
    float p = t * (0.31938153f + t * (-0.35656378f + t * (1.7814779f + t * (-1.8212559f +
              t * 1.3302745f))));
    float tail = 0.39894228f * exponential(-0.5f * a * a) * p;
    return x < 0 ? tail : 1.0f - tail;
}

typedef struct {
    float rate, volatility;
} Market;

// Prices of European calls and puts (Black and Scholes).
kernel void black_scholes(global const float *spot, global const float *strike,
                          global const float *years, global float2 *price, Market market, int n) {
    int i = GID(x);
    if (i >= n)
        return;
    float sigma = market.volatility * __builtin_sqrtf(years[i]);
    float drift = (market.rate + 0.5f * market.volatility * market.volatility) * years[i];
    float d1 = (logarithm(spot[i] / strike[i]) + drift) / sigma, d2 = d1 - sigma;
    float discounted = strike[i] * exponential(-market.rate * years[i]);
    float call = spot[i] * distribution(d1) - discounted * distribution(d2);
    price[i] = (float2)(call, call - spot[i] + discounted);
}

// 1/x and 1/√x in f64 from f32 guesses, refined by Newton's method with fma.
kernel void newton(global const double *in, global double2 *out, int n) {
    int i = GID(x);
    if (i >= n)
        return;
    double x = in[i], r = (double)(1.0f / (float)x);
    for (int step = 0; step < 2; ++step)
        r = __builtin_fma(r, __builtin_fma(-x, r, 1.0), r);
    double q = (double)(1.0f / __builtin_sqrtf((float)x));
    for (int step = 0; step < 2; ++step)
        q = __builtin_fma(q * 0.5, __builtin_fma(-x * q, q, 1.0), q);
    out[i] = (double2)(r, q);
}

// 256 complex values, radix 2 in LDS; twiddles[k] = exp(-2πik/256) is an argument.
kernel BLOCK(128) void fft(global float2 *data, global const float2 *twiddles) {
    local float2 line[256];
    int t = LID(x), base = WID(x) * 256;
    for (int i = t; i < 256; i += 128)
        line[__builtin_bitreverse8((uchar)i)] = data[base + i];
    for (int size = 2; size <= 256; size *= 2) {
        BARRIER();
        int j = t % (size / 2), first = t / (size / 2) * size + j, second = first + size / 2;
        float2 w = twiddles[j * (256 / size)], a = line[first], b = line[second];
        float2 turned = (float2)(b.x * w.x - b.y * w.y, b.x * w.y + b.y * w.x);
        line[first] = a + turned;
        line[second] = a - turned;
    }
    BARRIER();
    for (int i = t; i < 256; i += 128)
        data[base + i] = line[i];
}

// The two-dimensional DCT-II of 8×8 blocks of pixels: rows, then columns; basis[k][n] is an argument.
kernel __attribute__((reqd_work_group_size(8, 8, 1))) void
dct(global const uchar *pixels, global float *out, constant float *basis, int pitch) {
    local float block[8][8], rows[8][9];
    int x = LID(x), y = LID(y);
    block[y][x] = (float)pixels[GID(y) * pitch + GID(x)] - 128.0f;
    BARRIER();
    float sum = 0;
    for (int n = 0; n < 8; ++n)
        sum += block[y][n] * basis[x * 8 + n];
    rows[y][x] = sum;
    BARRIER();
    sum = 0;
    for (int n = 0; n < 8; ++n)
        sum += rows[n][x] * basis[y * 8 + n];
    out[GID(y) * pitch + GID(x)] = sum;
}

// A step of k-means: the nearest of `k` centres, and sums in fixed point (order does not matter).
kernel void kmeans(global const float2 *points, global const float2 *centres, int k,
                   global uchar *nearest, global long *sums, global int *counts, int n) {
    int i = GID(x);
    if (i >= n)
        return;
    float best = __builtin_inff();
    int at = 0;
    for (int c = 0; c < k; ++c) {
        float2 d = points[i] - centres[c];
        float square = d.x * d.x + d.y * d.y;
        if (square < best) {
            best = square;
            at = c;
        }
    }
    nearest[i] = (uchar)at;
    ATOMIC(add, sums + 2 * at, (long)(points[i].x * 65536.0f));
    ATOMIC(add, sums + 2 * at + 1, (long)(points[i].y * 65536.0f));
    ATOMIC(add, counts + at, 1);
}
