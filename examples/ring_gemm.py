"""C = A·Bᵀ for f16 matrices of any size, by one source for all targets with matrix instructions.

A is M×K, B is N×K, C is M×N of f32. A block computes a 64×64 tile of C. It reads the tiles of A
and B from a ring of buffers in shared memory, which is filled ahead: by a warp group of its own
with TMA on Hopper, by `cp.async` on other NVIDIA targets, by asynchronous copies to LDS on gfx1250,
and through registers elsewhere. What lies beyond the ends of A and B counts as 0.
"""

import fly
import fly.expr as fx

ROWS, COLUMNS, DEPTH = 64, 64, 64
THREADS = 128  # that multiply
TILE_A, TILE_B = (fx.Float16, (ROWS, DEPTH)), (fx.Float16, (COLUMNS, DEPTH))


def product():
    """The product of the threads of a block, and the instruction that loads its operands."""
    arch = fx.get_arch()
    if arch.startswith("sm_"):
        atom = fx.make_mma_atom(fx.nvvm.MMA(16, 8, 16, fx.Float16))
        return fx.make_tiled_mma(atom, fx.make_layout((2, 2, 1), (1, 2, 0))), fx.nvvm.LoadMatrix(2)
    load = fx.UniversalCopy128b()
    if arch.startswith("gfx9"):  # two waves of 64; two products use 8 adjacent values of K
        atom = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16))
        values = fx.make_tile(None, None, fx.make_layout((4, 4, 2), (1, 8, 4)))
        return fx.make_tiled_mma(atom, fx.make_layout((2, 1, 1), (1, 0, 0)), values), load
    depth = 32 if arch == "gfx1250" else 16
    atom = fx.make_mma_atom(fx.rocdl.WMMA(16, 16, depth, fx.Float16))
    return fx.make_tiled_mma(atom, fx.make_layout((2, 2, 1), (1, 2, 0))), load


@fly.kernel
def ring_gemm_kernel(
    A,
    B,
    C: fx.Tensor,
    steps: fx.Int32,
    product: fx.TiledMma,
    load: fx.CopyAtom,
    stages: fx.Constexpr[int],
):
    row, column = fx.block_idx.x * ROWS, fx.block_idx.y * COLUMNS
    ring = fx.pipeline(stages, consumers=THREADS, a=TILE_A, b=TILE_B)

    def fill(slot, step):
        slot.copy(a=(A, row, step * DEPTH), b=(B, column, step * DEPTH))

    with ring.producer_warps(registers=40):
        ring.fill(0, steps, fill)
    with ring.consumer_warps(registers=232) as own:
        mine = product.get_slice(own.thread)
        read_a = fx.make_tiled_copy_A(load, product).get_slice(own.thread)
        read_b = fx.make_tiled_copy_B(load, product).get_slice(own.thread)
        tile = fx.make_view((0, 0), fx.make_identity_layout((ROWS, COLUMNS)))
        places = mine.partition_C(tile)
        sums = fx.make_fragment_like(places, fx.Float32)
        sums.fill(0)
        _, _, depth = product.tile_size_mnk.unpack()
        for _ in range(steps):
            slot = ring.wait()
            parts_a = fx.flat_divide(slot.a, (ROWS, depth))[None, None, 0, None]
            parts_b = fx.flat_divide(slot.b, (COLUMNS, depth))[None, None, 0, None]
            for part in fx.range_constexpr(DEPTH // depth):
                a = mine.make_fragment_A(parts_a[None, None, part])
                b = mine.make_fragment_B(parts_b[None, None, part])
                fx.copy(load, read_a.partition_S(parts_a[None, None, part]), read_a.retile(a))
                fx.copy(load, read_b.partition_S(parts_b[None, None, part]), read_b.retile(b))
                fx.gemm(product, sums, a, b, sums)
            ring.release(slot)
        for i in fx.range_constexpr(fx.size(sums)):
            r, c = places[i].unpack()
            if fx.elem_less((row + r, column + c), C.shape):
                C[row + r, column + c] = sums[i]


@fly.jit
def ring_gemm(
    A: fx.Tensor[fx.Float16, "M", "K", fx.aligned(16)],
    B: fx.Tensor[fx.Float16, "N", "K", fx.aligned(16)],
    stages: fx.Constexpr[int] = 3,
):
    tiled, load = product()
    m, n, k = A.shape[0], B.shape[0], A.shape[1]
    C = fx.empty((m, n), fx.Float32)
    a, b = fx.tile_source(A, TILE_A), fx.tile_source(B, TILE_B)
    ring_gemm_kernel(
        a, b, C, fx.ceildiv(k, DEPTH), tiled, fx.make_copy_atom(load, fx.Float16), stages
    ).launch(grid=(fx.ceildiv(m, ROWS), fx.ceildiv(n, COLUMNS)), block=fx.pipeline_threads(THREADS))
    return C


def main():
    import numpy as np

    random = np.random.default_rng(18)
    a, b = [random.standard_normal(shape).astype("f2") for shape in ((200, 136), (100, 136))]
    c = ring_gemm(a, b)
    np.testing.assert_allclose(c, a.astype("f8") @ b.T.astype("f8"), atol=1e-4)
    print("ring_gemm: 200x100x136, within 1e-4 of NumPy's float64")


if __name__ == "__main__":
    main()
