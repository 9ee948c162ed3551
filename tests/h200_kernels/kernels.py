"""Kernels that use what the examples do not: mathematics, warps, atomics, shared memory, f8."""

import fly
import fly.expr as fx

BLOCK = 256
SLOTS = 10_000  # f32 in each of two shared arrays: 80,000 bytes
FUNCTIONS = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "cbrt"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh"),
    *("atanh", "erf", "erfc"),
)


@fly.kernel
def math_kernel(X: fx.Tensor, Y: fx.Tensor):
    i = fx.block_idx.x * BLOCK + fx.thread_idx.x
    for row in fx.range_constexpr(len(FUNCTIONS)):
        Y[row, i] = getattr(fx, FUNCTIONS[row])(X[row, i])


@fly.jit
def math_f32(X: fx.Tensor[fx.Float32, 24, "n"], Y: fx.Tensor[fx.Float32, 24, "n"]):
    math_kernel(X, Y).launch(grid=X.shape[1] // BLOCK, block=BLOCK)


@fly.jit
def math_f64(X: fx.Tensor[fx.Float64, 24, "n"], Y: fx.Tensor[fx.Float64, 24, "n"]):
    math_kernel(X, Y).launch(grid=X.shape[1] // BLOCK, block=BLOCK)


@fly.kernel
def fast_kernel(X: fx.Tensor, Y: fx.Tensor):
    i = fx.block_idx.x * BLOCK + fx.thread_idx.x
    x = X[i]
    Y[0, i] = fx.exp(x, fastmath="afn")
    Y[1, i] = fx.exp2(x, fastmath="afn")
    Y[2, i] = fx.log2(fx.abs(x) + 2.0, fastmath="afn")
    Y[3, i] = fx.sin(x, fastmath="afn")
    Y[4, i] = fx.cos(x, fastmath="afn")
    Y[5, i] = fx.tanh(x, fastmath="afn")


@fly.jit
def fast_math(X: fx.Tensor[fx.Float32, "n"], Y: fx.Tensor[fx.Float32, 6, "n"]):
    fast_kernel(X, Y).launch(grid=X.shape[0] // BLOCK, block=BLOCK)


@fly.kernel
def power_kernel(X: fx.Tensor, Y: fx.Tensor, Z: fx.Tensor):
    i = fx.block_idx.x * BLOCK + fx.thread_idx.x
    Z[0, i] = fx.pow(X[i], Y[i])
    Z[1, i] = fx.atan2(X[i], Y[i])


@fly.jit
def powers(
    X: fx.Tensor[fx.Float32, "n"], Y: fx.Tensor[fx.Float32, "n"], Z: fx.Tensor[fx.Float32, 2, "n"]
):
    power_kernel(X, Y, Z).launch(grid=X.shape[0] // BLOCK, block=BLOCK)


@fly.kernel
def warp_kernel(X: fx.Tensor, H: fx.Tensor, N: fx.Tensor, D: fx.Tensor, W: fx.Tensor):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    half = fx.Float16(X[i])
    H[0, i] = fx.shuffle_xor(half, 5)
    H[1, i] = fx.shuffle_up(half, 3)
    H[2, i] = fx.shuffle_down(half, 3, 16)
    H[3, i] = fx.shuffle_idx(half, 7)
    H[4, i] = fx.shuffle_xor(half, 3, 4)
    H[5, i] = fx.shuffle_down(half, 5, 4)
    H[6, i] = fx.shuffle_up(half, fx.thread_idx.x % 3, 8)
    H[7, i] = fx.shuffle_idx(half, 5, 8)
    N[0, i] = fx.Int32(fx.nvvm.ballot(X[i] > 0.0))
    N[1, i] = fx.nvvm.redux(fx.thread_idx.x, "add")
    N[2, i] = fx.nvvm.redux(fx.thread_idx.x, "max")
    N[3, i] = fx.lane_id() + 100 * fx.num_warp_threads()
    N[4, i] = fx.where(fx.nvvm.vote_any(X[i] > 2.0), 1, 0)
    N[5, i] = fx.Int32(fx.nvvm.match_any(fx.thread_idx.x % 4))
    fx.nvvm.syncwarp()
    fx.nvvm.barrier_sync(1, 64)
    D[i] = fx.shuffle_xor(fx.Float64(X[i]), 16)
    W[i] = fx.shuffle_down(fx.Int64(i) * 5_000_000_000, 1)


@fly.jit
def warps(
    X: fx.Tensor[fx.Float32, 128],
    H: fx.Tensor[fx.Float16, 8, 128],
    N: fx.Tensor[fx.Int32, 6, 128],
    D: fx.Tensor[fx.Float64, 128],
    W: fx.Tensor[fx.Int64, 128],
):
    warp_kernel(X, H, N, D, W).launch(grid=2, block=64)


@fly.kernel
def large_kernel(X: fx.Tensor, Y: fx.Tensor):
    first = fx.shared_array(fx.Float32, SLOTS)
    second = fx.shared_array(fx.Float32, SLOTS)
    asked = fx.dynamic_shared(fx.Float32, BLOCK)
    thread = fx.thread_idx.x
    for i in range(thread, SLOTS, BLOCK):
        first[i] = X[i]
        second[i] = X[i] * 2.0
    asked[thread] = X[thread] * 4.0
    fx.barrier()
    for i in range(thread, SLOTS, BLOCK):
        Y[i] = first[SLOTS - 1 - i] + second[SLOTS - 1 - i] + asked[BLOCK - 1 - thread]


@fly.jit
def large_shared(X: fx.Tensor[fx.Float32, SLOTS], Y: fx.Tensor[fx.Float32, SLOTS]):
    large_kernel(X, Y).launch(grid=1, block=BLOCK, smem=4 * BLOCK)


@fly.kernel
def atomic_kernel(counts: fx.Tensor, wide: fx.Tensor, sums: fx.Tensor):
    i = fx.block_idx.x * BLOCK + fx.thread_idx.x
    fx.atomic_add(counts, i % 7, 1)
    fx.atomic_max(counts, 7, i)
    fx.atomic_min(counts, 8, -i)
    fx.atomic_xor(counts, 9, i)
    fx.atomic_or(counts, 10, i)
    fx.atomic_cas(counts, 11, 0, 5)
    fx.atomic_add(wide, 0, fx.Int64(i) << 20)
    fx.atomic_max(wide, 1, fx.Int64(i) << 33)
    fx.atomic_add(sums, 0, 0.5)
    one = fx.make_rmem_tensor(1, fx.Float32)
    one[0] = 0.25
    atom = fx.make_copy_atom(fx.UniversalAtomicAdd(fx.Float32), fx.Float32)
    fx.copy(atom, one, fx.make_view(fx.get_iter(sums) + 1, fx.make_layout(1, 1)))
    most = fx.make_rmem_tensor(1, fx.Float32)
    most[0] = fx.Float32(i)
    atom = fx.make_copy_atom(fx.UniversalAtomicMax(fx.Float32), fx.Float32)
    fx.copy(atom, most, fx.make_view(fx.get_iter(sums) + 2, fx.make_layout(1, 1)))


@fly.jit
def atomics(
    counts: fx.Tensor[fx.Int32, 12],
    wide: fx.Tensor[fx.Int64, 2],
    sums: fx.Tensor[fx.Float32, 3],
):
    atomic_kernel(counts, wide, sums).launch(grid=8, block=BLOCK)


@fly.kernel
def narrow_kernel(X: fx.Tensor, E4: fx.Tensor, E5: fx.Tensor, Y: fx.Tensor, Z: fx.Tensor):
    i = fx.thread_idx.x
    E4[i] = X[i].to(fx.Float8E4M3FN)
    E5[i] = X[i].to(fx.Float8E5M2)
    fx.barrier()
    Y[i] = fx.Float32(E4[i])
    Z[i] = fx.Float32(E5[i])


@fly.jit
def narrow_floats(
    X: fx.Tensor[fx.Float32, BLOCK],
    E4: fx.Tensor[fx.Float8E4M3FN, BLOCK],
    E5: fx.Tensor[fx.Float8E5M2, BLOCK],
    Y: fx.Tensor[fx.Float32, BLOCK],
    Z: fx.Tensor[fx.Float32, BLOCK],
):
    narrow_kernel(X, E4, E5, Y, Z).launch(grid=1, block=BLOCK)


@fly.kernel
def integer_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    i = fx.block_idx.x * BLOCK + fx.thread_idx.x
    C[0, i] = A[i] // B[i]
    C[1, i] = A[i] % B[i]
    C[2, i] = A[i] * B[i] + (A[i] >> 3)


@fly.jit
def integers(
    A: fx.Tensor[fx.Int64, "n"], B: fx.Tensor[fx.Int64, "n"], C: fx.Tensor[fx.Int64, 3, "n"]
):
    integer_kernel(A, B, C).launch(grid=A.shape[0] // BLOCK, block=BLOCK)


@fly.kernel
def bfloat_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    i = fx.block_idx.x * BLOCK + fx.thread_idx.x
    C[i] = A[i] * B[i] + A[i] - fx.maximum(A[i], B[i])


@fly.jit
def bfloats(
    A: fx.Tensor[fx.BFloat16, "n"], B: fx.Tensor[fx.BFloat16, "n"], C: fx.Tensor[fx.BFloat16, "n"]
):
    bfloat_kernel(A, B, C).launch(grid=A.shape[0] // BLOCK, block=BLOCK)
