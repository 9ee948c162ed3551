"""Calls of attention and of rotary embedding."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any
from unittest.mock import patch

import torch
from fly_kernels.attention_by_torch import reference

from fly import kernels
from fly.kernels.attention import rotary as rotary_calls
from kernel_cases.case import Case
from kernel_cases.choice import SMALL_FLOATS, Choice

HALVES = (torch.float16, torch.bfloat16)


def heads_of(choice: Choice) -> tuple[int, int]:
    """Heads of queries and of keys."""
    kv_heads = choice.whole(1, 2)
    return kv_heads * choice.whole(1, 3), kv_heads


def scale_of(choice: Choice) -> float | None:
    return choice.one((None, None, 0.3, -0.2, 0.0))


def flash(choice: Choice) -> Case:
    dtype, d, causal = choice.one(HALVES), choice.one((64, 128)), choice.chance(0.5)
    batches, (heads, kv_heads) = choice.whole(0, 2), heads_of(choice)
    queries, keys, scale = choice.extent(150), choice.extent(200), scale_of(choice)
    of_keys = [batches, kv_heads, keys, d]
    operands = [choice.normal([batches, heads, queries, d], dtype, 1.0)]
    operands += [choice.normal(of_keys, dtype, 1.0) for _ in range(2)]
    return Case(
        lambda *given: kernels.flash_attention(*given, causal, scale),
        lambda *given: reference(*given, causal, scale),
        operands,
        f"flash_attention({causal}, {scale})",
        differentiable=[0, 1, 2],
        options={"roundings": 8.0},
    )


def packed(choice: Choice) -> Case:
    dtype, d, causal = choice.one(HALVES), choice.one((64, 128)), choice.chance(0.5)
    heads, kv_heads = heads_of(choice)
    count, scale = choice.whole(0, 4), scale_of(choice)
    lengths = [[choice.extent(100) for _ in range(count)] for _ in range(2)]
    starts = [torch.tensor([*accumulate(one, initial=0)], dtype=torch.int32) for one in lengths]
    spans = [[*pairwise(one.tolist())] for one in starts]
    operands = [choice.normal([sum(lengths[0]), heads, d], dtype, 1.0)]
    operands += [choice.normal([sum(lengths[1]), kv_heads, d], dtype, 1.0) for _ in range(2)]

    def exact(q: Any, k: Any, v: Any, *_: Any) -> Any:
        wide = torch.promote_types(q.dtype, torch.float32)
        outs = [q[:0] + k[:0].sum() + v[:0].sum()]  # of no row, which has gradients
        sums = [q.new_zeros(heads, 0, dtype=wide) + 0 * q[:0].sum()]
        for of_q, of_k in zip(*spans, strict=True):
            parts = [t[slice(*span)] for t, span in ((q, of_q), (k, of_k), (v, of_k))]
            out, lse = reference(*(one.transpose(0, 1)[None] for one in parts), causal, scale)
            outs.append(out[0].transpose(0, 1))
            sums.append(lse[0])
        return torch.cat(outs), torch.cat(sums, 1)

    return Case(
        lambda *given: kernels.flash_attention_varlen(*given, causal, scale),
        exact,
        [*operands, *map(choice.placed, starts)],
        f"flash_attention_varlen({lengths}, {causal}, {scale})",
        differentiable=[0, 1, 2],
        options={"roundings": 8.0},
    )


def paged(choice: Choice) -> Case:
    """Pages that sequences share, and whose other rows are NaN."""
    dtype, d = choice.one(HALVES), choice.one((32, 64, 128, 256))
    kv_heads = choice.whole(1, 2)
    heads, page = kv_heads * choice.whole(1, 12), choice.one((1, 3, 16, 17, 64, 256))
    lengths = [choice.extent(700) for _ in range(choice.whole(0, 3))]
    scale, count = scale_of(choice), choice.whole(1, 6) + max(lengths, default=0) // page
    tables = [[choice.whole(0, count - 1) for _ in range(-(-one // page))] for one in lengths]
    most = max(map(len, tables), default=0) + choice.whole(0, 2)
    padded = [[*one, *[-1] * (most - len(one))] for one in tables]
    used = torch.zeros(count, page, dtype=torch.bool)
    for own, length in zip(tables, lengths, strict=True):
        for i, number in enumerate(own):
            used[number, : length - i * page] = True
    caches = [
        choice.placed(
            torch.where(
                used[..., None, None],
                choice.normal([count, page, kv_heads, d], dtype, 1.0),
                float("nan"),
            )
        )
        for _ in range(2)
    ]
    operands = [
        choice.normal([len(lengths), heads, d], dtype, 1.0),
        *caches,
        choice.placed(torch.tensor(padded, dtype=torch.int32).reshape(len(lengths), most)),
        choice.placed(torch.tensor(lengths, dtype=torch.int32)),
    ]

    def exact(q: Any, k: Any, v: Any, *_: Any) -> Any:
        outs = [q[:0]]
        for i, (own, length) in enumerate(zip(tables, lengths, strict=True)):
            rows = [
                one[torch.tensor(own, dtype=torch.long)].flatten(0, 1)[:length].transpose(0, 1)
                for one in (k, v)
            ]
            out, _ = reference(q[i, :, None][None], *(one[None] for one in rows), False, scale)
            outs.append(out[0, :, 0][None])
        return torch.cat(outs)

    text = f"paged_attention({lengths}, {scale})"
    return Case(
        lambda *given: kernels.paged_attention(*given, scale),
        exact,
        operands,
        text,
        options={"roundings": 8.0},
    )


def rotated(x: Any, cos: Any, sin: Any, interleaved: bool) -> Any:
    """By products of complex numbers."""
    wide = torch.promote_types(x.dtype, torch.float32)
    pairs = cos.shape[-1]
    head, tail = x[..., : 2 * pairs].to(wide), x[..., 2 * pairs :]
    places = (slice(None, None, 2), slice(1, None, 2))
    if not interleaved:
        places = (slice(pairs), slice(pairs, None))
    turned = torch.complex(*(head[..., one] for one in places))
    turned = turned * torch.complex(cos.to(wide), sin.to(wide))
    parts = torch.stack([turned.real, turned.imag], -1 if interleaved else -2)
    return torch.cat([parts.flatten(-2).to(tail.dtype), tail], -1)


def angles(choice: Choice, positions: int, pairs: int) -> list[torch.Tensor]:
    dtype = choice.one(SMALL_FLOATS)
    at = torch.randn(positions, pairs, generator=choice.numbers, dtype=torch.float64)
    return [choice.placed(one.to(dtype)) for one in (at.cos(), at.sin())]


def rotary(choice: Choice) -> Case:
    dtype, interleaved = choice.one(SMALL_FLOATS), choice.chance(0.5)
    d = 16 * choice.whole(1, 9)
    pairs = 8 * choice.whole(0, d // 16)
    shape = [*(choice.extent(5) for _ in range(choice.whole(0, 2))), choice.extent(70), d]
    return Case(
        lambda *given: kernels.rotary_embedding(*given, interleaved),
        lambda *given: rotated(*given, interleaved),
        [choice.normal(shape, dtype), *angles(choice, shape[-2], pairs)],
        f"rotary_embedding({interleaved})",
        differentiable=[0, 1, 2],
    )


def rotary_and_cache(choice: Choice) -> Case:
    dtype, interleaved = choice.one(SMALL_FLOATS), choice.chance(0.5)
    d, (heads, kv_heads) = 16 * choice.whole(1, 9), heads_of(choice)
    pairs, tokens, page = 8 * choice.whole(0, d // 16), choice.extent(40), choice.whole(1, 17)
    pages, most = -(-tokens // page) + 1, choice.whole(1, 40)
    kind = choice.one((torch.int32, torch.int64))
    slots = torch.randperm(pages * page, generator=choice.numbers)[:tokens]
    slots = torch.where(torch.rand(tokens, generator=choice.numbers) < 0.2, -1, slots)
    cache = [pages, page, kv_heads, d]
    operands = [
        choice.normal([tokens, heads, d], dtype),
        choice.normal([tokens, kv_heads, d], dtype),
        choice.normal([tokens, kv_heads, d], dtype),
        *angles(choice, most, pairs),
        choice.integers([tokens], kind, 0, most - 1),
        *(choice.normal(cache, dtype).contiguous() for _ in range(2)),
        choice.placed(slots.to(kind)),
    ]

    def exact(
        q: Any, k: Any, v: Any, cos: Any, sin: Any, at: Any, keys: Any, values: Any, slots: Any
    ) -> Any:
        turns = [one[at.long()][:, None] for one in (cos, sin)]
        q, k = (rotated(one, *turns, interleaved) for one in (q, k))
        stored, caches = slots >= 0, []
        for one, rows in ((keys, k), (values, v)):
            made = one.clone()
            made.view(-1, kv_heads, d)[slots[stored].long()] = rows[stored]
            caches.append(made)
        return q, k, *caches

    width = choice.one((1, 2, 4, 8))

    def in_width(*given: Any) -> Any:
        with patch.object(rotary_calls, "width_for", lambda _: width):
            return kernels.rotary_and_cache(*given, interleaved)

    return Case(
        in_width,
        exact,
        operands,
        f"rotary_and_cache({interleaved}), {width} pairs",
        written=[6, 7],
    )
