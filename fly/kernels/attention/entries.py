"""The functions that attention's operators call, with the kernels of the target: in warp groups on
Hopper (`warpgroups`), else in workgroups of waves (`forward`, `backward`).

Sequences are the batches of Q, K and V, or lie between `starts` in such of one batch.
"""

from __future__ import annotations

from typing import Any

from fly_target.registry import find
from fly_trace.core.target import chip

import fly
import fly.expr as fx
from fly.kernels.attention import backward, forward
from fly.kernels.attention.problem import Keys, Numbers, Problem, Queries
from fly.kernels.attention.warpgroups import warpgroup_backward, warpgroup_forward
from fly.kernels.shapes import for_model


def _starts(starts_q: Any, starts_k: Any) -> tuple[Any, Any]:
    """The starts of sequences of queries and of keys; empty ones if there are none."""
    if starts_q is not None:
        return starts_q, starts_k
    starts = fx.empty((0,), fx.Int32)
    return starts, starts


def _on_hopper() -> bool:
    return find(chip("attention")).family == "Hopper"


@fly.jit(specialize=for_model("heads", "kv_heads", "d"))
def attention(
    Q: Queries,
    K: Keys,
    V: Keys,
    scale: fx.Float32,
    problem: fx.Constexpr[Problem],
    starts_q=None,
    starts_k=None,
):
    """The results, and the logarithms of softmax's sums. On Hopper, of tensors of which TMA can
    copy tiles."""
    kernels = warpgroup_forward if _on_hopper() else forward
    Out, Lse = kernels.launch(Q, K, V, *_starts(starts_q, starts_k), scale, problem)
    return Out, Lse


@fly.jit
def attention_gradients(
    dOut: Queries,
    dLse: Numbers,
    Q: Queries,
    K: Keys,
    V: Keys,
    Out: Queries,
    Lse: Numbers,
    scale: fx.Float32,
    problem: fx.Constexpr[Problem],
    starts_q=None,
    starts_k=None,
):
    """The gradients of Q, K and V, from those of results and logarithms."""
    kernels = warpgroup_backward if _on_hopper() else backward
    starts = _starts(starts_q, starts_k)
    dQ, dK, dV = kernels.launch(dOut, dLse, Q, K, V, Out, Lse, *starts, scale, problem)
    return dQ, dK, dV
