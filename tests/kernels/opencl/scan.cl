#include "../device.h"

// Inclusive prefix sums of 192 elements (Hillis and Steele).
kernel BLOCK(192) void scan_inclusive(global const int *in, global int *out) {
    local int sums[2][192];
    int t = LID(x), side = 0;
    sums[0][t] = in[GID(x)];
    for (int step = 1; step < 192; step *= 2) {
        BARRIER();
        int sum = sums[side][t] + (t >= step ? sums[side][t - step] : 0);
        side ^= 1;
        sums[side][t] = sum;
    }
    out[GID(x)] = sums[side][t];
}

// Exclusive prefix sums of 256 64-bit elements by 128 work items (Blelloch): up the tree, down again.
kernel BLOCK(128) void scan_exclusive(global const long *in, global long *out) {
    local long tree[256];
    int t = LID(x), base = WID(x) * 256;
    tree[t] = in[base + t];
    tree[t + 128] = in[base + t + 128];
    int step = 1;
    for (; step < 256; step *= 2) {
        BARRIER();
        int right = (t + 1) * step * 2 - 1;
        if (right < 256)
            tree[right] += tree[right - step];
    }
    BARRIER();
    if (t == 0)
        tree[255] = 0;
    while ((step /= 2) > 0) {
        BARRIER();
        int right = (t + 1) * step * 2 - 1;
        if (right < 256) {
            long left = tree[right - step];
            tree[right - step] = tree[right];
            tree[right] += left;
        }
    }
    BARRIER();
    out[base + t] = tree[t];
    out[base + t + 128] = tree[t + 128];
}

// Inclusive sums that begin anew at each flag; 100 elements: a partial last wave.
kernel BLOCK(100) void scan_segmented(global const short *in, global const uchar *flags,
                                      global int *out) {
    local int sums[100];
    local uchar heads[100];
    int t = LID(x), sum = in[GID(x)];
    uchar head = flags[GID(x)];
    sums[t] = sum;
    heads[t] = head;
    for (int step = 1; step < 100; step *= 2) {
        BARRIER();
        int left = 0;
        uchar left_head = 0;
        if (t >= step) {
            left = sums[t - step];
            left_head = heads[t - step];
        }
        BARRIER();
        sum = head ? sum : sum + left;
        head |= left_head;
        sums[t] = sum;
        heads[t] = head;
    }
    out[GID(x)] = sum;
}

// Keeps the odd elements of each workgroup's 256, in order; `count`: how many there are.
kernel BLOCK(256) void compact(global const int *in, global int *out, global int *count) {
    local int places[256];
    int t = LID(x), value = in[GID(x)], keep = value & 1;
    places[t] = keep;
    for (int step = 1; step < 256; step *= 2) {
        BARRIER();
        int left = t >= step ? places[t - step] : 0;
        BARRIER();
        places[t] += left;
    }
    if (keep)
        out[WID(x) * 256 + places[t] - 1] = value;
    BARRIER();
    if (t == 255)
        count[WID(x)] = places[255];
}
