#include "../device.h"

// Four bytes a work item, counted in LDS, then added to the whole.
kernel BLOCK(128) void histogram_bytes(global const uchar4 *in, global uint *bins, int n) {
    local uint part[256];
    int t = LID(x);
    part[t] = part[t + 128] = 0;
    BARRIER();
    if (GID(x) < n) {
        uchar4 four = in[GID(x)];
        ATOMIC_LOCAL(add, &part[four.x], 1u);
        ATOMIC_LOCAL(add, &part[four.y], 1u);
        ATOMIC_LOCAL(add, &part[four.z], 1u);
        ATOMIC_LOCAL(add, &part[four.w], 1u);
    }
    BARRIER();
    for (int i = t; i < 256; i += 128)
        if (part[i])
            ATOMIC(add, &bins[i], part[i]);
}

// Every integer atomic, 32 and 64 bits, on seven shared places each.
kernel void atomic_integers(global const int *in, global int *narrow, global long *wide, int n) {
    int i = GID(x);
    if (i >= n)
        return;
    int value = in[i], place = i % 7;
    ATOMIC(add, narrow + place, value);
    ATOMIC(sub, narrow + 7 + place, value);
    ATOMIC(min, narrow + 14 + place, value);
    ATOMIC(max, narrow + 21 + place, value);
    ATOMIC(min, (global uint *)narrow + 28 + place, (uint)value);
    ATOMIC(max, (global uint *)narrow + 35 + place, (uint)value);
    ATOMIC(and, narrow + 42 + place, value | 0x0f0f);
    ATOMIC(or, narrow + 49 + place, value & 0x1248);
    ATOMIC(xor, narrow + 56 + place, value);
    long big = (long)value << 21 ^ value;
    ATOMIC(add, wide + place, big);
    ATOMIC(sub, wide + 7 + place, big);
    ATOMIC(min, wide + 14 + place, big);
    ATOMIC(max, wide + 21 + place, big);
    ATOMIC(min, (global ulong *)wide + 28 + place, (ulong)big);
    ATOMIC(max, (global ulong *)wide + 35 + place, (ulong)big);
    ATOMIC(and, wide + 42 + place, big | 0x0f0f);
    ATOMIC(or, wide + 49 + place, big & 0x1248);
    ATOMIC(xor, wide + 56 + place, big);
}

// Sums that are exact in any order: multiples of 1/8.
kernel BLOCK(96) void atomic_floats(global const float *in, global float *narrow,
                                    global double *wide) {
    local float part[3];
    if (LID(x) < 3)
        part[LID(x)] = 0;
    BARRIER();
    float value = in[GID(x)];
    ATOMIC_LOCAL(add, &part[LID(x) % 3], value);
    ATOMIC(add, wide + LID(x) % 3, (double)value);
    BARRIER();
    if (LID(x) < 3)
        ATOMIC(add, narrow + LID(x), part[LID(x)]);
}

// Old values: a ticket for each work item of the grid, and a slot exchanged by each workgroup.
kernel void tickets(global int *next, global int *owner, global int *order, global int *before) {
    int mine = ATOMIC(add, next, 1);
    order[mine] = GID(x);
    if (LID(x) == 0)
        before[WID(x)] = __scoped_atomic_exchange_n(owner, WID(x) + 1, __ATOMIC_RELAXED,
                                                    __MEMORY_SCOPE_DEVICE);
}
