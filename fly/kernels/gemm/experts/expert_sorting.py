"""The order that puts the tokens of an expert together.

It is a counting sort: every expert's block counts its tokens, one block adds the counts up, and
every expert's block writes its tokens to their places, in order. Each block reads all choices:
experts · tokens · k elements in all, most of them from the cache.
"""

from __future__ import annotations

from typing import Any

from fly_common.errors import UsageError

import fly
import fly.expr as fx
from fly.kernels import dependent
from fly.kernels.arrays import check_types, contiguous
from fly.kernels.gemm.experts.expert_routing import MOST_EXPERTS
from fly.kernels.operators import operator

Choices = fx.Tensor[fx.Int32, fx.sym_int32("n")]
BLOCK = 256


@fly.kernel
def count_kernel(experts: fx.Tensor, counts: fx.Tensor):
    dependent.let_next_begin()
    expert, thread = fx.block_idx.x, fx.thread_idx.x
    count = 0
    for i in range(thread, experts.shape[0], BLOCK):
        if experts[i] == expert:
            count += 1
    total = fx.block.reduce(count)
    if thread == 0:
        counts[expert] = total


@fly.kernel
def offsets_kernel(counts: fx.Tensor, offsets: fx.Tensor):
    dependent.let_next_begin()
    dependent.wait_for_previous()
    items = MOST_EXPERTS // BLOCK
    count = counts.shape[0]
    own = fx.block.load(counts, items, valid=count)
    fx.block.store(offsets, fx.block.inclusive_scan(own), valid=count)


@fly.kernel
def places_kernel(experts: fx.Tensor, offsets: fx.Tensor, order: fx.Tensor, places: fx.Tensor):
    dependent.wait_for_previous()
    expert, thread, count = fx.block_idx.x, fx.thread_idx.x, experts.shape[0]
    start = 0
    if expert > 0:
        start = offsets[expert - 1]
    for first in range(0, count, BLOCK):
        i = first + thread
        own = 0
        if i < count and experts[i] == expert:
            own = 1
        rank, total = fx.block.exclusive_scan(own, total=True)
        if own == 1:
            order[start + rank] = i
            places[i] = start + rank
        start += total


@fly.jit
def sort(experts: Choices, count: fx.Int32):
    n = experts.shape[0]
    counts, offsets = fx.empty(count, fx.Int32), fx.empty(count, fx.Int32)
    order, places = fx.empty(n, fx.Int32), fx.empty(n, fx.Int32)
    count_kernel(experts, counts).launch(grid=count, block=BLOCK)
    offsets_kernel(counts, offsets).launch(grid=1, block=BLOCK)
    places_kernel(experts, offsets, order, places).launch(grid=count, block=BLOCK)
    return order, places, offsets


def _fake_sort(experts: Any, count: int) -> Any:
    import torch

    sizes = (experts.numel(), experts.numel(), count)
    return tuple(experts.new_empty(size, dtype=torch.int32) for size in sizes)


@operator("(Tensor experts, int count) -> (Tensor, Tensor, Tensor)", fake=_fake_sort)
def moe_sort(experts: Any, count: int) -> Any:
    """The stable order of choices by expert.

    experts: of i32, any shape, with n elements from 0 to count - 1, which is not checked, as they
    are the device's. Returns three arrays of i32:
    the n choices in order, each a place in the flattened `experts`; the place of each choice in
    that order; and for each expert the end of its choices there, as `grouped_matmul` takes them.
    UsageError unless 1 ≤ count ≤ 1024.
    """
    check_types(("int32",), experts=experts)
    if not 0 < count <= MOST_EXPERTS:
        raise UsageError(f"there are {count} experts", hint=f"1 to {MOST_EXPERTS} can be sorted by")
    return sort(contiguous(experts).reshape(-1), count)
