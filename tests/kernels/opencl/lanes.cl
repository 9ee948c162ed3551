#include "../device.h"

// What lanes tell each other, always within 32 neighbours, so that both wave sizes agree.
static int in_32(int value, int lane) { return shuffle(value, (LANE() & ~31) | (lane & 31)); }

// Inclusive sums over 32 lanes by ds_bpermute, and the sum of all by butterflies.
kernel void scan_wave(global const int *in, global int *out) {
    int value = in[GID(x)], sum = value, all = value;
    for (int step = 1; step < 32; step *= 2) {
        int left = in_32(sum, LANE() - step);
        sum += (LANE() & 31) >= step ? left : 0;
        all += in_32(all, LANE() ^ step);
    }
    out[2 * GID(x)] = sum;
    out[2 * GID(x) + 1] = all;
}

// A scan of the workgroup: DPP within rows of 16, LDS between them.
#define SHIFTED(value, by) __builtin_amdgcn_update_dpp(0, value, 0x110 + by, 0xf, 0xf, false)
kernel BLOCK(160) void scan_dpp(global const int *in, global int *out) {
    local int rows[10];
    int t = LID(x), sum = in[GID(x)];
    sum += SHIFTED(sum, 1);
    sum += SHIFTED(sum, 2);
    sum += SHIFTED(sum, 4);
    sum += SHIFTED(sum, 8);
    if (t % 16 == 15)
        rows[t / 16] = sum;
    BARRIER();
    for (int row = 0; row < t / 16; ++row)
        sum += rows[row];
    out[GID(x)] = sum;
}

// DPP's other patterns, row and bank masks, with and without bound_ctrl.
#define DPP(ctrl, rows, banks, bound)                                                              \
    out[i++] = __builtin_amdgcn_update_dpp(1000 + LANE(), value, ctrl, rows, banks, bound)
kernel void dpp(global const int *in, global int *to) {
    global int *out = to + GID(x) * 10;
    int value = in[GID(x)], i = 0;
    DPP(0x1b, 0xf, 0xf, false);  // quad_perm:[3,2,1,0]
    DPP(0x6c, 0x5, 0xf, false);  // quad_perm:[0,3,2,1], even rows
    DPP(0x103, 0xf, 0xf, false); // row_shl:3
    DPP(0x103, 0xf, 0xf, true);
    DPP(0x115, 0xf, 0x6, false); // row_shr:5, banks 1 and 2
    DPP(0x115, 0xf, 0x6, true);
    DPP(0x127, 0xf, 0xf, false); // row_ror:7
    DPP(0x140, 0xf, 0x3, false); // row_mirror
    DPP(0x141, 0xa, 0xf, true);  // row_half_mirror, odd rows
#if defined(__gfx908__) // has no such pattern
    out[i++] = __builtin_amdgcn_ds_bpermute(((LANE() & ~15) + 2) << 2, value);
#else
    DPP(0x152, 0xf, 0xf, false); // row_newbcast:2, row_share:2
#endif
}

// Votes: which lanes of the 32 agree, how many before this one, the first one's value; and the first
// lane of the wave that is there is no later one.
kernel void votes(global const int *in, global uint *out) {
    int value = in[GID(x)], base = LANE() & 32;
    uint ballot = (uint)(__builtin_amdgcn_ballot_w64(value > 0) >> base);
    uint before = ballot & ((1u << (LANE() & 31)) - 1);
    out[4 * GID(x)] = ballot;
    out[4 * GID(x) + 1] = __builtin_popcount(before);
    out[4 * GID(x) + 2] = ballot ? in_32(value, __builtin_ctz(ballot)) : 0;
    out[4 * GID(x) + 3] = ~0u;
    if (value > 0) {
        int lane = LANE(), first = __builtin_amdgcn_readfirstlane(lane);
        out[4 * GID(x) + 3] = first <= lane;
    }
}

// A loop over unlike values, one at a time, as compilers do for what must be the same in a wave; and
// a lane's value for all 32.
kernel void waterfall(global const int *in, global const int *table, global int *out) {
    int value = in[GID(x)], found = 0;
    for (;;) {
        int first = __builtin_amdgcn_readfirstlane(value);
        if (value == first) {
            found = table[first & 15];
            break;
        }
    }
    int of_lane = LANE() < 32 ? __builtin_amdgcn_readlane(value, 5)
                              : __builtin_amdgcn_readlane(value, WAVE / 2 + 5);
    out[2 * GID(x)] = found;
    out[2 * GID(x) + 1] = of_lane;
}

// ds_swizzle within 32 lanes.
kernel void swizzle(global const int *in, global int *out) {
    int value = in[GID(x)], i = GID(x) * 4;
    out[i] = __builtin_amdgcn_ds_swizzle(value, 0x401f);     // the other half of each 32 (xor 16)
    out[i + 1] = __builtin_amdgcn_ds_swizzle(value, 0x0c07); // xor 3 after and 7
    out[i + 2] = __builtin_amdgcn_ds_swizzle(value, 0x8000 | 0x4e); // quad_perm:[2,3,0,1]
    out[i + 3] = __builtin_amdgcn_ds_swizzle(value, 0x03e0); // lane 31 to all: or 31
}
