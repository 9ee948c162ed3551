"""Kernels that misuse rings, mbarriers and shared memory, each in one way, or in none."""

import fly
import fly.expr as fx

ROWS, COLUMNS, THREADS, STEPS = 128, 64, 128, 5
TILE = (fx.Float16, (ROWS, COLUMNS))
RING = ("", "after the next", "after release", "no release", "half a slot")


@fly.kernel
def ring_kernel(X, Y: fx.Tensor, misuse: fx.Constexpr[str]):
    ring = fx.pipeline(3, consumers=THREADS, a=TILE, b=TILE)

    def fill(slot, step):
        slot.copy(a=(X, 0, step * COLUMNS))
        if fx.const_expr(misuse != "half a slot"):
            slot.copy(b=(X, 0, step * COLUMNS))

    with ring.producer_warps():
        ring.fill(0, STEPS, fill)
    with ring.consumer_warps() as own:
        total = fx.Float32(0)
        if fx.const_expr(misuse == "after the next"):
            for _ in range(STEPS - 1):
                slot = ring.wait()
                ring.release(slot)
                following = ring.wait()
                total += slot.a[own.thread ^ 64, 0].to(fx.Float32)
                ring.release(following)
        else:
            for _ in range(STEPS):
                slot = ring.wait()
                if fx.const_expr(misuse == "after release"):
                    ring.release(slot)
                    for column in range(COLUMNS, unroll=1):
                        total += slot.a[own.thread, column].to(fx.Float32)
                else:
                    for column in range(COLUMNS, unroll=1):
                        total += slot.a[own.thread, column].to(fx.Float32)
                    if fx.const_expr(misuse != "no release"):
                        ring.release(slot)
        Y[own.thread] = total


@fly.jit
def ring(
    X: fx.Tensor[fx.Float16, ROWS, STEPS * COLUMNS],
    Y: fx.Tensor[fx.Float32, ROWS],
    misuse: fx.Constexpr[str] = "",
):
    ring_kernel(fx.tile_source(X, TILE), Y, misuse).launch(
        grid=1, block=fx.pipeline_threads(THREADS)
    )


@fly.kernel
def parity_kernel(X, Y: fx.Tensor, parity: fx.Constexpr[int]):
    tiles = fx.nvvm.SharedTiles(fx.Float16, fx.nvvm.tile_layout(fx.Float16, (64, 64)), 1)
    full = fx.SharedAllocator().allocate(fx.Array[fx.Int64, 1], 8).peek().ptr
    if fx.thread_idx.x == 0:
        fx.nvvm.mbarrier_init(full, 1)
    fx.barrier()
    if fx.thread_idx.x == 0:
        fx.nvvm.mbarrier_expect(full, X.nbytes)
        fx.nvvm.tma_load(X, (0, 0), tiles[0], full)
    fx.nvvm.mbarrier_wait(full, parity)
    Y[fx.thread_idx.x] = tiles[0][fx.thread_idx.x, 1]


@fly.jit
def phase(
    X: fx.Tensor[fx.Float16, 64, 64], Y: fx.Tensor[fx.Float16, 64], parity: fx.Constexpr[int]
):
    map = fx.nvvm.tensor_map(X, fx.nvvm.tile_layout(fx.Float16, (64, 64)))
    parity_kernel(map, Y, parity).launch(grid=1, block=64)


@fly.kernel
def exchange_kernel(X: fx.Tensor, Y: fx.Tensor, form: fx.Constexpr[str]):
    """Threads hand values over to those of the other warp."""
    held = fx.shared_array(fx.Float32, 64)
    thread = fx.thread_idx.x
    mine = fx.Float32(0)
    for _ in range(3):
        if fx.const_expr(form in ("copies", "no wait")):
            wide = fx.make_copy_atom(fx.nvvm.CpAsync(32), fx.Float32)
            one = fx.make_layout(1, 1)
            fx.copy(
                wide,
                fx.make_view(fx.get_iter(X) + thread, one),
                fx.make_view(fx.get_iter(held) + thread, one),
            )
            fx.nvvm.cp_async_commit()
            fx.nvvm.cp_async_wait(0 if form == "copies" else 1)
        else:
            held[thread] = X[thread]
        if fx.const_expr(form == "by halves"):
            fx.nvvm.barrier_sync(1, 64)
        else:
            fx.barrier()
        mine += held[thread ^ 32]
        if fx.const_expr(form != "one barrier"):
            fx.barrier()
    Y[thread] = mine


@fly.jit
def exchange(X: fx.Tensor[fx.Float32, 64], Y: fx.Tensor[fx.Float32, 64], form: fx.Constexpr[str]):
    exchange_kernel(X, Y, form).launch(grid=2, block=64)


WGMMA = ("", "no wait")


@fly.kernel
def product_kernel(a, b, C: fx.Tensor, steps: fx.Int32, form: fx.Constexpr[str]):
    A = fx.nvvm.tile_layout(fx.Float16, (64, 64))
    tiles_a = fx.nvvm.SharedTiles(fx.Float16, A, 2)
    tiles_b = fx.nvvm.SharedTiles(fx.Float16, A, 2)
    ring = fx.nvvm.Pipeline(2, consumers=1)
    if fx.nvvm.warp_group_index() == 1:
        if fx.thread_idx.x == 128:
            for step in range(steps):
                slot = ring.fill(step, a.nbytes + b.nbytes)
                fx.nvvm.tma_load(a, (0, step * 64), tiles_a[slot.stage], slot.barrier)
                fx.nvvm.tma_load(b, (0, step * 64), tiles_b[slot.stage], slot.barrier)
    else:
        product = fx.make_tiled_mma(
            fx.make_mma_atom(fx.nvvm.WGMMA(64, fx.Float16)), fx.make_layout((1, 1, 1), (1, 0, 0))
        )
        group = product.get_slice(0)
        sums = fx.make_rmem_tensor(fx.nvvm.accumulators(product), fx.Float32)
        sums.fill(0)
        for step in range(steps):
            slot = ring.wait(step)
            fx.nvvm.wgmma_fence()
            own = group.partition_A(tiles_a[slot.stage])
            fx.gemm(product, sums, own, group.partition_B(tiles_b[slot.stage]), sums)
            fx.nvvm.wgmma_commit()
            # With one group left, the buffer of this step is still read.
            fx.nvvm.wgmma_wait(1 if form == "no wait" else 0, sums)
            if fx.thread_idx.x == 0:
                ring.release(step)
        fx.nvvm.wgmma_wait(0, sums)
        tile = fx.make_view(fx.get_iter(C), fx.make_layout((64, 64), (64, 1)))
        mine = product.get_slice(fx.thread_idx.x).partition_C(tile)
        fx.copy(fx.make_copy_atom(fx.UniversalCopy64b(), fx.Float32), sums, mine)


@fly.jit
def products(
    A: fx.Tensor[fx.Float16, 64, 320],
    B: fx.Tensor[fx.Float16, 64, 320],
    C: fx.Tensor[fx.Float32, 64, 64],
    form: fx.Constexpr[str],
):
    layout = fx.nvvm.tile_layout(fx.Float16, (64, 64))
    a, b = fx.nvvm.tensor_map(A, layout), fx.nvvm.tensor_map(B, layout)
    product_kernel(a, b, C, fx.ceildiv(A.shape[1], 64), form).launch(grid=1, block=256)


@fly.kernel
def stores_kernel(Y, steps: fx.Int32, left: fx.Constexpr[int]):
    """A buffer that TMA stores from is written again."""
    layout = fx.nvvm.tile_layout(fx.Float32, (32, 32))
    tile = fx.nvvm.SharedTiles(fx.Float32, layout, 1)[0]
    for step in range(steps):
        for row in range(32, unroll=1):
            tile[row, fx.thread_idx.x % 32] = fx.Float32(step)
        fx.nvvm.fence_async()
        fx.barrier()
        if fx.thread_idx.x == 0:
            fx.nvvm.tma_store(tile, Y, (step * 32, 0))
            fx.nvvm.tma_commit()
            fx.nvvm.tma_wait(left)
        fx.barrier()


@fly.jit
def stores(Y: fx.Tensor[fx.Float32, 96, 32], left: fx.Constexpr[int]):
    layout = fx.nvvm.tile_layout(fx.Float32, (32, 32))
    stores_kernel(fx.nvvm.tensor_map(Y, layout), 3, left).launch(grid=1, block=32)
