"""Attention of one query of each sequence, over keys that are stored in pages."""

from __future__ import annotations

from typing import Any

from fly_backend.choice import choose, row_of
from fly_common.errors import UsageError

from fly.kernels.arrays import check_types, strides, type_name
from fly.kernels.attention.arguments import TYPES, for_loads, scaled_up, typed
from fly.kernels.attention.decoding.decode import MOST_HEADS, decode
from fly.kernels.attention.decoding.matrix_decode import EDGE, lanes_for
from fly.kernels.attention.decoding.warp_decode import most_heads, warp_decode
from fly.kernels.operators import like, operator

DIMENSIONS = (32, 64, 128, 256)


@operator(
    "(Tensor q, Tensor k_cache, Tensor v_cache, Tensor block_tables, Tensor context_lens, "
    "float? scale=None) -> Tensor",
    fake=like,
)
def paged_attention(
    q: Any,
    k_cache: Any,
    v_cache: Any,
    block_tables: Any,
    context_lens: Any,
    scale: float | None = None,
) -> Any:
    """softmax(scale · q·kᵀ)·v for one query of each sequence.

    q: sequences × heads × d, of f16 or bf16; d is 32, 64, 128 or 256. k_cache, v_cache: pages ×
    page size × kv_heads × d, of the same type; heads / kv_heads adjacent heads share one of them.
    block_tables: sequences × most pages, of i32: key i of sequence s is row i % page size of page
    block_tables[s, i // page size]. context_lens: the sequences' numbers of keys, of i32. Page
    numbers and lengths are not checked, as they are the device's. scale: 1/√d if None.

    Returns an array as q; 0 for sequences without keys. It has no gradient. UsageError for other
    types and shapes.
    """
    _check(q, k_cache, v_cache, block_tables, context_lens)
    d, shared = q.shape[2], q.shape[1] // k_cache.shape[2]
    q, factor = scaled_up(q, scale)
    rows = [for_loads(one) for one in (q, k_cache, v_cache)]
    places = block_tables, context_lens, factor, d
    if most := most_heads(d):
        return typed(warp_decode(*rows, *places, _divisor(shared, most)), q)
    lanes = lanes_for(row_of(choose()).matrix, d) if all(map(_pages_follow, rows[1:])) else 0
    heads = _divisor(shared, EDGE if lanes else MOST_HEADS)
    return typed(decode(*rows, *places, heads, lanes), q)


def _divisor(number: int, most: int) -> int:
    """The greatest divisor that is at most so much."""
    return max(n for n in range(1, most + 1) if number % n == 0)


def _pages_follow(cache: Any) -> bool:
    """Whether the rows of all pages are at equal distances, and few enough to be counted in 31
    bits."""
    steps, (pages, page) = strides(cache), cache.shape[:2]
    return (pages < 2 or steps[0] == page * steps[1]) and pages * page < 2**31


def _check(q: Any, k: Any, v: Any, tables: Any, lengths: Any) -> None:
    check_types(TYPES, q=q)
    if len({type_name(one) for one in (q, k, v)}) > 1:
        raise UsageError(
            f"q is {type_name(q)}, and the caches {type_name(k)} and {type_name(v)}: convert them"
        )
    check_types(("int32",), block_tables=tables, context_lens=lengths)
    shapes = of_q, of_k, of_v, of_tables, of_lengths = [
        tuple(one.shape) for one in (q, k, v, tables, lengths)
    ]
    ranks = tuple(map(len, shapes)) == (3, 4, 4, 2, 1)
    fits = ranks and of_k == of_v and of_k[3] == of_q[2] and of_k[1] > 0 and of_k[2] > 0
    if not fits or of_q[1] % of_k[2] or not of_q[0] == of_tables[0] == of_lengths[0]:
        raise UsageError(
            "the shapes of q, the caches, block_tables and context_lens do not fit: "
            + ", ".join(map(str, shapes))
        )
    if of_q[2] not in DIMENSIONS:
        raise UsageError(f"heads are of 32, 64, 128 or 256 elements, not {of_q[2]}")
