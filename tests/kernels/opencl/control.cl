#include "../device.h"
#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable

static NOINLINE int op_add(int a, int b) { return a + b; }
static NOINLINE int op_subtract(int a, int b) { return a - b; }
static NOINLINE int op_times(int a, int b) { return a * b; }
static NOINLINE int op_shift(int a, int b) { return a >> (b & 31); }
typedef int (*Operator)(int, int);

// A call through a pointer that differs from lane to lane.
kernel void indirect(global const int *in, global int *out, int n) {
    int i = GID(x);
    if (i >= n)
        return;
    Operator table[4] = {op_add, op_subtract, op_times, op_shift};
    out[i] = table[in[2 * i] & 3](in[2 * i], in[2 * i + 1]);
}

// OpenCL's functions must not call themselves, so clang takes it that none does and makes room for
// one frame of each. Through a pointer that nobody can foresee they may, on a dynamic stack.
struct Walk;
typedef uint (*Visit)(struct Walk, uint, uint);
struct Walk {
    Visit next, other;
};
static NOINLINE uint fibonacci(struct Walk w, uint m, uint n) {
    return n < 2 ? n + m : w.next(w, m, n - 1) + w.next(w, m, n - 2);
}
static NOINLINE uint ackermann(struct Walk w, uint m, uint n) {
    return m == 0 ? n + 1 : w.next(w, m - 1, n == 0 ? 1 : w.next(w, m, n - 1));
}
static NOINLINE uint odd_steps(struct Walk w, uint m, uint n) {
    struct Walk turned = {w.other, w.next};
    return n == 0 ? m : turned.next(turned, m * 3 + 1, n - 1);
}
static NOINLINE uint even_steps(struct Walk w, uint m, uint n) {
    struct Walk turned = {w.other, w.next};
    return n == 0 ? m : turned.next(turned, m * 2, n - 1);
}

// As deep as each lane needs: itself twice, itself within itself, two by turns.
kernel void recursion(global uint *out) {
    Visit visits[4] = {fibonacci, ackermann, odd_steps, even_steps};
    uint i = GID(x), which = i % 4;
    struct Walk walk = {visits[which], visits[which ^ 1]};
    out[i] = walk.next(walk, which == 1 ? 2 : 0, i % 9 / (which == 1 ? 2 : 1));
}

// Stack programs, one for each work item: 0 stops; a jump table at -O2.
kernel void bytecode(global const uchar *code, global const int *input, global int *out, int n) {
    int item = GID(x);
    if (item >= n)
        return;
    int stack[16], top = 0, count = 0;
    stack[0] = input[item];
    for (int pc = item * 32; count < 200; ++count) {
        uchar op = code[pc++];
        if (op == 0)
            break;
        int value = stack[top];
        switch (op) {
        case 1: stack[++top] = (signed char)code[pc++]; break;
        case 2: stack[--top] += value; break;
        case 3: stack[--top] -= value; break;
        case 4: stack[--top] *= value; break;
        case 5: stack[++top] = value; break;
        case 6: stack[top] = stack[top - 1]; stack[top - 1] = value; break;
        case 7: stack[top] = -value; break;
        case 8: stack[top] = value >> 1; break;
        case 9: --top; if (value) pc += (signed char)code[pc]; ++pc; break;
        case 10: stack[--top] ^= value; break;
        case 11: stack[top] = ~value; break;
        case 12: stack[++top] = count; break;
        default: stack[top] = op; break;
        }
    }
    out[2 * item] = stack[top];
    out[2 * item + 1] = count;
}

// Insertion sort of 24 bytes in private memory, whose places are known only at run time.
kernel void sort_private(global const uchar *in, global uchar *out) {
    uchar keys[24];
    int base = GID(x) * 24;
    for (int i = 0; i < 24; ++i) {
        uchar key = in[base + i];
        int j = i;
        for (; j > 0 && keys[j - 1] > key; --j)
            keys[j] = keys[j - 1];
        keys[j] = key;
    }
    for (int i = 0; i < 24; ++i)
        out[base + i] = keys[i];
}

typedef struct __attribute__((packed)) {
    uchar tag;
    int number;
    short half_word;
    double real;
    char name[3];
    long big;
} Record;  // 26 bytes: every other field lies askew

typedef struct {
    short from[3];
    uchar mask;
    long bias;
    float factor[2];
} Settings;

static NOINLINE Record change(Record r, Settings s) {
    r.number = r.number * s.from[0] + s.from[1];
    r.half_word ^= s.from[2];
    r.real = r.real * (double)s.factor[r.tag & 1];
    char c = r.name[0];
    r.name[0] = r.name[2];
    r.name[2] = c;
    r.big += s.bias;
    r.tag &= s.mask;
    return r;
}

// Structs by value, as a kernel's argument, a function's and its result.
kernel void records(global const Record *in, global Record *out, Settings settings, int n) {
    int i = GID(x);
    if (i < n)
        out[n - 1 - i] = change(in[i], settings);
}

// Loops in loops whose lengths, ways out and branches all differ from lane to lane.
kernel void divergence(global const uint *in, global uint *out, int n) {
    int i = GID(x);
    if (i >= n)
        return;
    uint value = in[i], result = 0;
    for (uint a = 0; a < value % 13; ++a) {
        if ((value >> a & 3) == 1)
            continue;
        for (uint b = a; b < 20; b += 1 + (value >> 5 & 3)) {
            if (b * a > (value >> 9) % 97)
                break;
            result += a ^ (b << 3);
            if (result % 31 == 7)
                goto out;
        }
        result = result & 1 ? result * 3 + 1 : result >> 1;
    }
out:
    out[i] = result;
}
