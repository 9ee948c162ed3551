#include "../device.h"

// CRC-32 (reflected, 0xedb88320) of each message, bit by bit.
static uint crc_step(uint crc) { return crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0u); }

kernel void crc32_bits(global const uchar *data, global const int *ends, global uint *crc, int n) {
    int i = GID(x);
    if (i >= n)
        return;
    uint value = ~0u;
    for (int at = i ? ends[i - 1] : 0; at < ends[i]; ++at) {
        value ^= data[at];
        for (int bit = 0; bit < 8; ++bit)
            value = crc_step(value);
    }
    crc[i] = ~value;
}

// The same by a table that the workgroup makes in LDS.
kernel BLOCK(256) void crc32_table(global const uchar *data, global const int *ends,
                                   global uint *crc, int n) {
    local uint table[256];
    uint entry = LID(x);
    for (int bit = 0; bit < 8; ++bit)
        entry = crc_step(entry);
    table[LID(x)] = entry;
    BARRIER();
    int i = GID(x);
    if (i >= n)
        return;
    uint value = ~0u;
    for (int at = i ? ends[i - 1] : 0; at < ends[i]; ++at)
        value = value >> 8 ^ table[(value ^ data[at]) & 255];
    crc[i] = ~value;
}

constant uint SHA256_ROUND[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};
static uint rotate_right(uint x, int by) { return x >> by | x << (32 - by); }

// The SHA-256 of messages of up to 55 bytes: one block each, padded here in private memory.
kernel void sha256(global const uchar *messages, global const int *lengths, global uint *digest,
                   int n) {
    int i = GID(x);
    if (i >= n)
        return;
    uint w[64];
    for (int word = 0; word < 16; ++word) {
        uint value = 0;
        for (int byte = 4 * word; byte < 4 * word + 4; ++byte) {
            uint c = byte < lengths[i] ? messages[55 * i + byte] : byte == lengths[i] ? 0x80 : 0;
            value = value << 8 | c;
        }
        w[word] = value;
    }
    w[15] = 8 * lengths[i];
    for (int t = 16; t < 64; ++t) {
        uint a = w[t - 15], b = w[t - 2];
        uint s0 = rotate_right(a, 7) ^ rotate_right(a, 18) ^ a >> 3;
        uint s1 = rotate_right(b, 17) ^ rotate_right(b, 19) ^ b >> 10;
        w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
    uint start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    uint h[8];
    for (int k = 0; k < 8; ++k)
        h[k] = start[k];
    for (int t = 0; t < 64; ++t) {
        uint s1 = rotate_right(h[4], 6) ^ rotate_right(h[4], 11) ^ rotate_right(h[4], 25);
        uint choice = (h[4] & h[5]) ^ (~h[4] & h[6]);
        uint first = h[7] + s1 + choice + SHA256_ROUND[t] + w[t];
        uint s0 = rotate_right(h[0], 2) ^ rotate_right(h[0], 13) ^ rotate_right(h[0], 22);
        uint second = s0 + ((h[0] & h[1]) ^ (h[0] & h[2]) ^ (h[1] & h[2]));
        for (int k = 7; k > 0; --k)
            h[k] = h[k - 1];
        h[4] += first;
        h[0] = first + second;
    }
    for (int k = 0; k < 8; ++k)
        digest[8 * i + k] = start[k] + h[k];
}

// Philox 4x32-10: the counter is the work item's index, the key an argument.
kernel void philox(global uint4 *out, uint2 key) {
    uint4 c = (uint4)(GID(x), 0, 0, 0);
    for (int round = 0; round < 10; ++round) {
        ulong a = (ulong)0xd2511f53u * c.x, b = (ulong)0xcd9e8d57u * c.z;
        c = (uint4)((uint)(b >> 32) ^ c.y ^ key.x, (uint)b, (uint)(a >> 32) ^ c.w ^ key.y, (uint)a);
        key += (uint2)(0x9e3779b9u, 0xbb67ae85u);
    }
    out[GID(x)] = c;
}

// xorshift64*, as many steps as the work item's number; the upper half as a float in [0, 1).
kernel void xorshift(global ulong *state, global float *uniform) {
    int i = GID(x);
    ulong s = state[i];
    for (int step = 0; step <= i; ++step) {
        s ^= s >> 12;
        s ^= s << 25;
        s ^= s >> 27;
    }
    state[i] = s;
    uniform[i] = (float)(s * 0x2545f4914f6cdd1dul >> 40) * 0x1p-24f;
}
