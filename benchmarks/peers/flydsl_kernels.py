"""Compiles one kernel with FlyDSL for gfx942 and prints the time in milliseconds, from the start
of the process (argument 2, on the monotonic clock) to the compiled call's return. If argument 3 is
"call", another kernel is compiled first, and the clock starts after it.

    ROCM_PATH=DIR COMPILE_ONLY=1 ARCH=gfx942 python flydsl_kernels.py vector_add 1234.5 cold

DIR/llvm/bin needs an ld.lld. No GPU is needed; FlyDSL imports torch. The kernels are those of
examples/ in FlyDSL's language: f32, dynamic extents, one row per block, a tree in LDS. FlyDSL
rewrites only the kernel's own source, so each kernel contains the helper.

flash_attention is FlyDSL's own kernel for CDNA3, which its wheel does not contain. Argument 4 is a
checkout of ROCm/FlyDSL, and its kernels/attention/flash_attn_generic.py is imported from there.
"""

import sys
import time

import flydsl.compiler as flyc
import flydsl.expr as fx
import torch
from flydsl.expr import gpu, range_constexpr

BLOCK = 256


@fx.struct
class Scratch:
    values: fx.Array[fx.Float32, BLOCK, 16]


@flyc.kernel
def vector_add_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, n: fx.Int32):
    i = fx.block_idx.x * BLOCK + fx.thread_idx.x
    if i < n:
        fx.memref_store(fx.memref_load(A, i) + fx.memref_load(B, i), C, i)


@flyc.jit
def vector_add(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, n: fx.Int32):
    groups = (n + BLOCK - 1) // BLOCK
    vector_add_kernel(A, B, C, n).launch(grid=(groups, 1, 1), block=(BLOCK, 1, 1))


@flyc.kernel
def softmax_kernel(X: fx.Tensor, Y: fx.Tensor, columns: fx.Int32):
    row = fx.block_idx.x
    tid = fx.thread_idx.x
    scratch = fx.SharedAllocator().allocate(Scratch).peek().values.view(fx.make_layout(BLOCK, 1))

    def reduce_block(value, combine):
        fx.memref_store(value, scratch, tid)
        gpu.barrier()
        for step in range_constexpr(8):
            half = BLOCK >> (step + 1)
            if tid < half:
                both = combine(fx.memref_load(scratch, tid), fx.memref_load(scratch, tid + half))
                fx.memref_store(both, scratch, tid)
            gpu.barrier()
        result = fx.memref_load(scratch, 0)
        gpu.barrier()
        return result

    largest = fx.Float32(float("-inf"))
    for j in range(tid, columns, BLOCK):
        largest = fx.max(largest, fx.memref_load(X, (row, j)))
    largest = reduce_block(largest, lambda a, b: fx.max(a, b))

    total = fx.Float32(0.0)
    for j in range(tid, columns, BLOCK):
        total = total + fx.exp(fx.memref_load(X, (row, j)) - largest)
    total = reduce_block(total, lambda a, b: a + b)

    for j in range(tid, columns, BLOCK):
        weight = fx.exp(fx.memref_load(X, (row, j)) - largest) / total
        fx.memref_store(weight, Y, (row, j))


@flyc.jit
def softmax(X: fx.Tensor, Y: fx.Tensor, rows: fx.Int32, columns: fx.Int32):
    softmax_kernel(X, Y, columns).launch(grid=(rows, 1, 1), block=(BLOCK, 1, 1))


@flyc.kernel
def layernorm_kernel(
    X: fx.Tensor,
    gamma: fx.Tensor,
    beta: fx.Tensor,
    Y: fx.Tensor,
    columns: fx.Int32,
    eps: fx.Float32,
):
    row = fx.block_idx.x
    tid = fx.thread_idx.x
    scratch = fx.SharedAllocator().allocate(Scratch).peek().values.view(fx.make_layout(BLOCK, 1))

    def reduce_block(value, combine):
        fx.memref_store(value, scratch, tid)
        gpu.barrier()
        for step in range_constexpr(8):
            half = BLOCK >> (step + 1)
            if tid < half:
                both = combine(fx.memref_load(scratch, tid), fx.memref_load(scratch, tid + half))
                fx.memref_store(both, scratch, tid)
            gpu.barrier()
        result = fx.memref_load(scratch, 0)
        gpu.barrier()
        return result

    count = columns.to(fx.Float32)

    total = fx.Float32(0.0)
    for j in range(tid, columns, BLOCK):
        total = total + fx.memref_load(X, (row, j))
    mean = reduce_block(total, lambda a, b: a + b) / count

    squares = fx.Float32(0.0)
    for j in range(tid, columns, BLOCK):
        difference = fx.memref_load(X, (row, j)) - mean
        squares = squares + difference * difference
    variance = reduce_block(squares, lambda a, b: a + b) / count
    scale = fx.rsqrt(variance + eps)

    for j in range(tid, columns, BLOCK):
        value = (fx.memref_load(X, (row, j)) - mean) * scale
        fx.memref_store(value * fx.memref_load(gamma, j) + fx.memref_load(beta, j), Y, (row, j))


@flyc.jit
def layernorm(
    X: fx.Tensor,
    gamma: fx.Tensor,
    beta: fx.Tensor,
    Y: fx.Tensor,
    rows: fx.Int32,
    columns: fx.Int32,
    eps: fx.Float32,
):
    launch = layernorm_kernel(X, gamma, beta, Y, columns, eps)
    launch.launch(grid=(rows, 1, 1), block=(BLOCK, 1, 1))


def flash_attention(source: str):
    """Returns FlyDSL's launcher for causal attention of f16: heads of 64, blocks of 64 queries."""
    sys.path.insert(0, source)
    from kernels.attention.flash_attn_generic import build_flash_attn_func_module_primary as build

    blocks = {"block_m": 64, "flat_work_group_size": 128}  # two waves of 32 queries each
    return build(num_heads=4, num_kv_heads=2, head_dim=64, causal=True, dtype_str="f16", **blocks)


def dynamic(*shape, dtype=torch.float32):
    return flyc.from_dlpack(torch.zeros(shape, dtype=dtype)).mark_layout_dynamic()


ARGUMENTS = {
    "vector_add": lambda: (dynamic(1000), dynamic(1000), dynamic(1000), 1000),
    "softmax": lambda: (dynamic(37, 781), dynamic(37, 781), 37, 781),
    "layernorm": lambda: (
        *(dynamic(37, 781), dynamic(781), dynamic(781), dynamic(37, 781)),
        *(37, 781, 1e-5),
    ),
    # Q, K, V and Out, each flat: batches × length × heads × 64; then the batches and the length.
    "flash_attention": lambda: (
        *(dynamic(150 * heads * 64, dtype=torch.float16) for heads in (4, 2, 2, 4)),
        *(1, 150),
    ),
}


def main() -> None:
    name, started, state, *source = sys.argv[1], float(sys.argv[2]), *sys.argv[3:]
    function = flash_attention(*source) if name == "flash_attention" else globals()[name]
    arguments = ARGUMENTS[name]()
    if state == "call":
        other = next(kernel for kernel in ARGUMENTS if kernel != name)
        globals()[other](*ARGUMENTS[other]())
        started = time.monotonic()
    function(*arguments)
    print((time.monotonic() - started) * 1000)


main()
