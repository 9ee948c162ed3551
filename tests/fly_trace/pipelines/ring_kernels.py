"""Kernels with rings of buffers in loops over tiles, of many forms of tiles, and roles of warps."""

import fly
import fly.expr as fx

THREADS = 128


@fly.kernel
def tiles_kernel(
    X,
    Y: fx.Tensor,
    batches: fx.Int32,
    steps: fx.Int32,
    tile: fx.Constexpr[tuple],
    stages: fx.Constexpr[int],
    own_loop: fx.Constexpr[bool],
):
    """Y[batch, row] is the sum of a row of a matrix; a block takes every second batch."""
    rows, columns = tile[1]
    ring = fx.pipeline(stages, consumers=THREADS, x=tile)

    if fx.const_expr(own_loop):
        with ring.producer_warps(registers=40):
            for batch in range(fx.block_idx.x, batches, fx.grid_dim.x):
                for step in range(steps):
                    slot = ring.acquire()
                    slot.copy(x=(X, batch, 0, step * columns))
                    ring.commit()
    for batch in range(fx.block_idx.x, batches, fx.grid_dim.x):
        if fx.const_expr(not own_loop):
            ring.fill(0, steps, lambda slot, step, n=batch: slot.copy(x=(X, n, 0, step * columns)))
        with ring.consumer_warps() as own:
            total = fx.Float32(0)
            for _ in range(steps):
                slot = ring.wait()
                if own.thread < rows:
                    for column in range(columns, unroll=1):
                        total += slot.x[own.thread, column].to(fx.Float32)
                ring.release(slot)
            if own.thread < Y.shape[1]:
                Y[batch, own.thread] = total


@fly.jit
def tiles(
    X: fx.Tensor[fx.Numeric, "b", "m", "n"],
    Y: fx.Tensor[fx.Float32, "b", "m"],
    shape: fx.Constexpr[tuple],
    stages: fx.Constexpr[int] = 3,
    own_loop: fx.Constexpr[bool] = False,
    tensors: fx.Constexpr[bool] = False,
):
    tile = X.dtype, shape
    source = X if tensors else fx.tile_source(X, tile)
    threads = THREADS if tensors else fx.pipeline_threads(THREADS)
    steps = fx.ceildiv(X.shape[2], shape[1])
    tiles_kernel(source, Y, X.shape[0], steps, tile, stages, own_loop).launch(grid=2, block=threads)


@fly.kernel
def wgmma_kernel(a, b, C: fx.Tensor, steps: fx.Int32):
    """Two warp groups multiply 64 rows each, and wait for one another by a barrier of their own."""
    tile_a, tile_b = (fx.Float16, (128, 64)), (fx.Float16, (64, 64))
    ring = fx.pipeline(3, consumers=256, a=tile_a, b=tile_b)

    def load(slot, step):
        slot.copy(a=(a, fx.block_idx.x * 128, step * 64), b=(b, 0, step * 64))

    with ring.producer_warps(registers=40):
        ring.fill(0, steps, load)
    with ring.consumer_warps(registers=232) as own:
        atom = fx.make_mma_atom(fx.nvvm.WGMMA(64, fx.Float16))
        product = fx.make_tiled_mma(atom, fx.make_layout((2, 1, 1), (1, 0, 0)))
        group = product.get_slice(own.index * 128)
        sums = fx.make_rmem_tensor(fx.nvvm.accumulators(product), fx.Float32)
        sums.fill(0)
        for _ in range(steps):
            slot = ring.wait()
            fx.nvvm.wgmma_fence()
            fx.gemm(product, sums, group.partition_A(slot.a), group.partition_B(slot.b), sums)
            fx.nvvm.wgmma_commit()
            fx.nvvm.wgmma_wait(0, sums)
            ring.release(slot)
        own.barrier()
        start = fx.get_iter(C) + fx.block_idx.x * 128 * 64
        tile = fx.make_view(start, fx.make_layout((128, 64), (64, 1)))
        mine = product.get_slice(own.thread).partition_C(tile)
        fx.copy(fx.make_copy_atom(fx.UniversalCopy64b(), fx.Float32), sums, mine)


@fly.jit
def wgmma(
    A: fx.Tensor[fx.Float16, "m", "k"],
    B: fx.Tensor[fx.Float16, 64, "k"],
    C: fx.Tensor[fx.Float32, "m", 64],
):
    a = fx.tile_source(A, (fx.Float16, (128, 64)))
    b = fx.tile_source(B, (fx.Float16, (64, 64)))
    wgmma_kernel(a, b, C, fx.ceildiv(A.shape[1], 64)).launch(
        grid=A.shape[0] // 128, block=fx.pipeline_threads(256)
    )


@fly.kernel
def roles_kernel(X: fx.Tensor, Y: fx.Tensor):
    """Warp group 0 doubles, the two others hand over values to each other."""
    held = fx.shared_array(fx.Float32, 256)
    value = X[fx.thread_idx.x]
    with fx.warp_group(0):
        value = 2 * value
    with fx.warp_group(range(1, 3)) as own:
        held[own.thread] = value + own.index.to(fx.Float32)
        own.barrier()
        value = held[own.threads - 1 - own.thread]
    Y[fx.thread_idx.x] = value


@fly.jit
def roles(X: fx.Tensor[fx.Float32, 384], Y: fx.Tensor[fx.Float32, 384]):
    roles_kernel(X, Y).launch(grid=1, block=384)
