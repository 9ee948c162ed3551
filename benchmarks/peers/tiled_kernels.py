"""Tiled kernels with one source for FlyDSL and for this project: only the imports differ.

    python tiled_kernels.py flydsl|fly KERNEL STARTED cold|warm|call [HSACO]

Compiles KERNEL for gfx942 and prints the time in milliseconds, from STARTED (the start of the
process on the monotonic clock) to the compiled call's return; for "call" another kernel is compiled
first, and the clock starts after it. Our code is also written to the file HSACO. For FlyDSL the
environment is that of flydsl_kernels.py.

    tiled_copy        f32, 32×64 a block of 256, 128-bit buffer loads and stores
    tiled_mma         f16 → f32, one 128×128×32 product, four waves of v_mfma_f32_16x16x16_f16
    preshuffle_gemm   f16 → f16, 128×128×64 a step, A through two stages of swizzled LDS, B stored
                      in the order of the MFMA's fragments
    softmax_tiles     f32, rows of 1,024 in the registers of a block of 256, shuffles and LDS
"""

import sys
import time
from pathlib import Path

if sys.argv[1] == "flydsl":
    import flydsl.compiler as flyc
    import flydsl.expr as fx
else:
    import fly as flyc
    import fly.expr as fx

M, N, K = 1024, 1024, 1024  # of the GEMM
BLOCK_M, BLOCK_N, BLOCK_K, STAGES = 128, 128, 64, 2
COLUMNS = 1024  # of the softmax


# -- tiled_copy -----------------------------------------------------------------------------------
@flyc.kernel
def tiled_copy_kernel(A: fx.Tensor, B: fx.Tensor):
    bid_m, bid_n, _ = fx.block_idx
    buffer_a = fx.rocdl.make_buffer_tensor(A)
    buffer_b = fx.rocdl.make_buffer_tensor(B)
    tile_a = fx.flat_divide(buffer_a, (32, 64))[None, None, bid_m, bid_n]
    tile_b = fx.flat_divide(buffer_b, (32, 64))[None, None, bid_m, bid_n]
    atom = fx.make_copy_atom(fx.rocdl.BufferCopy128b(), fx.Float32)
    copy = fx.make_tiled_copy_tv(
        atom, fx.make_layout((16, 16), (16, 1)), fx.make_layout((2, 4), (4, 1))
    ).get_slice(fx.thread_idx.x)
    source = copy.partition_S(tile_a)
    fragment = fx.make_fragment_like(source)
    fx.copy(atom, source, fragment)
    fx.copy(atom, fragment, copy.partition_D(tile_b))


@flyc.jit
def tiled_copy(A: fx.Tensor, B: fx.Tensor):
    tiled_copy_kernel(A, B).launch(grid=(8, 8, 1), block=(256, 1, 1))


# -- tiled_mma ------------------------------------------------------------------------------------
@flyc.kernel
def tiled_mma_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    tid = fx.thread_idx.x
    a = fx.rocdl.make_buffer_tensor(A)
    b = fx.rocdl.make_buffer_tensor(B)
    c = fx.rocdl.make_buffer_tensor(C)
    tile_a = fx.slice(fx.zipped_divide(a, (128, 32)), (None, fx.block_idx.x))
    tile_b = fx.slice(fx.zipped_divide(b, (128, 32)), (None, fx.block_idx.x))
    tile_c = fx.slice(fx.zipped_divide(c, (128, 128)), (None, fx.block_idx.x))

    atom = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16))
    mma = fx.make_tiled_mma(atom, fx.make_layout((2, 2, 1), (1, 2, 0)))
    load = fx.make_copy_atom(fx.rocdl.BufferCopy64b(), fx.Float16)
    store = fx.make_copy_atom(fx.rocdl.BufferCopy32b(), fx.Float32)
    copy_a = fx.make_tiled_copy_A(load, mma).get_slice(tid)
    copy_b = fx.make_tiled_copy_B(load, mma).get_slice(tid)
    copy_c = fx.make_tiled_copy_C(store, mma).get_slice(tid)

    thread = mma.thr_slice(tid)
    fragment_a = thread.make_fragment_A(tile_a)
    fragment_b = thread.make_fragment_B(tile_b)
    fragment_c = thread.make_fragment_C(tile_c)
    fx.copy(load, copy_a.partition_S(tile_a), copy_a.retile(fragment_a))
    fx.copy(load, copy_b.partition_S(tile_b), copy_b.retile(fragment_b))
    fragment_c.fill(0)
    fx.gemm(mma, fragment_c, fragment_a, fragment_b, fragment_c)
    fx.copy(store, copy_c.retile(fragment_c), copy_c.partition_S(tile_c))


@flyc.jit
def tiled_mma(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    tiled_mma_kernel(A, B, C).launch(grid=(1, 1, 1), block=(256, 1, 1))


# -- preshuffle_gemm ------------------------------------------------------------------------------
@flyc.kernel
def preshuffle_gemm_kernel(
    A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, mma: fx.TiledMma, to_lds: fx.TiledCopy
):
    tid = fx.thread_idx.x
    bid_m, bid_n, _ = fx.block_idx
    a = fx.rocdl.make_buffer_tensor(A, max_size=False)
    b = fx.rocdl.make_buffer_tensor(B, max_size=False)
    c = fx.rocdl.make_buffer_tensor(C, max_size=False)
    tiles_a = fx.flat_divide(a, (BLOCK_M, BLOCK_K))[None, None, bid_m, None]
    tiles_b = fx.flat_divide(b, (BLOCK_N, BLOCK_K))[None, None, bid_n, None]
    tile_c = fx.flat_divide(c, (BLOCK_M, BLOCK_N))[None, None, bid_m, bid_n]

    shared_128b = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float16)
    buffer_128b = fx.make_copy_atom(fx.rocdl.BufferCopy128b(), fx.Float16)
    buffer_16b = fx.make_copy_atom(fx.rocdl.BufferCopy16b(), fx.Float16)
    thread = mma.thr_slice(tid)
    write_a = to_lds.get_slice(tid)
    read_a = fx.make_tiled_copy_A(buffer_128b, mma).get_slice(tid)
    read_b = fx.make_tiled_copy_B(buffer_128b, mma).get_slice(tid)
    write_c = fx.make_tiled_copy_C(buffer_16b, mma).get_slice(tid)

    stages = fx.make_view(
        fx.get_dyn_shared(fx.Float16),
        fx.make_composed_layout(
            fx.static(fx.SwizzleType.get(3, 3, 3)),
            fx.make_ordered_layout((BLOCK_M, BLOCK_K, STAGES), (1, 0, 2)),
        ),
    )
    global_a = write_a.partition_S(tiles_a)
    shared_a = write_a.partition_D(stages)
    source_a = read_a.partition_S(stages)
    source_b = read_b.partition_S(tiles_b)
    staging = fx.make_fragment_like(shared_a[None, None, None, 0])
    fragment_a = thread.make_fragment_A(stages[None, None, 0])
    fragment_b = thread.make_fragment_B(tiles_b, stages=2)
    fragment_c = thread.make_fragment_C(tile_c)
    fragment_a_copy = read_a.retile(fragment_a)
    fragment_b_copy = read_b.retile(fragment_b)
    step_a = fx.get_scalar(tiles_a.stride[2])
    step_b = fx.get_scalar(tiles_b.stride[2])

    def step(stage, ahead, load=True):
        if fx.const_expr(load):
            ahead = fx.Int32(ahead)
            fx.copy(buffer_128b, global_a[None, None, None, 0], staging, soffset=ahead * step_a)
            fx.copy(
                buffer_128b,
                source_b[None, None, None, 0],
                fragment_b_copy[None, None, None, stage ^ 1],
                soffset=ahead * step_b,
            )
        for k in fx.range_constexpr(BLOCK_K // 32):
            fx.copy(shared_128b, source_a[None, None, k, stage], fragment_a_copy[None, None, k])
            fx.gemm(
                mma,
                fragment_c,
                fragment_a[None, None, (None, k)],
                fragment_b[None, None, (None, k), stage],
                fragment_c,
                traversal_order=fx.GemmTraversalOrder.KNM,
            )
        fx.copy(shared_128b, staging, shared_a[None, None, None, stage ^ 1])
        fx.gpu.barrier()

    fx.copy(buffer_128b, global_a[None, None, None, 0], staging)
    fx.copy(buffer_128b, source_b[None, None, None, 0], fragment_b_copy[None, None, None, 0])
    fragment_c.fill(0)
    fx.copy(shared_128b, staging, shared_a[None, None, None, 0])
    fx.gpu.barrier()
    for k in range(0, K // BLOCK_K - 2, 2):
        step(0, k + 1)
        step(1, k + 2)
    step(0, K // BLOCK_K - 1)
    step(1, None, load=False)

    rounded = fx.make_fragment_like(fragment_c, fx.Float16)
    rounded.store(fragment_c.load().to(fx.Float16))
    fx.copy(buffer_16b, write_c.retile(rounded), write_c.partition_S(tile_c))


@flyc.jit
def preshuffle_gemm(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    order = fx.make_layout(((16, N // 16), (8, 4, K // 32)), ((8, 16 * K), (1, 8 * 16, 8 * 16 * 4)))
    shuffled = fx.Tensor(fx.make_view(fx.get_iter(B), order))
    vector = 8  # f16 in 128 bits
    across = BLOCK_K // vector
    down = 256 // across
    to_lds = fx.make_tiled_copy(
        fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float16),
        fx.make_layout(((across, down), (1, vector)), ((down * vector, 1), (1, down))),
        fx.make_tile(down, BLOCK_K),
    )
    mma = fx.make_tiled_mma(
        fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16)),
        fx.make_layout((1, 4, 1), (0, 1, 0)),
        fx.make_tile(None, None, fx.make_layout((4, 4, 2), (1, 8, 4))),
    )
    preshuffle_gemm_kernel(A, shuffled, C, mma, to_lds).launch(
        grid=(M // BLOCK_M, N // BLOCK_N, 1), block=(256, 1, 1), smem=32768
    )


# -- softmax_tiles --------------------------------------------------------------------------------
@fx.struct
class Partial:
    largest: fx.Array[fx.Float32, 4, 16]
    total: fx.Array[fx.Float32, 4, 16]


@flyc.kernel
def softmax_tiles_kernel(X: fx.Tensor, Y: fx.Tensor):
    tid = fx.thread_idx.x
    row = fx.block_idx.x
    wave = tid // 64
    rows_x = fx.flat_divide(fx.rocdl.make_buffer_tensor(X), (1, COLUMNS))[None, None, row, 0]
    rows_y = fx.flat_divide(fx.rocdl.make_buffer_tensor(Y), (1, COLUMNS))[None, None, row, 0]
    atom = fx.make_copy_atom(fx.rocdl.BufferCopy128b(), fx.Float32)
    copy = fx.make_tiled_copy_tv(
        atom, fx.make_layout((1, 256), (256, 1)), fx.make_layout((1, 4), (4, 1))
    ).get_slice(tid)
    source = copy.partition_S(rows_x)
    fragment = fx.make_fragment_like(source)
    fx.copy(atom, source, fragment)
    values = fragment.load()
    shared = fx.SharedAllocator().allocate(Partial).peek()
    largest = shared.largest.view(fx.make_layout(4, 1))
    total = shared.total.view(fx.make_layout(4, 1))

    top = values.reduce("max")
    for shift in fx.range_constexpr(6):
        top = fx.max(top, fx.gpu.shuffle_xor(top, 1 << shift, 64))
    if tid % 64 == 0:
        fx.memref_store(top, largest, wave)
    fx.gpu.barrier()
    for other in fx.range_constexpr(4):
        top = fx.max(top, fx.memref_load(largest, other))

    weights = fx.exp(values - top)
    sum = weights.reduce("add")
    for shift in fx.range_constexpr(6):
        sum = sum + fx.gpu.shuffle_xor(sum, 1 << shift, 64)
    if tid % 64 == 0:
        fx.memref_store(sum, total, wave)
    fx.gpu.barrier()
    whole = fx.Float32(0.0)
    for other in fx.range_constexpr(4):
        whole = whole + fx.memref_load(total, other)

    fragment.store(weights / whole)
    fx.copy(atom, fragment, copy.partition_D(rows_y))


@flyc.jit
def softmax_tiles(X: fx.Tensor, Y: fx.Tensor):
    softmax_tiles_kernel(X, Y).launch(grid=(64, 1, 1), block=(256, 1, 1))


# -- the timed call -------------------------------------------------------------------------------
# dtype and shape of each argument; all extents but those of the GEMM's B are dynamic for both.
ARGUMENTS = {
    "tiled_copy": (("f32", 256, 512), ("f32", 256, 512)),
    "tiled_mma": (("f16", 128, 32), ("f16", 128, 32), ("f32", 128, 128)),
    "preshuffle_gemm": (("f16", M, K), ("f16", N, K), ("f16", M, N)),
    "softmax_tiles": (("f32", 64, COLUMNS), ("f32", 64, COLUMNS)),
}


def prepare_flydsl(kernel: str):
    """Returns the call that compiles, with its arguments."""
    import torch

    def dynamic(name: str, *shape: int):
        dtype = {"f16": torch.float16, "f32": torch.float32}[name]
        tensor = flyc.from_dlpack(torch.zeros(shape, dtype=dtype))
        return tensor.mark_layout_dynamic(leading_dim=len(shape) - 1, divisibility=16)

    arguments = [dynamic(*argument) for argument in ARGUMENTS[kernel]]
    return lambda: globals()[kernel](*arguments)


def prepare_ours(kernel: str):
    names = globals()[kernel].function.__code__.co_varnames
    given = zip(names, ARGUMENTS[kernel], strict=False)
    # Equivalent to FlyDSL's mark_layout_dynamic: 32-bit extents, rows at multiples of 16 elements.
    layout = "?{i32},?{i32}:?{div=16},1"
    signature = ", ".join(f"{name}: {dtype}[{layout}]" for name, (dtype, *_) in given)
    return lambda: globals()[kernel].compile(signature=signature, target="gfx942").hsaco


def main() -> None:
    system, kernel, began, state, *files = sys.argv[1:]
    prepare, started = (prepare_flydsl if system == "flydsl" else prepare_ours), float(began)
    if state == "call":
        prepare(next(other for other in ARGUMENTS if other != kernel))()
    call = prepare(kernel)
    if state == "call":
        started = time.monotonic()
    made = call()
    print((time.monotonic() - started) * 1000)
    for file in files:
        Path(file).write_bytes(made)


if __name__ == "__main__":
    main()
