"""Y[i] = X[0] + … + X[i], in one pass over the data: a scan with decoupled look-back.

Each workgroup takes the next block of X, publishes its sum, and adds up what the blocks before it
have published: back to the first one whose sum of everything up to it is known (Merrill and
Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", NVIDIA 2016). X and Y have any
length; i32 wraps. Where a sum of f32 is split depends on which blocks have finished, so that the
last bits of the results may differ between runs.
"""

import fly
import fly.expr as fx

BLOCK = 256
ITEMS = 8  # elements of a work item

# What a block has published, in the upper half of 64 bits; the lower half is a sum. Both are
# written and read as one, which needs no order between different addresses.
NOTHING, OWN_SUM, WHOLE_SUM = 0, 1, 2


def publish(states, block, status, total):
    bits = fx.Int64(total.bitcast(fx.Uint32))
    fx.atomic_xchg(states, block, fx.Int64(status) << 32 | bits)


def published(states, block, dtype):
    """Waits until a block has published something, and returns it."""
    while True:
        state = fx.atomic_or(states, block, 0)  # a load that is not moved out of the loop
        status = fx.Int32(state >> 32)
        if status != NOTHING:
            return status, fx.Int32(state).bitcast(dtype)


def look_back(states, block, dtype):
    """Returns the sum of all blocks before this one."""
    before = dtype(0)
    while block > 0:
        block -= 1
        status, total = published(states, block, dtype)
        before += total
        if status == WHOLE_SUM:
            return before
    return before


def before_block(states, block, total):
    """Publishes a block's sum. Returns the sum of all blocks before it."""
    publish(states, block, OWN_SUM, total)
    before = look_back(states, block, total.dtype)
    publish(states, block, WHOLE_SUM, before + total)
    return before


@fly.kernel
def prefix_sum_kernel(X: fx.Tensor, Y: fx.Tensor, states: fx.Tensor, taken: fx.Tensor):
    shared_block = fx.shared_array(fx.Int32, 1)

    # Blocks are numbered in the order in which they start, so that none waits for a later one.
    if fx.thread_idx.x == 0:
        shared_block[0] = fx.atomic_add(taken, 0, 1)
    fx.barrier()
    block = shared_block[0]

    first = fx.Int64(block) * (BLOCK * ITEMS)
    left = X.shape[0] - first
    items = fx.block.load(X, ITEMS, offset=first, valid=left)
    sums = fx.block.inclusive_scan(items, prefix=lambda total: before_block(states, block, total))
    fx.block.store(Y, sums, offset=first, valid=left)


@fly.kernel
def clear_kernel(states: fx.Tensor, taken: fx.Tensor):
    i = fx.block_idx.x * BLOCK + fx.thread_idx.x
    if i == 0:
        taken[0] = 0
    if i < states.shape[0]:
        states[i] = 0


def prefix_sum(X):
    blocks = fx.ceildiv(X.shape[0], BLOCK * ITEMS)
    Y = fx.empty_like(X)
    states = fx.empty(blocks, fx.Int64)
    taken = fx.empty(1, fx.Int32)
    clear_kernel(states, taken).launch(grid=fx.ceildiv(blocks, BLOCK), block=BLOCK)
    prefix_sum_kernel(X, Y, states, taken).launch(grid=blocks, block=BLOCK)
    return Y


@fly.jit
def prefix_sum_i32(X: fx.Tensor[fx.Int32, "n"]):
    Y = prefix_sum(X)
    return Y


@fly.jit
def prefix_sum_f32(X: fx.Tensor[fx.Float32, "n"]):
    Y = prefix_sum(X)
    return Y


def main():
    import numpy as np

    random = np.random.default_rng(32)
    x = random.integers(-1000, 1000, 20_011, dtype=np.int32)
    np.testing.assert_array_equal(prefix_sum_i32(x), np.cumsum(x))
    x = random.standard_normal(20_011, dtype=np.float32)
    np.testing.assert_allclose(prefix_sum_f32(x), np.cumsum(x.astype(np.float64)), atol=1e-3)
    print(f"prefix_sum: {x.size} numbers, i32 and f32, as NumPy's cumsum")


if __name__ == "__main__":
    main()
