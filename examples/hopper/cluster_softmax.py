"""Softmax of long rows: the blocks of a cluster share a row, and keep it in their shared memory.

    fly-trace examples/hopper/cluster_softmax.py --target sm_90a | fly-opt-py --target sm_90a |
        opt -S -O3 | fly-llc | fly-link | fly-run - --device cpu X=x.npy Y=y.npy

A row of 65536 elements (256 KB in f32) has room in the shared memory of eight blocks, so X is read
once. The blocks tell each other their maximum and their sum by remote shared memory.
"""

import fly
import fly.expr as fx

BLOCKS = 8  # of a cluster
THREADS = 256
MOST = 8192  # elements of a row in one block
LOG2E = 1.4426950408889634


def of_cluster(mine, value, combine):
    """Combines a value of each block, which `mine`, an array of one element, shares."""
    if fx.thread_idx.x == 0:
        mine[0] = value
    fx.cluster.barrier()
    found = fx.cluster.remote(mine, 0)[0]
    for rank in fx.range_constexpr(1, fx.cluster.size()):
        found = combine(found, fx.cluster.remote(mine, rank)[0])
    return found


@fly.kernel
def cluster_softmax_kernel(X: fx.Tensor, Y: fx.Tensor, n: fx.Int32):
    held = fx.shared_array(fx.Float32, MOST)
    largest, total = fx.shared_array(fx.Float32, 1), fx.shared_array(fx.Float32, 1)
    row, thread = fx.cluster.idx.x, fx.thread_idx.x
    each = fx.ceildiv(n, fx.cluster.size())
    first = fx.cluster.rank() * each
    count = fx.min(each, n - first)

    most = fx.Float32(float("-inf"))
    for i in range(thread, count, THREADS):
        value = X[row, first + i]
        held[i] = value
        most = fx.max(most, value)
    most = of_cluster(largest, fx.block.reduce(most, "max"), fx.max)

    added = fx.Float32(0)
    for i in range(thread, count, THREADS):
        value = fx.exp2((held[i] - most) * LOG2E)
        held[i] = value
        added += value
    added = of_cluster(total, fx.block.reduce(added, "add"), lambda a, b: a + b)

    for i in range(thread, count, THREADS):
        Y[row, first + i] = held[i] / added
    fx.cluster.barrier()  # no block ends while another one may still read what it shares


@fly.jit
def cluster_softmax(X: fx.Tensor[fx.Float32, "m", "n"], Y: fx.Tensor[fx.Float32, "m", "n"]):
    m, n = X.shape[0], X.shape[1]
    assert n <= BLOCKS * MOST
    cluster_softmax_kernel(X, Y, n).launch(grid=m * BLOCKS, block=THREADS, cluster=BLOCKS)
