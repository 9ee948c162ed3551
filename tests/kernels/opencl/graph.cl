#include "../device.h"

// One step of a breadth-first search: neighbours of the frontier that nobody has reached get the
// next level; `grown` counts them, each once: a compare-and-swap decides who was first.
kernel void bfs_step(global const int *starts, global const int *neighbours, global int *levels,
                     global int *grown, int level, int n) {
    int node = GID(x);
    if (node >= n || levels[node] != level)
        return;
    for (int e = starts[node]; e < starts[node + 1]; ++e) {
        int unseen = -1;
        if (__scoped_atomic_compare_exchange_n(levels + neighbours[e], &unseen, level + 1, false,
                                               __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                               __MEMORY_SCOPE_DEVICE))
            ATOMIC(add, grown, 1);
    }
}

// Joins the sets of an edge's ends; a root's parent is itself, and the smaller number wins.
kernel void union_find(global const int2 *edges, global int *parents, int n) {
    int i = GID(x);
    if (i >= n)
        return;
    int a = edges[i].x, b = edges[i].y;
    for (;;) {
        int above;
        while ((above = __scoped_atomic_load_n(parents + a, __ATOMIC_RELAXED,
                                               __MEMORY_SCOPE_DEVICE)) != a)
            a = above;
        while ((above = __scoped_atomic_load_n(parents + b, __ATOMIC_RELAXED,
                                               __MEMORY_SCOPE_DEVICE)) != b)
            b = above;
        if (a == b)
            return;
        int high = a > b ? a : b, low = a > b ? b : a, expected = high;
        if (__scoped_atomic_compare_exchange_n(parents + high, &expected, low, false,
                                               __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                               __MEMORY_SCOPE_DEVICE))
            return;
    }
}

// Floating-point products by compare-and-swap on the bits, in 32 and in 64 bits.
kernel void atomic_product(global const float *in, global uint *narrow, global ulong *wide, int n) {
    int i = GID(x);
    if (i >= n)
        return;
    uint old = narrow[i & 3], now;
    do
        now = __builtin_bit_cast(uint, __builtin_bit_cast(float, old) * in[i]);
    while (!__scoped_atomic_compare_exchange_n(narrow + (i & 3), &old, now, true, __ATOMIC_RELAXED,
                                               __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE));
    ulong last = wide[i & 1], next;
    do
        next = __builtin_bit_cast(ulong, __builtin_bit_cast(double, last) * (double)in[i]);
    while (!__scoped_atomic_compare_exchange_n(wide + (i & 1), &last, next, true, __ATOMIC_RELAXED,
                                               __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE));
}

// A lock that one work item of each workgroup takes to change what no atomic could.
kernel void spin_lock(global int *lock, global long *shared_, global int *order) {
    if (LID(x) != 0)
        return;
    while (__scoped_atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE, __MEMORY_SCOPE_DEVICE))
        ;
    long turn = shared_[0];
    order[turn] = WID(x);
    shared_[0] = turn + 1;
    shared_[1] = shared_[1] * 31 + turn;
    __scoped_atomic_store_n(lock, 0, __ATOMIC_RELEASE, __MEMORY_SCOPE_DEVICE);
}

// The workgroups pass a token on in descending order: each waits until its number is up. On the
// host, where they run one after another, it could not end.
kernel void hand_over(global int *turn, global uint *value) {
    if (LID(x) != 0)
        return;
    while (__scoped_atomic_load_n(turn, __ATOMIC_ACQUIRE, __MEMORY_SCOPE_DEVICE) != WID(x))
        ;
    value[0] = value[0] * 1664525u + WID(x);
    __scoped_atomic_store_n(turn, WID(x) - 1, __ATOMIC_RELEASE, __MEMORY_SCOPE_DEVICE);
}
