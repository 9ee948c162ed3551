"""Rotary position embedding, also with an update of caches of keys and values."""

from __future__ import annotations

import math
from typing import Any

from fly_backend.choice import choose, row_of
from fly_common.errors import UsageError

from fly.kernels.arrays import INTEGERS, SMALL_FLOATS, check_types, type_name
from fly.kernels.attention.arguments import for_loads, typed
from fly.kernels.attention.rotary_cache import rotate_and_cache
from fly.kernels.attention.rotary_kernels import rotate, rotate_rows
from fly.kernels.attention.rotation import ITEM, Rotation, width_for
from fly.kernels.operators import like, operator, wanted

# On chips where these were measured: the bytes of angles up to which these stay in the cache
# whatever the order of blocks is; and the rows of which a thread takes the elements at a position,
# and the threads of a block, if there are more angles, and if not.
LINES = {"Hopper": (1 << 21, (2, 128), (1, 256))}


@operator("(Tensor x, Tensor cos, Tensor sin, bool interleaved=False) -> Tensor", fake=like)
def rotary_embedding(x: Any, cos: Any, sin: Any, interleaved: bool = False) -> Any:
    """Rotates pairs of elements of x by angles that depend on the position.

    x: … × positions × d, of f16, bf16 or f32. cos, sin: positions × pairs, of one of these types,
    the cosines and sines of angles. Pair i is elements i and i + pairs of a row, or, interleaved,
    2i and 2i + 1; elements from 2·pairs on are copied. d and 2·pairs are multiples of 16.
    Computed in f32. Returns a contiguous array as x. UsageError for other types and shapes.
    """
    rotation = _rotation(cos, sin, interleaved, x=x)
    if len(x.shape) < 2 or x.shape[-2] != cos.shape[0]:
        raise UsageError(
            f"x is of … × positions × d, and cos has {cos.shape[0]} positions, not {tuple(x.shape)}"
        )
    rows = for_loads(x.reshape(math.prod(x.shape[:-2]), *x.shape[-2:]))
    angles = for_loads(cos), for_loads(sin)
    measured = LINES.get(row_of(choose()).family)
    if not measured:
        return typed(rotate(rows, *angles, rotation), x).reshape(x.shape)
    kept, *plans = measured
    together = 2 * math.prod(cos.shape) * cos.itemsize > kept
    lines, threads = plans[0 if together else 1]
    made = rotate_rows(rows, *angles, rotation, lines, threads, together)
    return typed(made, x).reshape(x.shape)


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    x, cos, sin, ctx.interleaved = inputs
    ctx.save_for_backward(x if any(wanted(ctx, 3)[1:]) else None, cos, sin)


@rotary_embedding.gradient(_save)
def _(ctx: Any, gradient: Any) -> Any:
    x, cos, sin = ctx.saved_tensors
    for_x, *for_angles = wanted(ctx, 3)
    of_x = rotary_embedding(gradient, cos, -sin, ctx.interleaved) if for_x else None
    of_cos = of_sin = None
    if any(for_angles):  # angles that are learned: sums over all rows at a position
        (a, b), (of_a, of_b) = [
            _pairs(one.float(), cos.shape[1], ctx.interleaved) for one in (x, gradient)
        ]
        of_cos = (of_a * a + of_b * b).sum_to_size(cos.shape).to(cos.dtype)
        of_sin = (of_b * a - of_a * b).sum_to_size(sin.shape).to(sin.dtype)
    return of_x, of_cos, of_sin, None


def _pairs(x: Any, pairs: int, interleaved: bool) -> tuple[Any, Any]:
    """The first and the second numbers of the pairs of a torch tensor's rows."""
    if interleaved:
        return x[..., : 2 * pairs : 2], x[..., 1 : 2 * pairs : 2]
    return x[..., :pairs], x[..., pairs : 2 * pairs]


def _fake(q: Any, k: Any, *_: Any, **__: Any) -> Any:
    return q.new_empty(q.shape), k.new_empty(k.shape)


@operator(
    "(Tensor q, Tensor k, Tensor v, Tensor cos, Tensor sin, Tensor positions, "
    "Tensor(a!) k_cache, Tensor(b!) v_cache, Tensor slots, bool interleaved=False) "
    "-> (Tensor, Tensor)",
    fake=_fake,
    mutates=("k_cache", "v_cache"),
)
def rotary_and_cache(
    q: Any,
    k: Any,
    v: Any,
    cos: Any,
    sin: Any,
    positions: Any,
    k_cache: Any,
    v_cache: Any,
    slots: Any,
    interleaved: bool = False,
) -> tuple[Any, Any]:
    """Rotates q and k as `rotary_embedding` does, and stores the rotated k, and v, in caches.

    q: tokens × heads × d; k, v: tokens × kv_heads × d, all of one type. cos, sin: most positions ×
    pairs. positions, slots: vectors of integers, of each token its row of cos and sin, and its
    place in the caches, which are pages × page size × kv_heads × d, as in `paged_attention`: slot
    s is row s % page size of page s // page size; nothing is stored at a negative one. Both are not
    checked, as they are the device's, and different tokens have different slots.

    Writes k_cache and v_cache; returns the rotated q and k. It has no gradient. UsageError for
    other types and shapes, and for caches that kernels can't write in place.
    """
    rotation = _rotation(cos, sin, interleaved, q=q)
    _check(q, k, v, positions, k_cache, v_cache, slots)
    rows = [for_loads(one) for one in (q, k, v, cos, sin)]
    heads, kv_heads = q.shape[1], k.shape[1]
    elements = q.shape[0] * (heads + 2 * kv_heads) * rotation.d
    rotation = rotation._replace(width=width_for(elements))
    threads = rotation.threads(heads, kv_heads)
    wide = math.prod(k_cache.shape[:2]) >= 2**32
    made = rotate_and_cache(*rows, positions, k_cache, v_cache, slots, rotation, threads, wide)
    return tuple(typed(one, q) for one in made)


def _rotation(cos: Any, sin: Any, interleaved: bool, **rotated: Any) -> Rotation:
    check_types(SMALL_FLOATS, **rotated, cos=cos, sin=sin)
    (x,) = rotated.values()
    of_cos, of_sin = tuple(cos.shape), tuple(sin.shape)
    d, pairs = x.shape[-1] if len(x.shape) else 0, of_cos[-1] if of_cos else 0
    if of_cos != of_sin or len(of_cos) != 2 or type_name(cos) != type_name(sin):
        raise UsageError(
            f"cos and sin are of positions × pairs and of one type, not {of_cos} and {of_sin}"
        )
    if d % ITEM or 2 * pairs % ITEM or 2 * pairs > d:
        raise UsageError(
            f"{pairs} pairs of {d} elements: both numbers of elements are multiples of {ITEM}"
        )
    return Rotation(d, pairs, interleaved)


def _check(q: Any, k: Any, v: Any, positions: Any, k_cache: Any, v_cache: Any, slots: Any) -> None:
    check_types(INTEGERS, positions=positions, slots=slots)
    arrays = (q, k, v, k_cache, v_cache)
    if len({*map(type_name, arrays)}) > 1:
        raise UsageError(
            "q, k, v and the caches are of one type, not " + ", ".join(map(type_name, arrays))
        )
    shapes = of_q, of_k, of_v, of_cache, of_values, *of_places = [
        tuple(one.shape) for one in (*arrays, positions, slots)
    ]
    fits = tuple(map(len, shapes)) == (3, 3, 3, 4, 4, 1, 1) and of_k == of_v
    fits = fits and of_cache == of_values and of_cache[2:] == of_k[1:] and of_q[2] == of_k[2]
    if not fits or {of_k[0], of_places[0][0], of_places[1][0]} != {of_q[0]}:
        raise UsageError(
            "the shapes of q, k, v, the caches, positions and slots do not fit: "
            + ", ".join(map(str, shapes))
        )
    for name, cache in (("k_cache", k_cache), ("v_cache", v_cache)):
        if for_loads(cache) is not cache:
            raise UsageError(f"rows of {name} are not at multiples of 16 bytes: make it contiguous")
