"""Causal attention on matrix cores: O = softmax(Q·Kᵀ / √d, only keys up to the query)·V.

Q and O are batch × heads × length × d of f16, K and V have the same length and possibly fewer heads
(grouped queries: heads is a multiple of theirs). d is 64 or 128, the length is any. Sums are f32.

A workgroup of four waves takes 64 queries of a head, and goes through the keys up to the last of
them in tiles of 64 with an online softmax (Dao, "FlashAttention-2", arXiv:2307.08691). While it
computes with a tile of K and V in LDS, it loads the next one into registers. Both products are
transposed, Sᵀ = K·Qᵀ and Oᵀ = Vᵀ·Pᵀ, so that all numbers that a thread holds belong to one query.
"""

import math

import fly
import fly.expr as fx

QUERIES = KEYS = 64  # of a tile; each of the four waves has 16 queries
WAVES = 4
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


def swizzled(memory, rows, columns):
    """Returns a matrix in LDS by rows, with groups of eight values permuted by the row."""
    shift = columns.bit_length() - 1 - 3
    return memory.view(
        fx.make_composed_layout(
            fx.static(fx.SwizzleType.get(3, 3, shift)),
            fx.make_ordered_layout((rows, columns), (1, 0)),
        )
    )


def shared_halves(count):
    return fx.SharedAllocator().allocate(fx.Array[fx.Float16, count, 16]).peek()


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


class Tiles:
    """A thread's part in moving the tiles of K or V: from memory to registers, and to LDS."""

    def __init__(self, matrix, load, store, lds):
        thread = fx.thread_idx.x
        self.length, columns = matrix.shape.unpack()
        places = fx.make_view((0, 0), fx.make_identity_layout(matrix.shape))
        self.source, self.places = [
            load.get_slice(thread).partition_S(
                fx.flat_divide(t, (KEYS, columns))[None, None, None, 0]
            )
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
        """Stores the tile that was loaded, in an order with the keys of a thread first."""
        keys = fx.size(self.loaded) // VALUES
        for i in fx.range_constexpr(keys):
            for j in fx.range_constexpr(VALUES):
                self.stored[j * keys + i] = self.loaded[i * VALUES + j]
        fx.copy(self.store_atom, self.stored, self.target)


@fly.kernel
def flash_attention_kernel(
    Q: fx.Tensor,
    K: fx.Tensor,
    V: fx.Tensor,
    O: fx.Tensor,
    scores_product: fx.TiledMma,
    output_product: fx.TiledMma,
    by_row: fx.TiledCopy,
    by_column: fx.TiledCopy,
    d: fx.Constexpr[int],
):
    thread = fx.thread_idx.x
    tile, head, batch = fx.block_idx.x, fx.block_idx.y, fx.block_idx.z
    length = Q.shape[2]
    kv_head = head // (Q.shape[1] // K.shape[1])
    rows, columns = fx.make_layout((length, d), (d, 1)), fx.make_layout((d, length), (1, d))
    q, o = [fx.get_iter(t[batch, head, None, None]) for t in (Q, O)]
    k, v = [fx.get_iter(t[batch, kv_head, None, None]) for t in (K, V)]

    keys, values = fx.make_view(k, rows), fx.make_view(v, rows)
    queries, output = fx.make_view(q, rows), fx.make_view(o, columns)

    wide = by_row.copy_atom
    single = fx.make_copy_atom(fx.UniversalCopy16b(), fx.Float16)
    lds_k = swizzled(shared_halves(KEYS * d), KEYS, d)
    lds_v = swizzled(shared_halves(KEYS * d), d, KEYS)  # a row for each column of V
    k_tiles = Tiles(keys, by_row, by_row, lds_k)
    v_tiles = Tiles(values, by_row, by_column, transposed(lds_v))

    # What this thread holds of Kᵀ, Q, S, Vᵀ, P and O.
    in_scores, in_output = scores_product.get_slice(thread), output_product.get_slice(thread)
    read_k = fx.make_tiled_copy_A(wide, scores_product).get_slice(thread)
    read_q = fx.make_tiled_copy_B(wide, scores_product).get_slice(thread)
    narrow = fx.make_copy_atom(fx.UniversalCopy64b(), fx.Float16)
    read_v = fx.make_tiled_copy_A(narrow, output_product).get_slice(thread)
    own_k = in_scores.make_fragment_A(lds_k)
    own_v = in_output.make_fragment_A(lds_v)

    tile_q = fx.flat_divide(queries, (QUERIES, d))[None, None, tile, 0]
    own_q = in_scores.make_fragment_B(tile_q)
    places = fx.make_view((0, 0), fx.make_identity_layout((length, d)))
    place_q = read_q.partition_S(fx.flat_divide(places, (QUERIES, d))[None, None, tile, 0])
    own_q.fill(0)
    fx.copy(
        wide, read_q.partition_S(tile_q), read_q.retile(own_q), pred=rows_within(place_q, length)
    )

    tile_s = fx.make_view((0, 0), fx.make_identity_layout((KEYS, QUERIES)))
    place_s = in_scores.partition_C(tile_s)
    s = fx.make_fragment_like(place_s, fx.Float32)
    tile_o = fx.flat_divide(output, (d, QUERIES))[None, None, 0, tile]
    own_o = in_output.make_fragment_C(tile_o)
    tile_p = fx.make_view((0, 0), fx.make_identity_layout((QUERIES, KEYS)))
    own_p = fx.make_fragment_like(in_output.partition_B(tile_p), fx.Float16)
    halves_p = fx.make_fragment_like(s, fx.Float16)
    if not stays_in_place(output_product.mma_atom):
        lds_p = swizzled(shared_halves(QUERIES * KEYS), QUERIES, KEYS)
        write_p = fx.make_tiled_copy_C(single, output_product).get_slice(thread)
        read_p = fx.make_tiled_copy_B(wide, output_product).get_slice(thread)

    scale = math.log2(math.e) / math.sqrt(d)
    largest, total = fx.Float32(float("-inf")), fx.Float32(0)
    own_o.fill(0.0)

    k_tiles.load(0)
    v_tiles.load(0)
    for step in range(fx.ceildiv(fx.min(length, (tile + 1) * QUERIES), KEYS)):
        fx.barrier()  # all have read the tile before
        k_tiles.store()
        v_tiles.store_transposed()
        fx.barrier()
        k_tiles.load(step + 1)
        v_tiles.load(step + 1)

        s.fill(0.0)
        fx.copy(wide, read_k.partition_S(lds_k), read_k.retile(own_k))
        fx.gemm(scores_product, s, own_k, own_q, s)
        if (step + 1) * KEYS > tile * QUERIES:
            for i in fx.range_constexpr(fx.size(s)):
                key, query = place_s[i].unpack()
                if step * KEYS + key > tile * QUERIES + query:
                    s[i] = float("-inf")

        before = largest
        largest = fx.maximum(largest, across_keys(s.load().reduce("max"), fx.maximum))
        p = fx.exp2((s.load() - largest) * scale)
        shrink = fx.exp2((before - largest) * scale)
        total = total * shrink + p.reduce("add")
        own_o.store(own_o.load() * shrink)

        halves_p.store(p.to(fx.Float16))
        if stays_in_place(output_product.mma_atom):
            own_p.store(halves_p.load())
        else:
            fx.copy(single, write_p.retile(halves_p), write_p.partition_D(transposed(lds_p)))
            fx.barrier()
            fx.copy(wide, read_p.partition_S(lds_p), read_p.retile(own_p))
        fx.copy(narrow, read_v.partition_S(lds_v), read_v.retile(own_v))
        fx.gemm(output_product, own_o, own_v, own_p, own_o)

    total = across_keys(total, lambda a, b: a + b)
    write_o = fx.make_tiled_copy_C(single, output_product).get_slice(thread)
    halves = fx.make_fragment_like(own_o, fx.Float16)
    halves.store((own_o.load() / total).to(fx.Float16))
    place_o = write_o.partition_D(
        fx.flat_divide(transposed(places), (d, QUERIES))[None, None, 0, tile]
    )
    fx.copy(
        single,
        write_o.retile(halves),
        write_o.partition_D(tile_o),
        pred=rows_within(place_o, length),
    )


def attention(Q, K, V, instruction, wave, d):
    """Returns O. `wave` is the number of a wave's lanes."""
    assert Q.shape[3] == d, f"rows of {Q.shape[3]} elements, not {d}"
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
    rows = KEYS * along_d // threads
    places = fx.make_ordered_layout((threads // along_d, along_d), (1, 0))
    by_row, by_column = [
        fx.make_tiled_copy_tv(
            fx.make_copy_atom(fx.UniversalCopy(16 * values), fx.Float16),
            places,
            fx.make_ordered_layout((rows, VALUES), order),
        )
        for values, order in ((VALUES, (1, 0)), (rows, (0, 1)))
    ]
    O = fx.empty_like(Q)
    grid = (fx.ceildiv(length, QUERIES), heads, batches)
    flash_attention_kernel(Q, K, V, O, scores_product, output_product, by_row, by_column, d).launch(
        grid=grid, block=threads
    )
    return O


@fly.jit
def flash_attention_mfma(
    Q: fx.Tensor[fx.Float16, "batches", "heads", "length", "d"],
    K: fx.Tensor[fx.Float16, "batches", "kv_heads", "length", "d"],
    V: fx.Tensor[fx.Float16, "batches", "kv_heads", "length", "d"],
    d: fx.Constexpr[int] = 64,
):
    O = attention(Q, K, V, fx.rocdl.MFMA(16, 16, 16, fx.Float16), 64, d)
    return O


@fly.jit
def flash_attention_wmma(
    Q: fx.Tensor[fx.Float16, "batches", "heads", "length", "d"],
    K: fx.Tensor[fx.Float16, "batches", "kv_heads", "length", "d"],
    V: fx.Tensor[fx.Float16, "batches", "kv_heads", "length", "d"],
    d: fx.Constexpr[int] = 64,
):
    O = attention(Q, K, V, fx.rocdl.WMMA(16, 16, 16, fx.Float16), 32, d)
    return O


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
