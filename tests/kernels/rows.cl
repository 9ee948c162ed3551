// One row of a matrix for each workgroup.
#include "device.h"

kernel BLOCK(256) void lds_reduce(global const float *in, global float *out) {
    local float part[256];
    int t = LID(x);
    part[t] = in[WID(x) * 256 + t];
    for (int half_ = 128; half_ > 0; half_ >>= 1) {
        BARRIER();
        if (t < half_)
            part[t] += part[t + half_];
    }
    if (t == 0)
        out[WID(x)] = part[0];
}

kernel BLOCK(128) void softmax_lds(global const float *in, global float *out, int columns) {
    local float part[128];
    int t = LID(x);
    global const float *row = in + (long)WID(x) * columns;
    global float *result = out + (long)WID(x) * columns;
    float top = -__builtin_inff();
    for (int j = t; j < columns; j += 128)
        top = __builtin_fmaxf(top, row[j]);
    part[t] = top;
    for (int step = 64; step > 0; step >>= 1) {
        BARRIER();
        if (t < step)
            part[t] = __builtin_fmaxf(part[t], part[t + step]);
    }
    BARRIER();
    top = part[0];
    BARRIER();
    float sum = 0.0f;
    for (int j = t; j < columns; j += 128)
        sum += exp_(row[j] - top);
    part[t] = sum;
    for (int step = 64; step > 0; step >>= 1) {
        BARRIER();
        if (t < step)
            part[t] += part[t + step];
    }
    BARRIER();
    sum = part[0];
    for (int j = t; j < columns; j += 128)
        result[j] = exp_(row[j] - top) / sum;
}

// A wave has a row to itself. Where waves have 32 lanes, both waves of a block do the same.
kernel BLOCK(64) void softmax_shuffle(global const float *in, global float *out, int columns) {
    int t = LID(x) % LANES;
    global const float *row = in + (long)WID(x) * columns;
    global float *result = out + (long)WID(x) * columns;
    float top = -__builtin_inff();
    for (int j = t; j < columns; j += LANES)
        top = __builtin_fmaxf(top, row[j]);
    for (int mask = LANES / 2; mask > 0; mask >>= 1)
        top = __builtin_fmaxf(top, shuffle_xor(top, mask));
    float sum = 0.0f;
    for (int j = t; j < columns; j += LANES)
        sum += exp_(row[j] - top);
    for (int mask = LANES / 2; mask > 0; mask >>= 1)
        sum += shuffle_xor(sum, mask);
    for (int j = t; j < columns; j += LANES)
        result[j] = exp_(row[j] - top) / sum;
}

kernel BLOCK(64) void layernorm(global const float *in, global const float *gain,
                                global const float *bias, global float *out, int columns,
                                float epsilon) {
    int t = LID(x) % LANES;
    global const float *row = in + (long)WID(x) * columns;
    float sum = 0.0f, squares = 0.0f;
    for (int j = t; j < columns; j += LANES) {
        sum += row[j];
        squares += row[j] * row[j];
    }
    for (int mask = LANES / 2; mask > 0; mask >>= 1) {
        sum += shuffle_xor(sum, mask);
        squares += shuffle_xor(squares, mask);
    }
    float mean = sum / columns;
    float scale = 1.0f / __builtin_sqrtf(squares / columns - mean * mean + epsilon);
    for (int j = t; j < columns; j += LANES)
        out[(long)WID(x) * columns + j] = (row[j] - mean) * scale * gain[j] + bias[j];
}
