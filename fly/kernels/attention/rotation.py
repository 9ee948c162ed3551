"""The kernels of rotary position embedding (Su et al., "RoFormer", arXiv:2104.09864).

The first elements of a row are pairs, each rotated by its own angle: elements i and i + pairs, or,
interleaved, 2i and 2i + 1. What follows the pairs stays as it is. A thread takes 16 elements of a
row: eight pairs, or 16 adjacent elements behind them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import fly
import fly.expr as fx
from fly.kernels.attention.vectors import WIDTH, load_stored, store_vector
from fly.kernels.mixed_precision import in_order, one_by_one, rounds_elements
from fly.kernels.shapes import for_model

ITEM = 2 * WIDTH  # elements of a thread
THREADS, LANES = 256, 64
EVEN, ODD = list(range(0, ITEM, 2)), list(range(1, ITEM, 2))
ALTERNATING = [place for i in range(WIDTH) for place in (i, i + WIDTH)]

Rows = fx.Tensor[fx.Float, "rows", "positions", None]
Angles = fx.Tensor[fx.Float, "positions", "pairs"]
Tokens = fx.Tensor[fx.Float, "tokens", fx.sym_int32("heads"), "d"]
KeyTokens = fx.Tensor[fx.Float, "tokens", fx.sym_int32("kv_heads"), "d"]
Cache = fx.Tensor[fx.Float, "pages", "page", fx.sym_int32("kv_heads"), "d"]
Places = fx.Tensor[fx.Integer, "tokens"]


class Rotation(NamedTuple):
    """How rows of d elements are rotated: `pairs` of them, interleaved or not."""

    d: int
    pairs: int
    interleaved: bool

    @property
    def items(self) -> int:
        """The threads of a row."""
        return self.d // ITEM

    def paired(self, item: Any) -> Any:
        """Whether the thread's elements are pairs."""
        return 2 * self.pairs == self.d or item * WIDTH < self.pairs

    def places(self, item: Any) -> tuple[Any, Any]:
        """Where the thread's two vectors are in a row."""
        apart = not self.interleaved and self.paired(item)
        first = fx.where(apart, item * WIDTH, item * ITEM)
        return first, first + fx.where(apart, self.pairs, WIDTH)

    def apply(self, item: Any, held: Item, cos: Any, sin: Any, in_turn: bool = False) -> Item:
        """The thread's elements, rotated by the angles of a row of cosines and one of sines."""
        if not self.paired(item):
            return held
        angles = [load_stored(one, item * WIDTH) for one in (cos, sin)]
        return self.turned(held, *angles, in_turn)

    def turned(self, held: Item, c: Any, s: Any, in_turn: bool = False) -> Item:
        """Pairs, rotated by the angles of these cosines and sines. in_turn: on AMD, the second
        numbers of pairs are computed behind the first ones, which takes fewer registers."""
        x, y, dtype = held.a, held.b, held.a.dtype
        if self.interleaved:
            x, y = x.shuffle(y, EVEN), x.shuffle(y, ODD)
        if rounds_elements(dtype, fx.Float32, [dtype]):
            first = one_by_one(first_rotated, x, y, c, s)
            if in_turn:
                in_order()
            x, y = first, one_by_one(second_rotated, x, y, c, s)
        else:
            x, y, c, s = [one.to(fx.Float32) for one in (x, y, c, s)]
            x, y = [(one - two).to(dtype) for one, two in ((x * c, y * s), (x * s, -y * c))]
        if self.interleaved:
            x, y = x.shuffle(y, ALTERNATING[:WIDTH]), x.shuffle(y, ALTERNATING[WIDTH:])
        return Item(x, y)

    def threads(self, heads: int) -> int:
        """The threads of a block for so many heads: whole waves, no more than it has work for."""
        return max(LANES, min(THREADS, -(-heads * self.items // LANES) * LANES))


class Item(NamedTuple):
    """A thread's elements: two vectors, of the type of the row."""

    a: Any
    b: Any

    @classmethod
    def load(cls, row: Any, places: tuple[Any, Any]) -> Item:
        """Those of a row."""
        return cls(*[load_stored(row, place) for place in places])

    def store(self, row: Any, places: tuple[Any, Any]) -> None:
        """Stores them in a row."""
        for vector, place in zip(self, places, strict=True):
            store_vector(row, place, vector)


def first_rotated(x: Any, y: Any, c: Any, s: Any) -> Any:
    """The first number of a pair, by its cosine and sine: x·c - y·s."""
    return fx.fma(x, c, -fx.fma(y, s, 0.0))


def second_rotated(x: Any, y: Any, c: Any, s: Any) -> Any:
    """The second number of a pair: x·s + y·c."""
    return fx.fma(x, s, fx.fma(y, c, 0.0))


@fly.kernel
def rotary_kernel(
    X: fx.Tensor, cos: fx.Tensor, sin: fx.Tensor, Y: fx.Tensor, rotation: fx.Constexpr[Rotation]
):
    """Rows × positions × d."""
    index = fx.block_idx.x * THREADS + fx.thread_idx.x
    position, item, row = index // rotation.items, index % rotation.items, fx.block_idx.y
    if position < X.shape[1]:
        places = rotation.places(item)
        held = Item.load(X[row, position, None], places)
        held = rotation.apply(item, held, cos[position, None], sin[position, None], in_turn=True)
        held.store(Y[row, position, None], places)


@fly.kernel
def rotary_rows_kernel(
    X: fx.Tensor,
    cos: fx.Tensor,
    sin: fx.Tensor,
    Y: fx.Tensor,
    rotation: fx.Constexpr[Rotation],
    lines: fx.Constexpr[int],
    threads: fx.Constexpr[int],
    together: fx.Constexpr[bool],
):
    """As rotary_kernel. A thread takes `lines` rows at a position, whose angles it loads once.
    together: blocks with the same positions follow each other, so that their angles stay in the
    cache; else those of adjacent memory do."""
    rows, positions = X.shape[0], X.shape[1]
    if together:
        part, group = divmod(fx.block_idx.x, fx.ceildiv(rows, lines))
    else:
        group, part = divmod(fx.block_idx.x, fx.ceildiv(positions * rotation.items, threads))
    index = part * threads + fx.thread_idx.x
    position, item = divmod(index, rotation.items)
    if position < positions:
        places = rotation.places(item)
        taken = [fx.min(group * lines + i, rows - 1) for i in fx.range_constexpr(lines)]
        held = [Item.load(X[row, position, None], places) for row in taken]
        if rotation.paired(item):
            angles = [load_stored(one[position, None], item * WIDTH) for one in (cos, sin)]
            held = [rotation.turned(one, *angles) for one in held]
        for i in fx.range_constexpr(lines):
            if i == 0 or group * lines + i < rows:
                held[i].store(Y[taken[i], position, None], places)


@fly.kernel
def rotary_cache_kernel(
    Q: fx.Tensor,
    K: fx.Tensor,
    V: fx.Tensor,
    cos: fx.Tensor,
    sin: fx.Tensor,
    positions: fx.Tensor,
    k_cache: fx.Tensor,
    v_cache: fx.Tensor,
    slots: fx.Tensor,
    rotated_q: fx.Tensor,
    rotated_k: fx.Tensor,
    rotation: fx.Constexpr[Rotation],
    threads: fx.Constexpr[int],
    wide: fx.Constexpr[bool],
):
    """A block takes heads of a token: first those of Q, then those of K and V. Threads select an
    address and go the same way, whatever they take. wide: the caches have more rows than 32 bits
    count. Numbers that are not negative are unsigned, which makes addresses cheaper."""
    index = fx.Uint32(fx.block_idx.x * threads + fx.thread_idx.x)
    head, item, token = index // rotation.items, index % rotation.items, fx.Uint32(fx.block_idx.y)
    heads, kv_heads = fx.Uint32(Q.shape[1]), fx.Uint32(K.shape[1])
    slot, position = slots[token], positions[token]
    position = position.to(fx.Uint64 if position.dtype.bits == 64 else fx.Uint32)
    places = rotation.places(item)
    is_query, is_rotated = head < heads, head < heads + kv_heads
    if head < heads + 2 * kv_heads:
        if is_query:
            source, target = heads_of(Q, token), heads_of(rotated_q, token)
        elif is_rotated:
            source, target = heads_of(K, token), heads_of(rotated_k, token)
            head -= heads
        else:
            source, target = heads_of(V, token), heads_of(rotated_k, token)
            head -= heads + kv_heads
        held = Item.load(row_of(source, head), places)
        if is_rotated:
            held = rotation.apply(item, held, cos[position, None], sin[position, None])
            held.store(row_of(target, head), places)
        if not is_query and slot >= 0:
            cache = heads_in(v_cache, slot, wide)
            if is_rotated:
                cache = heads_in(k_cache, slot, wide)
            held.store(row_of(cache, head), places)


def heads_of(tensor, *place):
    """Returns the address of a token's heads, and how far these are apart."""
    return fx.get_iter(tensor[(*place, None, None)]), distance(tensor, len(place))


def heads_in(cache, slot, wide):
    """As `heads_of`, of a slot of a cache."""
    counted = fx.Uint64 if wide else fx.Uint32
    page, (pages, rows) = cache.shape[1], cache.stride[:2]
    if isinstance(pages, int) and isinstance(rows, int) and pages == page * rows:
        # The rows of all pages are equally far apart.
        return fx.get_iter(cache) + fx.Uint64(slot.to(counted)) * rows, distance(cache, 2)
    return heads_of(cache, *divmod(slot.to(counted), counted(page)))


def distance(tensor, mode):
    """Returns how far heads are apart: as 32 bits where those of a token are known not to be
    farther apart, which makes addresses cheaper."""
    count, step = tensor.shape[mode], tensor.stride[mode]
    near = isinstance(step, int) and isinstance(count, int) and step * count < 2**31
    return fx.Uint32(step) if near else fx.Int64(step)


def row_of(heads, head):
    """Returns the row of a head."""
    start, step = heads
    return fx.make_view(start + head.to(step.dtype) * step, fx.make_layout(1, 1))


@fly.jit
def rotate(X: Rows, cos: Angles, sin: Angles, rotation: fx.Constexpr[Rotation]):
    Y = fx.empty(X.shape, X.dtype)
    grid = (fx.ceildiv(X.shape[1] * rotation.items, THREADS), X.shape[0])
    rotary_kernel(X, cos, sin, Y, rotation).launch(grid=grid, block=THREADS)
    return Y


@fly.jit
def rotate_rows(
    X: Rows,
    cos: Angles,
    sin: Angles,
    rotation: fx.Constexpr[Rotation],
    lines: fx.Constexpr[int],
    threads: fx.Constexpr[int],
    together: fx.Constexpr[bool],
):
    Y = fx.empty(X.shape, X.dtype)
    parts = fx.ceildiv(X.shape[1] * rotation.items, threads)
    rotary_rows_kernel(X, cos, sin, Y, rotation, lines, threads, together).launch(
        grid=parts * fx.ceildiv(X.shape[0], lines), block=threads
    )
    return Y


@fly.jit(specialize=for_model("heads", "kv_heads", "d", "page", "pairs"))
def rotate_and_cache(
    Q: Tokens,
    K: KeyTokens,
    V: KeyTokens,
    cos: Angles,
    sin: Angles,
    positions: Places,
    k_cache: Cache,
    v_cache: Cache,
    slots: Places,
    rotation: fx.Constexpr[Rotation],
    threads: fx.Constexpr[int],
    wide: fx.Constexpr[bool],
):
    rotated_q, rotated_k = fx.empty(Q.shape, Q.dtype), fx.empty(K.shape, K.dtype)
    items = (Q.shape[1] + 2 * K.shape[1]) * rotation.items
    arrays = (Q, K, V, cos, sin, positions, k_cache, v_cache, slots, rotated_q, rotated_k)
    rotary_cache_kernel(*arrays, rotation, threads, wide).launch(
        grid=(fx.ceildiv(items, threads), Q.shape[0]), block=threads
    )
    return rotated_q, rotated_k
