"""Rotary position embedding of tokens, whose keys and values go to caches: one kernel."""

from __future__ import annotations

import fly
import fly.expr as fx
from fly.kernels.attention.rotary_kernels import Angles
from fly.kernels.attention.rotation import Rotation
from fly.kernels.shapes import for_model

Tokens = fx.Tensor[fx.Float, "tokens", fx.sym_int32("heads"), "d"]
KeyTokens = fx.Tensor[fx.Float, "tokens", fx.sym_int32("kv_heads"), "d"]
Cache = fx.Tensor[fx.Float, "pages", "page", fx.sym_int32("kv_heads"), "d"]
Places = fx.Tensor[fx.Integer, "tokens"]


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
    address and go the same way, whatever they take; with single pairs, blocks do, so that addresses
    are in registers of a wave but for a number of 32 bits. wide: the caches have more rows than 32
    bits count. Numbers that are not negative are unsigned, which makes addresses cheaper."""
    block, thread, token = (
        fx.Uint32(one) for one in (fx.block_idx.x, fx.thread_idx.x, fx.block_idx.y)
    )
    heads, kv_heads = fx.Uint32(Q.shape[1]), fx.Uint32(K.shape[1])
    by_block = rotation.width == 1
    head, item = divmod(block * threads + thread, rotation.items)
    unit, of_query, of_key = head, heads, kv_heads  # what is of Q, K or V
    if by_block:
        unit = block
        of_query, of_key = (fx.ceildiv(one * rotation.items, threads) for one in (heads, kv_heads))
    slot, position = slots[token], positions[token]
    position = position.to(fx.Uint64 if position.dtype.bits == 64 else fx.Uint32)
    is_query, is_rotated = unit < of_query, unit < of_query + of_key
    if unit < of_query + 2 * of_key:
        if is_query:
            source, target = heads_of(Q, token), heads_of(rotated_q, token)
        elif is_rotated:
            source, target = heads_of(K, token), heads_of(rotated_k, token)
            unit -= of_query
        else:
            source, target = heads_of(V, token), heads_of(rotated_k, token)
            unit -= of_query + of_key
        head = unit
        inside = True
        if by_block:
            head, item = divmod(unit * threads + thread, rotation.items)
            inside = head < fx.where(is_query, heads, kv_heads)
        if inside:
            places = rotation.places(item)
            held = rotation.load(row_of(source, head), places)
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
    of_query, of_key = (one.shape[1] * rotation.items for one in (Q, K))
    if rotation.width == 1:
        blocks = fx.ceildiv(of_query, threads) + 2 * fx.ceildiv(of_key, threads)
    else:
        blocks = fx.ceildiv(of_query + 2 * of_key, threads)
    arrays = (Q, K, V, cos, sin, positions, k_cache, v_cache, slots, rotated_q, rotated_k)
    rotary_cache_kernel(*arrays, rotation, threads, wide).launch(
        grid=(blocks, Q.shape[0]), block=threads
    )
    return rotated_q, rotated_k
