"""Causal attention on matrix cores: Out = softmax(Q·Kᵀ / √d)·V, where a query has no later keys.

Q and Out are batches × heads × length × d of f16. K and V have the same length, and as many heads
or fewer: with grouped queries, several heads of Q share one of K and V. d is 64 or 128, the length
is any. The rows of a head lie one after the other, the first at a multiple of 16 bytes. Sums are
f32. CDNA's chips have MFMA instructions, RDNA's WMMA.

A workgroup of four waves takes 64 queries of a head, and goes through the keys up to the last of
them in tiles, with an online softmax (Dao, "FlashAttention-2", arXiv:2307.08691). While it computes
with the tiles of K and V in LDS, it loads the next ones into registers. Both products are
transposed, Sᵀ = K·Qᵀ and Outᵀ = Vᵀ·Pᵀ, so that all sums of a thread belong to one query.
"""

import math

import fly
import fly.expr as fx

QUERIES = 64  # of a workgroup: 16 for each wave
WAVES = 4
TILE = 4096  # elements of a tile of K or V: 64 keys if d is 64, 32 if d is 128
VALUES = 8  # f16 values that a thread loads at a time: 128 bits


def stays_in_place(atom):
    """Whether a thread holds the same elements of C and, as the next product's operand B, of Cᵀ."""
    c, b = atom.layout_C_tv, atom.layout_B_tv
    if fx.size(c) != fx.size(b):
        return False
    m, n, _ = atom.shape_mnk.unpack()
    threads, values = fx.size(c[0]), fx.size(c[1])
    return all(
        divmod(c(t, v), m) == divmod(b(t, v), n)[::-1]
        for t in range(threads)
        for v in range(values)
    )


def shared_matrix(rows, columns):
    """Returns a matrix in LDS, by rows, with groups of eight values permuted by the row."""
    memory = fx.SharedAllocator().allocate(fx.Array[fx.Float16, rows * columns, 16]).peek()
    groups = (columns // VALUES).bit_length() - 1
    swizzle = fx.static(fx.SwizzleType.get(min(groups, 3), 3, max(groups, 3)))
    return memory.view(
        fx.make_composed_layout(swizzle, fx.make_ordered_layout((rows, columns), (1, 0)))
    )


def transposed(matrix):
    return fx.make_view(fx.get_iter(matrix), fx.select(fx.get_layout(matrix), [1, 0]))


def across_keys(value, combine):
    """Combines the values of the lanes that have the same query: lanes 16 apart."""
    distance = 16
    while distance < fx.num_warp_threads():
        value = combine(value, fx.shuffle_xor(value, distance))
        distance *= 2
    return value


def rows_within(places, length):
    """Returns which of a thread's loads or stores are in the first `length` rows."""
    first = places[(0, None), None, None]
    inside = fx.make_fragment_like(first, fx.Boolean)
    for i in fx.range_constexpr(fx.size(inside)):
        inside[i] = fx.get_scalar(first[i][0]) < length
    return inside


def along_k(matrix, product):
    """Divides a matrix along K into what one product takes. Returns (rows, columns, parts)."""
    return fx.flat_divide(matrix, (matrix.shape[0], product.tile_size_mnk[2]))[None, None, 0, None]


def multiply(product, atom, a, b, c):
    """Computes c += a·b, with `a` in LDS, and `b` a list of fragments, one for each part of K."""
    read = fx.make_tiled_copy_A(atom, product).get_slice(fx.thread_idx.x)
    parts = along_k(a, product)
    own = product.get_slice(fx.thread_idx.x).make_fragment_A(parts[None, None, 0])
    for i, part in enumerate(b):
        fx.copy(atom, read.partition_S(parts[None, None, i]), read.retile(own))
        fx.gemm(product, c, own, part, c)


class Tiles:
    """A thread's part in moving the tiles of K or V: from memory to registers, and to LDS."""

    def __init__(self, matrix, load, store, lds):
        thread = fx.thread_idx.x
        self.length = matrix.shape[0]
        places = fx.make_view((0, 0), fx.make_identity_layout(matrix.shape))
        self.source, self.places = [
            load.get_slice(thread).partition_S(fx.flat_divide(t, lds.shape)[None, None, None, 0])
            for t in (matrix, places)
        ]
        self.target = store.get_slice(thread).partition_D(lds)
        self.loaded = fx.make_fragment_like(self.source[None, None, None, 0])
        self.stored = fx.make_fragment_like(self.target)
        self.load_atom, self.store_atom = load.copy_atom, store.copy_atom

    def load(self, tile):
        """Starts to load a tile. Rows beyond the matrix become 0."""
        inside = rows_within(self.places[None, None, None, tile], self.length)
        self.loaded.fill(0)
        fx.copy(self.load_atom, self.source[None, None, None, tile], self.loaded, pred=inside)

    def store(self):
        """Stores the tile that was loaded."""
        fx.copy(self.store_atom, self.loaded, self.target)

    def store_transposed(self):
        """Stores the tile that was loaded; values of one column are adjacent."""
        rows = fx.size(self.loaded) // VALUES
        for i in fx.range_constexpr(rows):
            for j in fx.range_constexpr(VALUES):
                self.stored[j * rows + i] = self.loaded[i * VALUES + j]
        fx.copy(self.store_atom, self.stored, self.target)


@fly.kernel
def flash_attention_kernel(
    Q: fx.Tensor,
    K: fx.Tensor,
    V: fx.Tensor,
    Out: fx.Tensor,
    scores_product: fx.TiledMma,
    output_product: fx.TiledMma,
    by_row: fx.TiledCopy,
    by_column: fx.TiledCopy,
    d: fx.Constexpr[int],
):
    thread = fx.thread_idx.x
    tile, head, batch = fx.block_idx.x, fx.block_idx.y, fx.block_idx.z
    length = Q.shape[2]
    keys = TILE // d
    kv_head = head // (Q.shape[1] // K.shape[1])
    q, k, v, o = [
        fx.make_view(fx.get_iter(t[batch, h, None, None]), fx.make_layout((length, d), (d, 1)))
        for t, h in ((Q, head), (K, kv_head), (V, kv_head), (Out, head))
    ]
    places = fx.make_view((0, 0), fx.make_identity_layout((length, d)))
    tile_q, tile_o, place_q = [
        fx.flat_divide(t, (QUERIES, d))[None, None, tile, 0] for t in (q, o, places)
    ]

    wide = by_row.copy_atom
    narrow = fx.make_copy_atom(fx.UniversalCopy64b(), fx.Float16)
    single = fx.make_copy_atom(fx.UniversalCopy16b(), fx.Float16)
    lds_k = shared_matrix(keys, d)
    lds_v = shared_matrix(d, keys)  # transposed
    tiles_k = Tiles(k, by_row, by_row, lds_k)
    tiles_v = Tiles(v, by_row, by_column, transposed(lds_v))

    # Q stays in registers.
    read_q = fx.make_tiled_copy_B(wide, scores_product).get_slice(thread)
    parts_q, parts_place = along_k(tile_q, scores_product), along_k(place_q, scores_product)
    own_q = []
    for i in fx.range_constexpr(fx.size(parts_q.shape[2])):
        part = parts_q[None, None, i]
        own = scores_product.get_slice(thread).make_fragment_B(part)
        own.fill(0)
        inside = rows_within(read_q.partition_S(parts_place[None, None, i]), length)
        fx.copy(wide, read_q.partition_S(part), read_q.retile(own), pred=inside)
        own_q.append(own)

    # The scores, and where they are in a tile of Sᵀ; the sums of Outᵀ.
    place_s = fx.make_view((0, 0), fx.make_identity_layout((keys, QUERIES)))
    place_s = scores_product.get_slice(thread).partition_C(place_s)
    s = fx.make_fragment_like(place_s, fx.Float32)
    in_output = output_product.get_slice(thread)
    own_o = in_output.make_fragment_C(transposed(tile_o))

    # The weights, in f16: as the product before gives them, and as the next one takes them.
    p = fx.make_fragment_like(s, fx.Float16)
    lds_p = shared_matrix(QUERIES, keys)
    parts_p = along_k(lds_p, output_product)
    own_p = [
        in_output.make_fragment_B(parts_p[None, None, 0]) for _ in range(fx.size(parts_p.shape[2]))
    ]
    write_p = fx.make_tiled_copy_C(single, output_product).get_slice(thread)
    read_p = fx.make_tiled_copy_B(wide, output_product).get_slice(thread)

    scale = math.log2(math.e) / math.sqrt(d)
    largest, total = fx.Float32(float("-inf")), fx.Float32(0)
    own_o.fill(0.0)
    tiles_k.load(0)
    tiles_v.load(0)
    for step in range(fx.ceildiv(fx.min(length, (tile + 1) * QUERIES), keys)):
        fx.barrier()  # all have read the tiles before
        tiles_k.store()
        tiles_v.store_transposed()
        fx.barrier()
        tiles_k.load(step + 1)
        tiles_v.load(step + 1)

        s.fill(0.0)
        multiply(scores_product, wide, lds_k, own_q, s)
        first_key, first_query = step * keys, tile * QUERIES
        if first_key + keys > first_query:
            for i in fx.range_constexpr(fx.size(s)):
                key, query = place_s[i].unpack()
                if first_key + key > first_query + query:
                    s[i] = float("-inf")

        before = largest
        largest = fx.maximum(before, across_keys(s.load().reduce("max"), fx.maximum))
        weights = fx.exp2((s.load() - largest) * scale)
        shrink = fx.exp2((before - largest) * scale)
        total = total * shrink + weights.reduce("add")
        own_o.store(own_o.load() * shrink)

        p.store(weights.to(fx.Float16))
        if stays_in_place(output_product.mma_atom):
            for i, part in enumerate(own_p):
                part.store(p[None, i, None].load())
        else:
            fx.copy(single, write_p.retile(p), write_p.partition_D(transposed(lds_p)))
            fx.barrier()
            for i, part in enumerate(own_p):
                fx.copy(wide, read_p.partition_S(parts_p[None, None, i]), read_p.retile(part))
        multiply(output_product, narrow, lds_v, own_p, own_o)

    total = across_keys(total, lambda a, b: a + b)
    halves = fx.make_fragment_like(own_o, fx.Float16)
    halves.store((own_o.load() / total).to(fx.Float16))
    write_o = fx.make_tiled_copy_C(single, output_product).get_slice(thread)
    inside = rows_within(write_o.partition_D(transposed(place_q)), length)
    fx.copy(single, write_o.retile(halves), write_o.partition_D(transposed(tile_o)), pred=inside)


def attention(Q, K, V, instruction, wave, d):
    """Returns Out. `wave` is the number of a wave's lanes."""
    assert Q.shape[3] == d, f"rows of {Q.shape[3]} elements, not {d}"
    for name, tensor in (("Q", Q), ("K", K), ("V", V)):
        assert tensor.stride[2] == d, f"the rows of a head of {name} must be adjacent"
        assert tensor.stride[3] == 1, f"the elements of a row of {name} must be adjacent"
        for mode in (0, 1):  # threads load eight values at a time
            assert tensor.stride[mode] % VALUES == 0, f"heads of {name} must be aligned to 16 bytes"
    assert Q.shape[1] % K.shape[1] == 0, f"{Q.shape[1]} heads of Q, {K.shape[1]} of K"
    batches, heads, length = Q.shape[0], Q.shape[1], Q.shape[2]
    atom = fx.make_mma_atom(instruction)
    waves = fx.make_layout((1, WAVES, 1), (0, 1, 0))
    output_product = scores_product = fx.make_tiled_mma(atom, waves)
    if fx.size(atom.layout_A_tv[1]) < VALUES:
        # Two consecutive products use the eight values of d that a thread reads at a time.
        along_d = fx.make_tile(None, None, fx.make_layout((4, 4, 2), (1, 8, 4)))
        scores_product = fx.make_tiled_mma(atom, waves, along_d)
    # A thread moves a few adjacent rows, eight columns of each.
    threads, along_d = WAVES * wave, d // VALUES
    rows = TILE // VALUES // threads
    places = fx.make_ordered_layout((threads // along_d, along_d), (1, 0))
    by_row, by_column = [
        fx.make_tiled_copy_tv(
            fx.make_copy_atom(fx.UniversalCopy(16 * values), fx.Float16),
            places,
            fx.make_ordered_layout((rows, VALUES), order),
        )
        for values, order in ((VALUES, (1, 0)), (rows, (0, 1)))
    ]
    Out = fx.empty_like(Q)
    grid = (fx.ceildiv(length, QUERIES), heads, batches)
    flash_attention_kernel(
        Q, K, V, Out, scores_product, output_product, by_row, by_column, d
    ).launch(grid=grid, block=threads)
    return Out


@fly.jit
def flash_attention_mfma(
    Q: fx.Tensor[fx.Float16, "batches", "heads", "length", "d", fx.aligned(16)],
    K: fx.Tensor[fx.Float16, "batches", "kv_heads", "length", "d", fx.aligned(16)],
    V: fx.Tensor[fx.Float16, "batches", "kv_heads", "length", "d", fx.aligned(16)],
    d: fx.Constexpr[int] = 64,
):
    Out = attention(Q, K, V, fx.rocdl.MFMA(16, 16, 16, fx.Float16), 64, d)
    return Out


@fly.jit
def flash_attention_wmma(
    Q: fx.Tensor[fx.Float16, "batches", "heads", "length", "d", fx.aligned(16)],
    K: fx.Tensor[fx.Float16, "batches", "kv_heads", "length", "d", fx.aligned(16)],
    V: fx.Tensor[fx.Float16, "batches", "kv_heads", "length", "d", fx.aligned(16)],
    d: fx.Constexpr[int] = 64,
):
    Out = attention(Q, K, V, fx.rocdl.WMMA(16, 16, 16, fx.Float16), 32, d)
    return Out


def main():
    import numpy as np

    random = np.random.default_rng(34)
    q = random.standard_normal((1, 4, 150, 64)).astype(np.float16)
    k, v = random.standard_normal((2, 1, 2, 150, 64)).astype(np.float16)
    o = flash_attention_mfma(q, k, v)

    q, k, v = [a.astype(np.float64) for a in (q, k.repeat(2, 1), v.repeat(2, 1))]
    scores = q @ k.swapaxes(2, 3) / 8
    scores[..., np.triu(np.ones((150, 150), bool), 1)] = -np.inf
    weights = np.exp(scores - scores.max(3, keepdims=True))
    exact = weights / weights.sum(3, keepdims=True) @ v
    np.testing.assert_allclose(o, exact, rtol=2e-3, atol=2e-3)
    print("flash_attention: 4 heads of 150x64, within f16's rounding of NumPy's float64")


if __name__ == "__main__":
    main()
