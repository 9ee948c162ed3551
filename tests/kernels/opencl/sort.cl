#include "../device.h"

// Sorts 256 keys, their places with them, so that equal keys can be told apart.
kernel BLOCK(256) void sort_bitonic(global uint *keys, global ushort *places) {
    local uint key[256];
    local ushort place[256];
    int t = LID(x), base = WID(x) * 256;
    key[t] = keys[base + t];
    place[t] = (ushort)t;
    for (int size = 2; size <= 256; size *= 2)
        for (int step = size / 2; step > 0; step /= 2) {
            BARRIER();
            int other = t ^ step;
            if (other > t) {
                bool up = (t & size) == 0;
                uint a = key[t], b = key[other];
                if (up ? a > b : a < b) {
                    key[t] = b;
                    key[other] = a;
                    ushort moved = place[t];
                    place[t] = place[other];
                    place[other] = moved;
                }
            }
        }
    BARRIER();
    keys[base + t] = key[t];
    places[base + t] = place[t];
}

// Odd-even transposition of 90 signed 16-bit keys by 45 work items.
kernel BLOCK(45) void sort_odd_even(global short *keys) {
    local short key[90];
    int t = LID(x), base = WID(x) * 90;
    key[2 * t] = keys[base + 2 * t];
    key[2 * t + 1] = keys[base + 2 * t + 1];
    for (int pass = 0; pass < 90; ++pass) {
        BARRIER();
        int i = 2 * t + (pass & 1);
        if (i + 1 < 90 && key[i] > key[i + 1]) {
            short moved = key[i];
            key[i] = key[i + 1];
            key[i + 1] = moved;
        }
    }
    BARRIER();
    keys[base + 2 * t] = key[2 * t];
    keys[base + 2 * t + 1] = key[2 * t + 1];
}

// How often each digit (4 bits from `shift`) occurs in each workgroup: counts[digit][group].
kernel BLOCK(128) void radix_count(global const uint *keys, global int *counts, int shift,
                                   int groups) {
    local int count[16];
    int t = LID(x);
    if (t < 16)
        count[t] = 0;
    BARRIER();
    ATOMIC_LOCAL(add, &count[keys[GID(x)] >> shift & 15], 1);
    BARRIER();
    if (t < 16)
        counts[t * groups + WID(x)] = count[t];
}

// A stable pass: each key goes behind the smaller digits (starts[digit][group]) and behind the
// equal digits before it in its workgroup.
kernel BLOCK(128) void radix_scatter(global const uint *keys, global const int *starts,
                                     global uint *sorted, int shift, int groups) {
    local uchar digits[128];
    int t = LID(x);
    uint key = keys[GID(x)];
    uchar digit = key >> shift & 15;
    digits[t] = digit;
    BARRIER();
    int rank = 0;
    for (int i = 0; i < t; ++i)
        rank += digits[i] == digit;
    sorted[starts[digit * groups + WID(x)] + rank] = key;
}

// Merges two ascending runs; each work item finds where its diagonal crosses the path of the merge
// and makes five elements. Equal elements of `a` come first.
kernel void merge_path(global const short *a, global const short *b, global int *out, int na,
                       int nb) {
    int first = GID(x) * 5;
    if (first >= na + nb)
        return;
    int low = first > nb ? first - nb : 0, high = first < na ? first : na;
    while (low < high) {
        int middle = (low + high) / 2;
        if (a[middle] <= b[first - 1 - middle])
            low = middle + 1;
        else
            high = middle;
    }
    int i = low, j = first - low;
    for (int k = first; k < first + 5 && k < na + nb; ++k) {
        bool left = j >= nb || (i < na && a[i] <= b[j]);
        out[k] = left ? a[i++] : b[j++] + 100000;
    }
}
