"""Kernels with races on shared memory. Of the two lines that race, both end with `# defect`.

CASES has for each what makes its arguments.
"""

import numpy as np

import fly
import fly.expr as fx

BLOCK = 256
TILE = 16
F32 = fx.Tensor[fx.Float32, "n"]
MATRIX = fx.Tensor[fx.Float32, "M", "N"]


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32)


# -- 1: no barrier between the writes and the reads of a tile


@fly.kernel
def reverse_kernel(X: fx.Tensor, Y: fx.Tensor):
    tile = fx.shared_array(fx.Float32, BLOCK)
    tid = fx.thread_idx.x
    at = fx.block_idx.x * BLOCK
    tile[tid] = X[at + tid]  # defect
    Y[at + tid] = tile[BLOCK - 1 - tid]  # defect


@fly.jit(plugins=["sanitize"])
def no_barrier(X: F32, Y: F32):
    reverse_kernel(X, Y).launch(grid=X.shape[0] // BLOCK, block=BLOCK)


# -- 2: a loop over tiles whose last barrier is missing


@fly.kernel
def product_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    left = fx.shared_array(fx.Float32, (TILE, TILE))
    right = fx.shared_array(fx.Float32, (TILE, TILE))
    x, y = fx.thread_idx.x, fx.thread_idx.y
    row, column = fx.block_idx.y * TILE + y, fx.block_idx.x * TILE + x
    total = fx.Float32(0)
    for k in range(fx.Int64(0), A.shape[1], TILE):
        left[y, x] = A[row, k + x]
        right[y, x] = B[k + y, column]  # defect
        fx.barrier()
        for j in fx.range_constexpr(TILE):
            total = total + left[y, j] * right[j, x]  # defect
    C[row, column] = total


@fly.jit(plugins=["sanitize"])
def tile_loop(A: MATRIX, B: fx.Tensor[fx.Float32, "N", "K"], C: fx.Tensor[fx.Float32, "M", "K"]):
    grid = (C.shape[1] // TILE, C.shape[0] // TILE)
    product_kernel(A, B, C).launch(grid=grid, block=(TILE, TILE))


# -- 3: two buffers, of which one is filled again while others still read it


@fly.kernel
def stages_kernel(X: fx.Tensor, Y: fx.Tensor):
    stage = fx.shared_array(fx.Float32, (2, BLOCK))
    tid = fx.thread_idx.x
    total = fx.Float32(0)
    stage[0, tid] = X[tid]
    fx.barrier()
    for k in range(fx.Int64(0), X.shape[0] // BLOCK - 1):
        total = total + stage[k % 2, BLOCK - 1 - tid]  # defect
        stage[k % 2, tid] = X[(k + 1) * BLOCK + tid]  # defect
        fx.barrier()
    Y[tid] = total


@fly.jit(plugins=["sanitize"])
def double_buffer(X: F32, Y: fx.Tensor[fx.Float32, 256]):
    stages_kernel(X, Y).launch(grid=1, block=BLOCK)


# -- 4: a reduction whose barrier is outside of the loop


@fly.kernel
def tree_kernel(X: fx.Tensor, Y: fx.Tensor):
    scratch = fx.shared_array(fx.Float32, BLOCK)
    tid = fx.thread_idx.x
    scratch[tid] = X[fx.block_idx.x * BLOCK + tid]
    fx.barrier()
    for step in fx.range_constexpr(8):
        half = BLOCK >> (step + 1)
        if tid < half:
            scratch[tid] = scratch[tid] + scratch[tid + half]  # defect
    fx.barrier()
    if tid < 1:
        Y[fx.block_idx.x] = scratch[0]


@fly.jit(plugins=["sanitize"])
def reduction(X: F32, Y: fx.Tensor[fx.Float32, "m"]):
    tree_kernel(X, Y).launch(grid=Y.shape[0], block=BLOCK)


# -- 5: slot 0 is used again before all have read it


@fly.kernel
def twice_kernel(X: fx.Tensor, Y: fx.Tensor):
    slot = fx.shared_array(fx.Float32, 1)
    tid = fx.thread_idx.x
    value = X[tid]
    for k in fx.range_constexpr(2):
        if tid == 17 + 100 * k:
            slot[0] = value  # defect
        fx.barrier()
        value = value + slot[0]  # defect
    Y[tid] = value


@fly.jit(plugins=["sanitize"])
def used_again(X: fx.Tensor[fx.Float32, 256], Y: fx.Tensor[fx.Float32, 256]):
    twice_kernel(X, Y).launch(grid=1, block=BLOCK)


# -- 6: two waves store different values to one word


@fly.kernel
def bins_kernel(X: fx.Tensor, Y: fx.Tensor):
    bins = fx.shared_array(fx.Float32, 32)
    tid = fx.thread_idx.x
    bins[tid % 32] = X[tid]  # defect
    fx.barrier()
    Y[tid] = bins[tid % 32]


@fly.jit(plugins=["sanitize"])
def same_word(X: fx.Tensor[fx.Float32, 256], Y: fx.Tensor[fx.Float32, 256]):
    bins_kernel(X, Y).launch(grid=1, block=BLOCK)


# -- 7: a histogram in shared memory that is read while others still count


@fly.kernel
def count_kernel(data: fx.Tensor, counts: fx.Tensor):
    local = fx.shared_array(fx.Int32, BLOCK)
    tid = fx.thread_idx.x
    local[tid] = 0
    fx.barrier()
    fx.atomic_add(local, fx.Int32(data[tid]), 1)  # defect
    fx.atomic_add(counts, tid, local[tid])  # defect


@fly.jit(plugins=["sanitize"])
def counting(data: fx.Tensor[fx.Uint8, 256], counts: fx.Tensor[fx.Int32, 256]):
    count_kernel(data, counts).launch(grid=1, block=BLOCK)


# -- 8: a histogram that is cleared by other threads than count


@fly.kernel
def clear_kernel(data: fx.Tensor, counts: fx.Tensor):
    local = fx.shared_array(fx.Int32, BLOCK)
    tid = fx.thread_idx.x
    local[BLOCK - 1 - tid] = 0  # defect
    fx.atomic_add(local, tid, fx.Int32(data[tid]) + 1)  # defect
    fx.barrier()
    counts[tid] = local[tid]


@fly.jit(plugins=["sanitize"])
def clearing(data: fx.Tensor[fx.Uint8, 256], counts: fx.Tensor[fx.Int32, 256]):
    clear_kernel(data, counts).launch(grid=1, block=BLOCK)


# -- 9: a prefix sum in one array


@fly.kernel
def scan_kernel(X: fx.Tensor, Y: fx.Tensor):
    scratch = fx.shared_array(fx.Float32, BLOCK)
    tid = fx.thread_idx.x
    scratch[tid] = X[tid]
    fx.barrier()
    for step in fx.range_constexpr(8):
        if tid >= 1 << step:
            scratch[tid] = scratch[tid] + scratch[tid - (1 << step)]  # defect
        fx.barrier()
    Y[tid] = scratch[tid]


@fly.jit(plugins=["sanitize"])
def prefix_sum(X: fx.Tensor[fx.Float32, 256], Y: fx.Tensor[fx.Float32, 256]):
    scan_kernel(X, Y).launch(grid=1, block=BLOCK)


# -- 10: a transposition with wide copies, whose barrier is in a branch that is not taken


@fly.kernel
def wide_kernel(X: fx.Tensor, Y: fx.Tensor, synchronise: fx.Constexpr[bool]):
    tile = fx.shared_array(fx.Float32, (32, 32))
    tid = fx.thread_idx.x
    row, column = tid // 8, tid % 8 * 4
    atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32)
    wide = fx.make_tiled_copy_tv(
        atom, fx.make_ordered_layout((32, 8), (1, 0)), fx.make_layout((1, 4), (1, 1))
    )
    own = wide.get_slice(tid)
    held = fx.make_fragment_like(own.partition_S(X))
    fx.copy(wide, own.partition_S(X), held)
    fx.copy(wide, held, own.partition_D(tile))  # defect
    if synchronise:
        fx.barrier()
    for k in fx.range_constexpr(4):
        Y[row, column + k] = tile[column + k, row]  # defect


@fly.jit(plugins=["sanitize"])
def wide_copies(X: fx.Tensor[fx.Float32, 32, 32], Y: fx.Tensor[fx.Float32, 32, 32]):
    wide_kernel(X, Y, False).launch(grid=1, block=BLOCK)


CASES = {
    no_barrier: lambda: (floats(1024), np.zeros(1024, np.float32)),
    tile_loop: lambda: (floats(32, 64), floats(64, 48), np.zeros((32, 48), np.float32)),
    double_buffer: lambda: (floats(1024), np.zeros(256, np.float32)),
    reduction: lambda: (floats(1024), np.zeros(4, np.float32)),
    used_again: lambda: (floats(256), np.zeros(256, np.float32)),
    same_word: lambda: (floats(256), np.zeros(256, np.float32)),
    counting: lambda: (np.arange(256, dtype=np.uint8)[::-1].copy(), np.zeros(256, np.int32)),
    clearing: lambda: (np.arange(256, dtype=np.uint8), np.zeros(256, np.int32)),
    prefix_sum: lambda: (floats(256), np.zeros(256, np.float32)),
    wide_copies: lambda: (floats(32, 32), np.zeros((32, 32), np.float32)),
}
