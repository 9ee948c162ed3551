"""Torch's attention on NVIDIA's GPUs: cuDNN's and FlashAttention's operators, called directly.

Each function takes the gradient of the result, or None, and q, k and v. It gives a call that
computes the result or, with the gradient, those of q, k and v; and the result itself with the
logarithms of the sums.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

ATEN = torch.ops.aten
Peer = tuple[Callable[[], Any], tuple[torch.Tensor, torch.Tensor]]


def cudnn(d_out: Any, q: Any, k: Any, v: Any, causal: bool) -> Peer:
    """Of batches × heads × length × d."""
    sums = d_out is not None
    forward = partial(
        ATEN._scaled_dot_product_cudnn_attention, q, k, v, None, sums, is_causal=causal
    )
    out, lse, *starts_and_most, seed, offset, _ = forward()
    if d_out is None:
        return forward, (out, lse)
    saved = out, lse, seed, offset, None, *starts_and_most
    backward = ATEN._scaled_dot_product_cudnn_attention_backward
    return partial(backward, d_out, q, k, v, *saved, 0.0, causal), (out, lse)


def flash(d_out: Any, q: Any, k: Any, v: Any, causal: bool) -> Peer:
    """As `cudnn`."""
    forward = partial(ATEN._scaled_dot_product_flash_attention, q, k, v, is_causal=causal)
    out, lse, *starts_and_most, state, unused, _ = forward()
    if d_out is None:
        return forward, (out, lse)
    saved = out, lse, *starts_and_most, 0.0, causal, state, unused
    backward = ATEN._scaled_dot_product_flash_attention_backward
    return partial(backward, d_out, q, k, v, *saved), (out, lse)


def of_packed(d_out: Any, q: Any, k: Any, v: Any, starts: Any, longest: int, causal: bool) -> Peer:
    """FlashAttention of rows × heads × d, of sequences between `starts`."""
    ends = starts, starts, longest, longest, 0.0, causal
    forward = partial(ATEN._flash_attention_forward, q, k, v, *ends, False)
    out, lse, state, unused, _ = forward()
    if d_out is None:
        return forward, (out, lse)
    backward = ATEN._flash_attention_backward
    return partial(backward, d_out, q, k, v, out, lse, *ends, state, unused), (out, lse)


PEERS = {"cuDNN": cudnn, "flash": flash}
