"""The kernels of decoding by `mma.sync` (sm_80 and later), of up to 16 query heads that share keys.

Each warp of a block takes every few keys of a piece of a sequence, and keeps an online softmax over
them. Keys and values go from memory to the registers that multiply them. Scores are computed as
heads × keys, and sums transposed, as d × heads: what a lane has of scores is then what it has as
weights. Lane 4 · r + c has, of 16 keys:

    scores += queries · keysᵀ    queries r and r + 8, keys r and r + 8: each fourth vector;
                                 scores of these heads with keys 2c, 2c + 1, 2c + 8, 2c + 9
    sums   += valuesᵀ · weights  weights of these heads, and values of these keys: each eighth
                                 vector; sums of heads 2c, 2c + 1, 2c + 8 and 2c + 9

Which elements of d are a product's is arbitrary, if they are the same for both operands, or if sums
are stored to where they belong. In the end the warps of a block add what they have, in shared
memory, and `combine_kernel` combines pieces. How a sequence is divided depends on its length alone.
"""

from __future__ import annotations

from typing import Any

from fly_backend.choice import choose, row_of
from fly_dialect.atoms.nvidia.mma import AMPERE

import fly
import fly.expr as fx
from fly.kernels import dependent
from fly.kernels.approximations import LOG2_E, exp2
from fly.kernels.attention.decode import THREADS, Cache, Lengths, Rows, Tables, combine_kernel
from fly.kernels.attention.forward import LOWEST, TINY, sum_of
from fly.kernels.attention.matrix_decode import elements, load_run
from fly.kernels.attention.problem import shared_head
from fly.kernels.attention.vectors import WIDTH, load_stored, load_vector, store_vector

KEYS = 1024  # of a piece
WARPS = 4  # of a block
UNIT = 16  # keys of a product with values
EDGE = 8  # heads of a product with values, and keys of one with queries
MOST_SUMS = 2048  # of heads × d: a lane has a 32nd of them in registers
LOADED = 128 * 32  # elements of keys, and of values, that a warp loads at a time
AT_ONCE = 8  # pieces that a thread loads before it combines them


def most_heads(d: int) -> int:
    """The query heads of d elements that a warp takes; 0 if the target has no `mma.sync`."""
    chip = row_of(choose())
    if chip.nvidia is None or AMPERE not in chip.nvidia.traits:
        return 0
    return min(2 * EDGE, MOST_SUMS // d)


class Product:
    """The multiplication of a warp: 16 × 16 times 16 × 8."""

    def __init__(self, dtype: Any):
        self.dtype = dtype
        atom = fx.make_mma_atom(fx.nvvm.MMA(UNIT, EDGE, UNIT, dtype, fx.Float32))
        self.product = fx.make_tiled_mma(atom, fx.make_layout((1, 1, 1), (0, 0, 0)))
        self.own = self.product.get_slice(fx.lane_id())

    def zeros(self) -> Any:
        """Sums of a lane: of rows r and r + 8, each of columns 2c and 2c + 1."""
        tile = fx.make_view((0, 0), fx.make_identity_layout((UNIT, EDGE)))
        sums = fx.make_fragment_like(self.own.partition_C(tile), fx.Float32)
        sums.fill(0.0)
        return sums

    def a(self, upper: list[Any], lower: list[Any]) -> Any:
        """The first operand, of four values of row r and four of row r + 8."""
        values = [*upper[:2], *lower[:2], *upper[2:], *lower[2:]]
        tile = fx.make_view((0, 0), fx.make_identity_layout((UNIT, UNIT)))
        return self._fragment(self.own.partition_A(tile), values)

    def b(self, values: list[Any]) -> Any:
        """The second operand, of four values of column r."""
        tile = fx.make_view((0, 0), fx.make_identity_layout((EDGE, UNIT)))
        return self._fragment(self.own.partition_B(tile), values)

    def _fragment(self, part: Any, values: list[Any]) -> Any:
        fragment = fx.make_fragment_like(part, self.dtype)
        for i, value in enumerate(values):
            fragment[i] = value
        return fragment

    def add(self, sums: Any, a: Any, b: Any) -> None:
        """sums += a · b"""
        fx.gemm(self.product, sums, a, b, sums)


class Stored:
    """The keys, or values, of a head in a cache."""

    def __init__(self, cache: Any, head: Any, d: int):
        self.cache, self.d = cache, d
        self.first = fx.get_iter(cache) + fx.Int64(head) * cache.stride[2]

    def place(self, page: Any, offset: Any) -> Any:
        """Where a row of a page begins, counted in elements."""
        return fx.Int64(page) * self.cache.stride[0] + fx.Int64(offset) * self.cache.stride[1]

    def row(self, place: Any) -> Any:
        """A row: a vector."""
        return fx.make_view(self.first + place, fx.make_layout(self.d, 1))


def key_part(row: Any, column: Any, d: int) -> list[Any]:
    """A lane's elements of a key or a query: each fourth vector of eight."""
    parts = range(0, d // WIDTH, 4)
    return elements([load_stored(row, (part + column) * WIDTH) for part in parts])


def value_part(row: Any, lane_row: Any, d: int) -> list[Any]:
    """A lane's elements of a value: each eighth vector."""
    run = value_run(d)
    parts = range(0, d // run, EDGE)
    return [x for part in parts for x in load_run(row, (part + lane_row) * run, run)]


def value_run(d: int) -> int:
    """The adjacent elements of a value that a lane has."""
    return min(WIDTH, d // EDGE)


@fly.kernel
def warp_piece_kernel(
    Q: fx.Tensor,
    K: fx.Tensor,
    V: fx.Tensor,
    tables: fx.Tensor,
    lengths: fx.Tensor,
    Bounds: fx.Tensor,
    Totals: fx.Tensor,
    Sums: fx.Tensor,
    scale: fx.Float32,
    d: fx.Constexpr[int],
    heads: fx.Constexpr[int],
    keys: fx.Constexpr[int],
):
    """`heads` query heads of a sequence, and a piece of so many of its keys."""
    dependent.let_next_begin()
    unit, halves = Product(Q.dtype), 1 + (heads > EDGE)
    step = max(UNIT, min(2 * UNIT, LOADED // d))
    piece, sequence = fx.block_idx.y, fx.block_idx.z
    start = piece * keys
    end = fx.min(lengths[sequence], start + keys)
    if start >= end:
        return
    first_head = fx.block_idx.x * heads
    kv_head = shared_head(first_head, Q.shape[1], K.shape[2])
    lane, warp = fx.lane_id(), fx.thread_idx.x // 32
    row, column = lane // 4, lane % 4
    own_keys, own_values = Stored(K, kv_head, d), Stored(V, kv_head, d)
    page = fx.Uint32(K.shape[1])

    def places(first: Any) -> tuple[Any, Any]:
        """Where the key and the value are that the lane looks up for others."""
        place = fx.Uint32(fx.min(first + lane % step, end - 1))
        number, offset = tables[sequence, place // page], place % page
        return own_keys.place(number, offset), own_values.place(number, offset)

    zero = Q.dtype(0)
    queries = [[zero] * (d // 4)] * 2
    for half in range(halves):
        head = first_head + fx.min(half * EDGE + row, heads - 1)
        queries[half] = key_part(Q[sequence, head, None], column, d)
    query = [unit.a(*[one[i : i + 4] for one in queries]) for i in range(0, d // 4, 4)]
    sums = [[unit.zeros() for _ in range(d // UNIT)] for _ in range(halves)]
    bounds = [fx.Float32(LOWEST) for _ in range(halves)]
    totals = [fx.Float32(0) for _ in range(halves)]
    factor = fx.max(scale * LOG2_E, TINY)
    begin = start + warp * step
    next_key, next_value = places(begin)
    for first in range(begin, end, WARPS * step):
        of_key, of_value = next_key, next_value
        loaded = [
            key_part(own_keys.row(fx.shuffle_idx(of_key, tile + row)), column, d)
            for tile in range(0, step, EDGE)
        ]
        values = [
            [
                value_part(own_values.row(fx.shuffle_idx(of_value, block + own)), row, d)
                for own in (2 * column, 2 * column + 1, 2 * column + 8, 2 * column + 9)
            ]
            for block in range(0, step, UNIT)
        ]
        next_key, next_value = places(first + WARPS * step)
        scores = []
        for key in loaded:
            made = unit.zeros()
            for i, a in enumerate(query):
                unit.add(made, a, unit.b(key[4 * i : 4 * i + 4]))
            scores.append(made)
        for half in range(halves):
            s = fx.make_rmem_tensor(step // 4, fx.Float32)
            for i in range(step // 4):
                exists = first + i // 2 * EDGE + 2 * column + i % 2 < end
                s[i] = fx.where(exists, scores[i // 2][2 * half + i % 2], float("-inf"))
            most = over_quad(fx.maxnumf(*s.load()), fx.maxnumf) * factor
            bound = fx.maxnumf(bounds[half], most)
            shrink = exp2(bounds[half] - bound)
            bounds[half] = bound
            weights = exp2(fx.fma(s.load(), factor, -bound))
            totals[half] = totals[half] * shrink + sum_of(weights)
            shrinks = [fx.shuffle_idx(shrink, 8 * column + 4 * i) for i in range(2)]
            weights = elements([weights.to(Q.dtype)])
            for i, one in enumerate(sums[half]):
                for j in range(4):
                    one[j] = one[j] * shrinks[j % 2]
                for block, value in enumerate(values):
                    own = [[v[2 * i + j] for v in value] for j in range(2)]
                    unit.add(one, unit.a(*own), unit.b(weights[4 * block : 4 * block + 4]))
    totals = [over_quad(one, lambda a, b: a + b) for one in totals]
    shared = Shared(warp, row, column, d, heads)
    shared.put(bounds, totals, sums)
    shared.store(sequence, first_head, piece, Bounds, Totals, Sums)


def over_quad(value: Any, combine: Any) -> Any:
    """Combines the values of the lanes that have the same head."""
    for distance in (1, 2):
        value = combine(value, fx.shuffle_xor(value, distance))
    return value


class Shared:
    """What the warps of a block have of a piece, in shared memory."""

    def __init__(self, warp: Any, row: Any, column: Any, d: int, heads: int):
        self.warp, self.row, self.column, self.d, self.heads = warp, row, column, d, heads
        self.bounds, self.totals = [
            fx.shared_array(fx.Float32, (WARPS, 2 * EDGE)) for _ in range(2)
        ]
        # Rows of so many elements that lanes write to different banks.
        self.sums = fx.shared_array(fx.Float32, (WARPS, heads, d + 2 * WIDTH))

    def put(self, bounds: list[Any], totals: list[Any], sums: list[list[Any]]) -> None:
        """Writes a warp's; its sums to the bound of all warps."""
        for half, (bound, total) in enumerate(zip(bounds, totals, strict=True)):
            if self.column == 0:
                self.bounds[self.warp, half * EDGE + self.row] = bound
                self.totals[self.warp, half * EDGE + self.row] = total
        fx.barrier()
        run = value_run(self.d)
        for half, own in enumerate(sums):
            for j in range(2):
                head = half * EDGE + 2 * self.column + j
                factor = exp2(self.bounds[self.warp, head] - self.bound(head))
                made = [x * factor for one in own for x in (one[j], one[2 + j])]
                if head < self.heads:
                    to = self.sums[self.warp, head, None]
                    for i in range(0, self.d // EDGE, run):
                        store_run(to, i * EDGE + self.row * run, made[i : i + run])
        fx.barrier()

    def bound(self, head: Any) -> Any:
        """The bound of all warps."""
        return fx.maxnumf(*[self.bounds[warp, head] for warp in range(WARPS)])

    def store(self, sequence: Any, first: Any, piece: Any, Bounds: Any, Totals: Any, Sums: Any):
        """Adds what all warps have."""
        if fx.thread_idx.x < self.heads:
            head = fx.thread_idx.x
            bound, total = self.bound(head), fx.Float32(0)
            for warp in range(WARPS):
                total += self.totals[warp, head] * exp2(self.bounds[warp, head] - bound)
            Bounds[sequence, first + head, piece] = bound
            Totals[sequence, first + head, piece] = total
        lanes = self.d // WIDTH
        for place in range(fx.thread_idx.x, self.heads * lanes, 32 * WARPS):
            head, column = place // lanes, place % lanes * WIDTH
            parts = [load_vector(self.sums[warp, head, None], column) for warp in range(WARPS)]
            total = parts[0]
            for part in parts[1:]:
                total = total + part
            store_vector(Sums[sequence, first + head, piece, None], column, total)


def store_run(row: Any, first: Any, values: list[Any]) -> None:
    """Stores adjacent numbers of f32: a multiple of four."""
    held = fx.make_rmem_tensor((4, len(values) // 4), fx.Float32)
    for i, value in enumerate(values):
        held[i % 4, i // 4] = value
    to = fx.make_view(fx.get_iter(row) + first, fx.make_layout((4, len(values) // 4), (1, 4)))
    fx.copy(fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32), held, to)


@fly.jit
def warp_decode(
    Q: Rows,
    K: Cache,
    V: Cache,
    tables: Tables,
    lengths: Lengths,
    scale: fx.Float32,
    d: fx.Constexpr[int],
    heads: fx.Constexpr[int],
):
    """One query of each sequence. `heads` is the number of query heads that a warp takes."""
    sequences, all_heads, keys = Q.shape[0], Q.shape[1], KEYS
    pieces = fx.ceildiv(tables.shape[1] * K.shape[1], keys)
    Bounds = fx.empty((sequences, all_heads, pieces), fx.Float32)
    Totals = fx.empty((sequences, all_heads, pieces), fx.Float32)
    Sums = fx.empty((sequences, all_heads, pieces, d), fx.Float32)
    Out = fx.empty(Q.shape, Q.dtype)
    # Blocks that run together read heads that are adjacent in memory.
    warp_piece_kernel(Q, K, V, tables, lengths, Bounds, Totals, Sums, scale, d, heads, keys).launch(
        grid=(all_heads // heads, pieces, sequences), block=32 * WARPS
    )
    combine_kernel(Bounds, Totals, Sums, lengths, Out, d, keys, AT_ONCE).launch(
        grid=(fx.ceildiv(all_heads, THREADS * WIDTH // d), sequences), block=THREADS
    )
    return Out
