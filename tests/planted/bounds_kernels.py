"""Kernels that access what is not theirs. The line with the defect ends with `# defect`.

CASES has for each what makes its arguments: correct but for the defect.
"""

import numpy as np

import fly
import fly.expr as fx

BLOCK = 64
F32 = fx.Tensor[fx.Float32, "n"]
MATRIX = fx.Tensor[fx.Float32, "M", "N"]


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32)


def groups(n):
    return (n + BLOCK - 1) // BLOCK


# -- 1: one too many in the ragged tail


@fly.kernel
def tail_kernel(X: fx.Tensor, Y: fx.Tensor, a: fx.Float32, n: fx.Int32):
    i = fx.block_idx.x * BLOCK + fx.thread_idx.x
    if i <= n:
        x = X[i]  # defect
        Y[i] = a * x


@fly.jit(plugins=["bounds"])
def ragged_tail(X: F32, Y: F32):
    tail_kernel(X, Y, 2.0, X.shape[0]).launch(grid=groups(X.shape[0]), block=BLOCK)


# -- 2: a stencil without its left border


@fly.kernel
def stencil_kernel(X: fx.Tensor, Y: fx.Tensor, n: fx.Int32):
    i = fx.block_idx.x * BLOCK + fx.thread_idx.x
    if i < n - 1:
        left = X[i - 1]  # defect
        Y[i] = 0.5 * (left + X[i + 1])


@fly.jit(plugins=["bounds"])
def negative_index(X: F32, Y: F32):
    stencil_kernel(X, Y, X.shape[0]).launch(grid=groups(X.shape[0]), block=BLOCK)


# -- 3: indices exchanged: inside the memory, outside of the axis


@fly.kernel
def rows_kernel(A: fx.Tensor, B: fx.Tensor):
    row, column = fx.block_idx.x, fx.thread_idx.x
    if column < A.shape[1]:
        value = A[column, row]  # defect
        B[row, column] = value


@fly.jit(plugins=["bounds"])
def exchanged_indices(A: MATRIX, B: MATRIX):
    rows_kernel(A, B).launch(grid=A.shape[0], block=BLOCK)


# -- 4: rows taken to be one element longer than they are


@fly.kernel
def stride_kernel(A: fx.Tensor, B: fx.Tensor):
    row, column = fx.block_idx.x, fx.thread_idx.x
    height, width = A.shape[0], A.shape[1]
    wrong = fx.make_view(fx.get_iter(A), fx.make_layout((height, width), (width + 1, 1)))
    if column < width:
        value = wrong[row, column]  # defect
        B[row, column] = value


@fly.jit(plugins=["bounds"])
def wrong_stride(A: MATRIX, B: MATRIX):
    stride_kernel(A, B).launch(grid=A.shape[0], block=BLOCK)


# -- 5: a grid that counts elements where the kernel takes four at a time


@fly.kernel
def four_kernel(X: fx.Tensor, Y: fx.Tensor):
    first = (fx.block_idx.x * BLOCK + fx.thread_idx.x) * 4
    for k in fx.range_constexpr(4):
        value = X[first + k]  # defect
        Y[first + k] = -value


@fly.jit(plugins=["bounds"])
def wrong_grid(X: F32, Y: F32):
    four_kernel(X, Y).launch(grid=X.shape[0] // BLOCK, block=BLOCK)


# -- 6: whole tiles, rounded up


@fly.kernel
def tiles_kernel(A: fx.Tensor, B: fx.Tensor, rows: fx.TiledCopy):
    i, j = fx.block_idx.x, fx.block_idx.y
    own = rows.get_slice(fx.thread_idx.x)
    source = own.partition_S(fx.flat_divide(A, rows.tile_mn)[None, None, i, j])
    target = own.partition_D(fx.flat_divide(B, rows.tile_mn)[None, None, i, j])
    held = fx.make_fragment_like(source)
    fx.copy(rows, source, held)  # defect
    fx.copy(rows, held, target)


@fly.jit(plugins=["bounds"])
def whole_tiles(A: MATRIX, B: MATRIX):
    atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32)
    rows = fx.make_tiled_copy_tv(
        atom, fx.make_ordered_layout((8, 8), (1, 0)), fx.make_layout((1, 4), (1, 1))
    )
    grid = (fx.ceildiv(A.shape[0], 8), fx.ceildiv(A.shape[1], 32))
    tiles_kernel(A, B, rows).launch(grid=grid, block=BLOCK)


# -- 7: a histogram with too few bins


@fly.kernel
def bins_kernel(data: fx.Tensor, counts: fx.Tensor, n: fx.Int32):
    i = fx.block_idx.x * BLOCK + fx.thread_idx.x
    if i < n:
        fx.atomic_add(counts, fx.Int32(data[i]), 1)  # defect


@fly.jit(plugins=["bounds"])
def few_bins(data: fx.Tensor[fx.Uint8, "n"], counts: fx.Tensor[fx.Int32, "m"]):
    bins_kernel(data, counts, data.shape[0]).launch(grid=groups(data.shape[0]), block=BLOCK)


# -- 8: rows by an index that counts from one


@fly.kernel
def gather_kernel(table: fx.Tensor, index: fx.Tensor, out: fx.Tensor):
    row, column = fx.block_idx.x, fx.thread_idx.x
    if column < out.shape[1]:
        value = table[index[row], column]  # defect
        out[row, column] = value


@fly.jit(plugins=["bounds"])
def index_from_one(
    table: MATRIX, index: fx.Tensor[fx.Int32, "R"], out: fx.Tensor[fx.Float32, "R", "N"]
):
    gather_kernel(table, index, out).launch(grid=index.shape[0], block=BLOCK)


# -- 9: a halo for which the tile in shared memory has no room


@fly.kernel
def halo_kernel(X: fx.Tensor, Y: fx.Tensor, n: fx.Int32):
    tile = fx.shared_array(fx.Float32, BLOCK + 1)
    tid = fx.thread_idx.x
    i = fx.block_idx.x * BLOCK + tid
    value = fx.Float32(0)
    if i < n:
        value = X[i]
    tile[tid + 1] = value
    if tid < 1:
        tile[0] = 0.0
    fx.barrier()
    right = tile[tid + 2]  # defect
    if i < n:
        Y[i] = tile[tid] + right


@fly.jit(plugins=["bounds"])
def small_halo(X: F32, Y: F32):
    halo_kernel(X, Y, X.shape[0]).launch(grid=groups(X.shape[0]), block=BLOCK)


# -- 10: a loop of one iteration too many, in a helper


def row_sum(A, row):
    total = fx.Float32(0)
    for k in range(fx.Int64(0), A.shape[1] + 1):
        total = total + A[row, k]  # defect
    return total


@fly.kernel
def sums_kernel(A: fx.Tensor, Y: fx.Tensor):
    row = fx.block_idx.x * BLOCK + fx.thread_idx.x
    if row < A.shape[0]:
        Y[row] = row_sum(A, row)


@fly.jit(plugins=["bounds"])
def long_loop(A: MATRIX, Y: fx.Tensor[fx.Float32, "M"]):
    sums_kernel(A, Y).launch(grid=groups(A.shape[0]), block=BLOCK)


# -- 11: a predicate that compares with the padded extents


@fly.kernel
def masked_kernel(A: fx.Tensor, B: fx.Tensor, copy: fx.TiledCopy):
    i, j = fx.block_idx.x, fx.block_idx.y
    own = copy.get_slice(fx.thread_idx.x)
    rows, columns = A.shape.unpack()
    coords = fx.make_view((0, 0), fx.make_identity_layout((rows, columns)))
    tiles = [fx.flat_divide(t, copy.tile_mn)[None, None, i, j] for t in (A, B, coords)]
    source, target = own.partition_S(tiles[0]), own.partition_D(tiles[1])
    where = own.partition_S(tiles[2])[(0, None), None, None]
    inside = fx.make_fragment_like(where, fx.Boolean)
    for k in fx.range_constexpr(fx.size(inside)):
        inside[k] = fx.elem_less(where[k], (rows + 1, columns))
    held = fx.make_fragment_like(source)
    held.fill(0)
    fx.copy(copy, source, held, pred=inside)  # defect
    fx.copy(copy, held, target, pred=inside)


@fly.jit(plugins=["bounds"])
def wrong_mask(A: MATRIX, B: MATRIX):
    atom = fx.make_copy_atom(fx.UniversalCopy64b(), fx.Float32)
    copy = fx.make_tiled_copy_tv(
        atom, fx.make_ordered_layout((4, 16), (1, 0)), fx.make_layout((2, 2), (2, 1))
    )
    m, n = copy.tile_mn.unpack()
    grid = (fx.ceildiv(A.shape[0], m), fx.ceildiv(A.shape[1], n))
    masked_kernel(A, B, copy).launch(grid=grid, block=BLOCK)


# -- 12: a store past the end, of a tensor that is not the one of the guard


@fly.kernel
def half_kernel(X: fx.Tensor, Y: fx.Tensor, n: fx.Int32):
    i = fx.block_idx.x * BLOCK + fx.thread_idx.x
    if i < n:
        Y[i] = X[i]  # defect


@fly.jit(plugins=["bounds"])
def small_output(X: F32, Y: fx.Tensor[fx.Float32, "m"]):
    half_kernel(X, Y, X.shape[0]).launch(grid=groups(X.shape[0]), block=BLOCK)


CASES = {
    ragged_tail: lambda: (floats(100), np.zeros(100, np.float32)),
    negative_index: lambda: (floats(128), np.zeros(128, np.float32)),
    exchanged_indices: lambda: (floats(20, 50), np.zeros((20, 50), np.float32)),
    wrong_stride: lambda: (floats(9, 40), np.zeros((9, 40), np.float32)),
    wrong_grid: lambda: (floats(512), np.zeros(512, np.float32)),
    whole_tiles: lambda: (floats(12, 32), np.zeros((12, 32), np.float32)),
    few_bins: lambda: (np.arange(256, dtype=np.uint8), np.zeros(250, np.int32)),
    index_from_one: lambda: (
        floats(7, 30),
        np.arange(1, 8, dtype=np.int32),
        np.zeros((7, 30), np.float32),
    ),
    small_halo: lambda: (floats(200), np.zeros(200, np.float32)),
    long_loop: lambda: (floats(70, 33), np.zeros(70, np.float32)),
    wrong_mask: lambda: (floats(13, 32), np.zeros((13, 32), np.float32)),
    small_output: lambda: (floats(100), np.zeros(90, np.float32)),
}
