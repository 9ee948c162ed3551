"""Solves problems of kernel_quality.py by plain kernels in Triton (triton_library.py).

Triton's own launcher launches them with tensors on the CPU, as docs/hip-runtime.md describes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton_library as library
from kernel_problems import CHOSEN, EPS, EXPERTS
from recording import Solution, main
from triton.backends.amd.driver import HIPDriver, HIPLauncher, HIPUtils

Call = Callable[..., Any]
WARPS = 4
ROW = {"BLOCK": 4096, "num_warps": WARPS}  # of a row's kernel


class EmulatedHIP(HIPDriver):
    """Triton's driver without the questions to torch."""

    def __init__(self) -> None:
        self.utils, self.launcher_cls = HIPUtils(), HIPLauncher

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: Any = None) -> int:
        return 0


triton.runtime.driver.set_active(EmulatedHIP())


def softmax(log: bool) -> Solution:
    def solution(x: Any) -> Call:
        y = torch.empty_like(x)
        return lambda: (library.softmax[(len(x),)](x, y, x.shape[1], LOG=log, **ROW), y)[1]

    return solution


def softmax_backward(dy: Any, y: Any) -> Call:
    dx = torch.empty_like(y)
    return lambda: (library.softmax_backward[(len(y),)](dy, y, dx, y.shape[1], **ROW), dx)[1]


def norm(centred: bool, adds: bool = False, quantizes: bool = False) -> Solution:
    def solution(x: Any, *rest: Any) -> Call:
        r, rest = (rest[0], rest[1:]) if adds else (x, rest)
        w, b = rest if centred else (rest[0], rest[0])
        y = torch.empty(x.shape, dtype=torch.int8 if quantizes else x.dtype)
        total, scales = torch.empty_like(x), torch.empty(len(x))
        flags = {"CENTRED": centred, "ADDS": adds, "QUANTIZES": quantizes}
        results = (y, *([scales] if quantizes else []), *([total] if adds else []))

        def call() -> Any:
            given = (x, r, w, b, y, total, scales, x.shape[1], EPS)
            library.norm[(len(x),)](*given, **flags, **ROW)
            return results

        return call

    return solution


def quantize(x: Any) -> Call:
    y, scales = torch.empty(x.shape, dtype=torch.int8), torch.empty(len(x))
    return lambda: (library.quantize[(len(x),)](x, y, scales, x.shape[1], **ROW), (y, scales))[1]


def norm_backward(centred: bool) -> Solution:
    def solution(dy: Any, x: Any, w: Any) -> Call:
        groups, columns = 4, x.shape[1]
        dx, parts = torch.empty_like(x), torch.zeros(2, groups, columns)
        made = [torch.empty_like(w) for _ in range(1 + centred)]

        def call() -> Any:
            given = (dy, x, w, dx, parts[0], parts[1], columns, EPS, groups)
            library.norm_backward[(len(x),)](*given, CENTRED=centred, **ROW)
            for part, one in zip(parts, made, strict=False):
                library.column_sums[(columns // 256,)](part, one, groups, columns, BLOCK=256)
            return (dx, *made)

        return call

    return solution


def cross_entropy(x: Any, classes: Any) -> Call:
    y = torch.empty(len(x))
    return lambda: (library.cross_entropy[(len(x),)](x, classes, y, x.shape[1], **ROW), y)[1]


def top_k(x: Any) -> Call:
    y = torch.empty(len(x), 8, dtype=x.dtype)
    return lambda: (library.top_k[(len(x),)](x, y, K=8, **ROW), y)[1]


def dropout(x: Any) -> Call:
    y, blocks = torch.empty_like(x), x.numel() // 1024
    return lambda: (library.dropout[(blocks,)](x, y, x.numel(), 0.5, 7, BLOCK=1024), y)[1]


def prefix_sum(x: Any) -> Call:
    blocks = len(x) // 2048
    y, sums = torch.empty_like(x), torch.empty(blocks)

    def call() -> Any:
        library.block_sums[(blocks,)](x, sums, BLOCK=2048)
        library.prefix_sums[(blocks,)](x, sums, y, BLOCK=2048, COUNT=blocks)
        return y

    return call


def histogram(x: Any) -> Call:
    y, blocks = torch.zeros(256, dtype=torch.int32), len(x) // 2048
    return lambda: (library.histogram[(blocks,)](x, y, len(x), BLOCK=2048, BINS=256), y)[1]


def matmul(a: Any, b: Any) -> Call:
    (m, k), n = a.shape, b.shape[0]
    kind = a.dtype if a.dtype.itemsize == 2 else torch.float32
    c = torch.empty(m, n, dtype=torch.int32 if a.dtype is torch.int8 else kind)
    deep = 128 // a.dtype.itemsize
    tiles = {"BM": 128, "BN": 128, "BK": deep, "GROUP": 8, "num_warps": WARPS}
    grid = (m // 128 * (n // 128),)
    return lambda: (library.matmul[grid](a, b, c, m, n, k, **tiles), c)[1]


def grouped_matmul(a: Any, b: Any, ends: Any) -> Call:
    groups, k, n = b.shape
    c = torch.empty(len(a), n, dtype=a.dtype)
    grid = (len(a) // 128 + groups, n // 128)
    tiles = {"BM": 128, "BN": 128, "BK": 64, "num_warps": WARPS}
    return lambda: (library.grouped_matmul[grid](a, b, ends, c, n, k, groups, **tiles), c)[1]


def convolution(x: Any, w: Any) -> Call:
    (_, c, height, width), (n, _, kh, kw) = x.shape, w.shape
    y = torch.empty(1, height, width, n, dtype=x.dtype)
    tiles = {"BM": 128, "BN": 128, "num_warps": WARPS}
    grid = (height * width // 128, n // 128)

    def call() -> Any:
        library.convolution[grid](x, w, y, height, width, n, C=c, KH=kh, KW=kw, **tiles)
        return y.permute(0, 3, 1, 2)

    return call


def route(logits: Any) -> Call:
    count = len(logits)
    weights, experts = torch.empty(count, CHOSEN), torch.empty(count, CHOSEN, dtype=torch.int32)
    sizes = {"E": EXPERTS, "K": CHOSEN, "BLOCK": 32, "num_warps": WARPS}
    grid, made = (count // 32,), (weights, experts)
    return lambda: (library.route[grid](logits, weights, experts, count, **sizes), made)[1]


def combine(parts: Any, weights: Any) -> Call:
    tokens, chosen, columns = parts.shape
    places = torch.arange(tokens * chosen, dtype=torch.int32)
    y = torch.empty(tokens, columns, dtype=parts.dtype)
    sizes = {"K": chosen, "BLOCK": 512, "num_warps": 1}
    return lambda: (
        library.combine[(tokens, columns // 512)](parts, places, weights, y, columns, **sizes),
        y,
    )[1]


def attend(causal: bool) -> Solution:
    def solution(q: Any, k: Any, v: Any) -> Call:
        _, heads, length, d = q.shape
        out = torch.empty_like(q)
        sizes = {"BM": 128, "BN": 64, "D": d, "CAUSAL": causal, "num_warps": WARPS}
        given = (q, k, v, out, length, d**-0.5)
        return lambda: (library.attention[(length // 128, heads)](*given, **sizes), out)[1]

    return solution


def paged(q: Any, k: Any, v: Any, tables: Any, lengths: Any) -> Call:
    sequences, heads, d = q.shape
    page, groups = k.shape[1:3]
    out = torch.empty_like(q)
    sizes = {"PAGE": page, "D": d, "H": 16, "num_warps": 1}
    given = (q, k, v, tables, lengths, out, d**-0.5, tables.shape[1], heads, heads // groups)
    return lambda: (library.paged[(sequences, groups)](*given, **sizes), out)[1]


def rotate(x: Any, cos: Any, sin: Any) -> Call:
    y, grid = torch.empty_like(x), (x.numel() // x.shape[-1] // 32,)
    sizes = {"ROWS": 32, "D": x.shape[-1], "num_warps": WARPS}
    return lambda: (library.rotate[grid](x, cos, sin, y, x.shape[2], **sizes), y)[1]


SOLUTIONS: dict[str, Solution] = {
    "softmax(x)": softmax(log=False),
    "log_softmax(x)": softmax(log=True),
    "softmax_backward(dy, y)": softmax_backward,
    "layer_norm(x, w, b)": norm(centred=True),
    "rms_norm(x, w)": norm(centred=False),
    "add_layer_norm(x, r, w, b)": norm(centred=True, adds=True),
    "add_rms_norm(x, r, w)": norm(centred=False, adds=True),
    'layer_norm_quantized(x, "int8", w, b)': norm(centred=True, quantizes=True),
    'rms_norm_quantized(x, "int8", w)': norm(centred=False, quantizes=True),
    'add_rms_norm_quantized(x, r, "int8", w)': norm(centred=False, adds=True, quantizes=True),
    'quantize_rows(x, "int8")': quantize,
    "norm_backward(dy, x, w), layer norm": norm_backward(centred=True),
    "norm_backward(dy, x, w), rms norm": norm_backward(centred=False),
    "cross_entropy(x, classes)": cross_entropy,
    "top_k(x, 8)": top_k,
    "dropout(x, 0.5, seed)": dropout,
    "prefix_sum(x)": prefix_sum,
    "histogram(x, 256)": histogram,
    **{f"matmul(a, b.T), {kind}": matmul for kind in ("f16", "bf16", "fp8", "i8")},
    "grouped_matmul(a, b, ends)": grouped_matmul,
    "conv2d(x, w, padding=1)": convolution,
    "moe_route(logits, 2)": route,
    "moe_combine(x, …)": combine,
    **{
        f"flash_attention(q, k, v{', causal=True' if causal else ''}), d = {d}": attend(causal)
        for causal in (False, True)
        for d in (64, 128)
    },
    "paged_attention(q, …)": paged,
    "rotary_embedding(x, cos, sin)": rotate,
}

if __name__ == "__main__":
    main(SOLUTIONS)
