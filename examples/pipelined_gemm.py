"""C = A·Bᵀ for matrices of any size: tiles in LDS, loaded while the tiles before are multiplied.

A is M×K, B is N×K, both of f16 or f32; C is M×N of f32. A workgroup computes a 128×128 tile of C.
In each step along K it starts to load the next tiles of A and B into registers, multiplies the
tiles in one half of LDS, and stores what it has loaded to the other half. Which half is state of
the loop, as are the sums. What lies beyond the ends of A and B counts as 0.

One kernel for matrix cores and for plain FMAs: the tiled product, which the host function makes,
tells it what each thread holds.
"""

import fly
import fly.expr as fx

TILE_M = TILE_N = 128
STAGES = 2
LOAD_BYTES = 16  # a thread loads so much of a row at a time
ROW_BYTES = 64  # of a tile in LDS


def within(coordinates, extents):
    """Returns which of a thread's loads or stores begin within a matrix."""
    first = coordinates[(0, None), None, None]
    inside = fx.make_fragment_like(first, fx.Boolean)
    for i in fx.range_constexpr(fx.size(inside)):
        inside[i] = fx.elem_less(first[i], extents)
    return inside


class Operand:
    """A thread's part in moving the tiles of a matrix: from memory to registers, and to LDS."""

    def __init__(self, matrix, tile, load, to_lds, lds):
        thread = fx.thread_idx.x
        rows, columns, _ = lds.shape.unpack()
        loads = fx.make_tiled_copy(load, to_lds.layout_tv_tiled, to_lds.tile_mn).get_slice(thread)
        stores = to_lds.get_slice(thread)
        places = fx.make_view((0, 0), fx.make_identity_layout(matrix.shape))
        self.source, self.places = [
            loads.partition_S(fx.flat_divide(t, (rows, columns))[None, None, tile, None])
            for t in (matrix, places)
        ]
        self.target = stores.partition_D(lds)
        self.held = fx.make_fragment_like(self.target[None, None, None, 0])
        self.loaded = loads.retile(self.held)
        self.load_atom, self.store_atom = load, to_lds.copy_atom
        self.extents = matrix.shape

    def load(self, k):
        """Starts to load tile k. What lies beyond the matrix becomes 0."""
        inside = within(self.places[None, None, None, k], self.extents)
        self.held.fill(0)
        fx.copy(self.load_atom, self.source[None, None, None, k], self.loaded, pred=inside)

    def store(self, stage):
        """Stores the loaded tile."""
        fx.copy(self.store_atom, self.held, self.target[None, None, None, stage])


@fly.kernel
def pipelined_gemm_kernel(
    A: fx.Tensor,
    B: fx.Tensor,
    C: fx.Tensor,
    product: fx.TiledMma,
    load: fx.CopyAtom,
    to_lds: fx.TiledCopy,
):
    thread = fx.thread_idx.x
    row, column = fx.block_idx.x, fx.block_idx.y
    dtype = A.dtype
    tile_k = ROW_BYTES * 8 // dtype.bits
    steps = fx.ceildiv(A.shape[1], tile_k)

    # Tiles in LDS: rows of 64 bytes, with groups of 16 bytes permuted by the row.
    group = (LOAD_BYTES * 8 // dtype.bits).bit_length() - 1
    swizzle = fx.static(fx.SwizzleType.get(2, group, 3))
    lds_a, lds_b = [
        fx.SharedAllocator()
        .allocate(fx.Array[dtype, rows * tile_k * STAGES, 16])
        .peek()
        .view(
            fx.make_composed_layout(
                swizzle, fx.make_ordered_layout((rows, tile_k, STAGES), (1, 0, 2))
            )
        )
        for rows in (TILE_M, TILE_N)
    ]
    tiles_a = Operand(A, row, load, to_lds, lds_a)
    tiles_b = Operand(B, column, load, to_lds, lds_b)

    own = product.get_slice(thread)
    tile_c = fx.flat_divide(C, (TILE_M, TILE_N))[None, None, row, column]
    # The part of the tiles that one product of all threads takes, then the parts along K.
    _, _, part_k = product.tile_size_mnk.unpack()
    parts_a = fx.flat_divide(lds_a, (TILE_M, part_k))[None, None, 0, None, None]
    parts_b = fx.flat_divide(lds_b, (TILE_N, part_k))[None, None, 0, None, None]
    a = own.make_fragment_A(parts_a[None, None, 0, 0])
    b = own.make_fragment_B(parts_b[None, None, 0, 0])
    c = own.make_fragment_C(tile_c)
    wide = to_lds.copy_atom
    read_a = fx.make_tiled_copy_A(wide, product).get_slice(thread)
    read_b = fx.make_tiled_copy_B(wide, product).get_slice(thread)
    from_a, from_b = read_a.partition_S(parts_a), read_b.partition_S(parts_b)

    def multiply(stage):
        for part in range(tile_k // part_k, unroll=1):
            fx.copy(wide, from_a[None, None, None, part, stage], read_a.retile(a))
            fx.copy(wide, from_b[None, None, None, part, stage], read_b.retile(b))
            fx.gemm(product, c, a, b, c)

    c.fill(0.0)
    tiles_a.load(0)
    tiles_b.load(0)
    stage = 0
    tiles_a.store(stage)
    tiles_b.store(stage)
    fx.barrier()
    for k in range(steps):
        tiles_a.load(k + 1)  # in the last step nothing: this tile is beyond the matrix
        tiles_b.load(k + 1)
        multiply(stage)
        stage = 1 - stage
        tiles_a.store(stage)
        tiles_b.store(stage)
        fx.barrier()

    store = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
    write = fx.make_tiled_copy_C(store, product).get_slice(thread)
    places = fx.make_view((0, 0), fx.make_identity_layout(C.shape))
    place_c = write.partition_D(fx.flat_divide(places, (TILE_M, TILE_N))[None, None, row, column])
    inside = within(place_c, C.shape)
    fx.copy(store, write.retile(c), write.partition_D(tile_c), pred=inside)


def gemm(A, B, product, threads):
    """Returns C. `threads` is the number of a workgroup's threads."""
    dtype = A.dtype
    values, along_k = LOAD_BYTES * 8 // dtype.bits, ROW_BYTES // LOAD_BYTES
    wide = fx.make_copy_atom(fx.UniversalCopy128b(), dtype)
    single = fx.make_copy_atom(fx.UniversalCopy(dtype.bits), dtype)
    to_lds = fx.make_tiled_copy_tv(
        wide,
        fx.make_ordered_layout((threads // along_k, along_k), (1, 0)),
        fx.make_layout((1, values), (1, 1)),
    )
    rows, columns = A.shape[0], B.shape[0]
    C = fx.empty((rows, columns), fx.Float32)
    grid = (fx.ceildiv(rows, TILE_M), fx.ceildiv(columns, TILE_N))
    # A thread loads 16 bytes of a row at a time where all rows are at multiples of 16 bytes.
    adjacent = A.stride[1] == 1 and B.stride[1] == 1
    multiples = A.stride[0] % values == 0 and B.stride[0] % values == 0
    if A.shape[1] % values == 0 and adjacent and multiples:
        pipelined_gemm_kernel(A, B, C, product, wide, to_lds).launch(grid=grid, block=threads)
    else:
        pipelined_gemm_kernel(A, B, C, product, single, to_lds).launch(grid=grid, block=threads)
    return C


@fly.jit
def pipelined_gemm_mfma(
    A: fx.Tensor[fx.Float16, "M", "K", fx.aligned(LOAD_BYTES)],
    B: fx.Tensor[fx.Float16, "N", "K", fx.aligned(LOAD_BYTES)],
):
    product = fx.make_tiled_mma(
        fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16)),
        fx.make_layout((2, 2, 1), (1, 2, 0)),
        # Two consecutive products use the eight values of K that a thread reads at a time.
        fx.make_tile(None, None, fx.make_layout((4, 4, 2), (1, 8, 4))),
    )
    C = gemm(A, B, product, 256)
    return C


@fly.jit
def pipelined_gemm_wmma(
    A: fx.Tensor[fx.Float16, "M", "K", fx.aligned(LOAD_BYTES)],
    B: fx.Tensor[fx.Float16, "N", "K", fx.aligned(LOAD_BYTES)],
):
    atom = fx.make_mma_atom(fx.rocdl.WMMA(16, 16, 16, fx.Float16))
    product = fx.make_tiled_mma(atom, fx.make_layout((2, 2, 1), (1, 2, 0)))
    C = gemm(A, B, product, 128)
    return C


@fly.jit
def pipelined_gemm_fma(
    A: fx.Tensor[fx.Float32, "M", "K", fx.aligned(LOAD_BYTES)],
    B: fx.Tensor[fx.Float32, "N", "K", fx.aligned(LOAD_BYTES)],
):
    product = fx.make_tiled_mma(
        fx.make_mma_atom(fx.UniversalFMA(fx.Float32)),
        fx.make_layout((16, 16, 1), (16, 1, 0)),
        fx.make_tile(None, None, 4),  # of K: as many values as a thread reads at a time
    )
    C = gemm(A, B, product, 256)
    return C


def main():
    import numpy as np

    random = np.random.default_rng(33)
    a = random.standard_normal((150, 100), dtype=np.float32)
    b = random.standard_normal((130, 100), dtype=np.float32)
    c = pipelined_gemm_fma(a, b)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.T.astype(np.float64), atol=1e-4)
    print("pipelined_gemm_fma: 150x130x100, within 1e-4 of NumPy's float64")


if __name__ == "__main__":
    main()
