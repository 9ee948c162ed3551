"""Solves problems of kernel_quality.py by FlyDSL's own kernels, on the chip of FLYDSL_GPU_ARCH.

The kernels are not in FlyDSL's wheel: FLYDSL_KERNELS names a checkout of ROCm/FlyDSL, from which
they are imported. They are called as FlyDSL's tests do, with tensors on the CPU.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import torch
from kernel_problems import CHOSEN, EXPERTS, TOKENS
from recording import Solution, main

sys.path.insert(0, os.environ["FLYDSL_KERNELS"])
import flydsl.compiler as flyc
import flydsl.expr as fx
from kernels.norm import layernorm_kernel, rmsnorm_bwd_kernel, rmsnorm_kernel
from kernels.norm.softmax_bwd_kernel import build_softmax_bwd_module
from kernels.norm.softmax_kernel import build_softmax_module

Call = Callable[..., Any]
TARGET = os.environ["FLYDSL_GPU_ARCH"]
STREAM = fx.Stream(None)
NAMES = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32"}


def pointer(one: torch.Tensor) -> Any:
    """An argument of the kernels that take pointers to elements."""
    kinds = {torch.float16: fx.Float16, torch.float32: fx.Float32}
    return flyc.from_c_void_p(kinds[one.dtype], one.data_ptr())


def address(one: torch.Tensor) -> Any:
    """An argument of the kernels that take pointers to bytes."""
    return flyc.from_c_void_p(fx.Uint8, one.data_ptr())


def softmax(x: Any) -> Call:
    y, launch = torch.empty_like(x), build_softmax_module(*x.shape, "f16")
    return lambda: (launch(x, y, len(x)), y)[1]


def softmax_backward(dy: Any, y: Any) -> Call:
    dx, launch = torch.empty_like(y), build_softmax_bwd_module(y.shape[1], "f16")
    return lambda: (launch(dy, y, dx, len(y)), dx)[1]


def layer_norm(x: Any, w: Any, b: Any) -> Call:
    y, launch = torch.empty_like(x), layernorm_kernel.build_layernorm_module(x.shape[1], "f16")
    return lambda: (launch(*map(pointer, (x, w, b, y)), len(x)), y)[1]


def norm(build: Call) -> Solution:
    """Of a kernel that takes the arguments and the result."""

    def solution(x: Any, *rest: Any) -> Call:
        y, launch = torch.empty_like(x), build(x.shape[1], "f16")
        return lambda: (launch(x, *rest, y, len(x)), y)[1]

    return solution


def add_norm(build: Call) -> Solution:
    """Of a kernel that also returns the sum of x and the residual."""

    def solution(x: Any, *rest: Any) -> Call:
        y, total, launch = torch.empty_like(x), torch.empty_like(x), build(x.shape[1], "f16")
        return lambda: (launch(x, *rest, y, total, len(x)), (y, total))[1]

    return solution


def quantized_norm(build: Call, adds: bool = False) -> Solution:
    def solution(x: Any, *rest: Any) -> Call:
        y, scales = torch.empty(x.shape, dtype=torch.int8), torch.empty(len(x))
        total = [torch.empty_like(x)] if adds else []
        launch = build(x.shape[1], "f16")
        return lambda: (launch(x, *rest, y, *total, scales, len(x)), (y, scales, *total))[1]

    return solution


def layer_norm_backward(dy: Any, x: Any, w: Any) -> Call:
    """It adds up the gradients of parameters by atomic additions; the statistics are given."""
    launch = layernorm_kernel.build_layernorm_bwd_module(x.shape[1], "f16")
    mean = x.float().mean(-1)
    factor = (x.float().var(-1, correction=0) + 1e-5).rsqrt()
    dx, of_w, of_b = torch.empty_like(x), torch.zeros(x.shape[1]), torch.zeros(x.shape[1])

    def call() -> Any:
        launch(*map(pointer, (x, w, dy, mean, factor, dx, of_w, of_b)), len(x))
        return dx, of_w, of_b

    return call


def rms_norm_backward(dy: Any, x: Any, w: Any) -> Call:
    """The statistics are given; the sums of the parameter's gradient are in order."""
    programs = len(x)
    launch = rmsnorm_bwd_kernel.build_rmsnorm_bwd_two_stage_module(x.shape[1], "f16", programs)
    factor = (x.float().square().mean(-1) + 1e-5).rsqrt()
    dx, of_w, parts = torch.empty_like(x), torch.empty_like(w), torch.empty(programs * x.shape[1])
    return lambda: (launch(x, w, dy, factor, dx, of_w, parts, len(x)), (dx, of_w))[1]


def preshuffled(a: Any, b: Any) -> Call:
    from kernels.gemm.preshuffle_gemm import compile_preshuffle_gemm

    (m, k), n, kind = a.shape, b.shape[0], a.dtype
    wide = 16 // kind.itemsize
    shuffled = b.view(n // 16, 16, k // (4 * wide), 4, wide).permute(0, 2, 3, 1, 4).contiguous()
    names = {torch.float16: "fp16", torch.bfloat16: "bf16", torch.int8: "int8"}
    launch = compile_preshuffle_gemm(
        N=n,
        K=k,
        tile_m=128,
        tile_n=128,
        tile_k=128 // kind.itemsize,
        in_dtype=names.get(kind, "fp8"),
        out_dtype="bf16" if kind is torch.bfloat16 else "f16",
    )
    c = torch.empty(m, n, dtype=kind if kind.itemsize == 2 else torch.float16)
    ones = [torch.ones(m), torch.ones(n)] if kind.itemsize == 1 else [torch.empty(0)] * 2
    flat = [one.reshape(-1) for one in (c, a, shuffled)]
    flat = [one.view(torch.int8) if one.dtype.itemsize == 1 else one for one in flat]
    bias = torch.empty(0, dtype=c.dtype)
    return lambda: (launch(*flat, *ones, bias, m, n, STREAM), c)[1]


def matmul(a: Any, b: Any) -> Call:
    from kernels.gemm import gemm_a16w16_gfx950 as gemm

    tiles = {"block_m": 128, "block_n": 128, "block_k": 64, "m_waves": 2, "n_waves": 2}
    tiles["use_half_tile_interleaved"] = False

    def call() -> Any:
        return gemm.gemm_a16w16(a, b.T, user_kwargs=tiles, stream=STREAM)

    call()  # the first call only compiles
    return call


def attend(causal: bool) -> Solution:
    def solution(q: Any, k: Any, v: Any) -> Call:
        from kernels.attention import flash_attn_generic

        batch, heads, length, d = q.shape
        launch = flash_attn_generic.build_flash_attn_func_module_primary(
            heads, d, causal, "f16", num_kv_heads=k.shape[1], block_m=128
        )
        flat = [one.transpose(1, 2).contiguous().view(-1) for one in (q, k, v)]
        out = torch.empty_like(flat[0])

        def call() -> Any:
            launch(*flat, out, batch, length)
            return out.view(batch, length, heads, d).transpose(1, 2)

        return call

    return solution


def convolve(x: Any, w: Any) -> Call:
    from kernels.conv.conv3d_implicit import compile_conv3d_implicit

    (n, c, h, width), (k, _, r, s) = x.shape, w.shape
    launch = compile_conv3d_implicit(
        *(n, c, 1, h, width, k, 1, r, s, 1, 1, 1, 0, 1, 1), False, 1, (128, 128, 2, 2)
    )
    last, packed = x.permute(0, 2, 3, 1).contiguous(), w.permute(0, 2, 3, 1).reshape(k, -1)
    y = torch.empty(n, k, h, width, dtype=x.dtype)
    return lambda: (launch(y, last, packed.contiguous(), torch.empty(1), STREAM), y)[1]


def route(logits: Any) -> Call:
    from kernels.moe.topk_gating_softmax_kernel import build_topk_gating_softmax_module as build

    launch = build(EXPERTS, CHOSEN, "f16")
    weights = torch.empty(TOKENS, CHOSEN)
    experts, places = (torch.empty(TOKENS, CHOSEN, dtype=torch.int32) for _ in range(2))
    return lambda: (launch(logits, weights, experts, places, TOKENS), (weights, experts))[1]


def sort(experts: Any) -> Call:
    """FlyDSL fills each expert's part up to 32 choices; the others are taken out of it."""
    from kernels.moe.moe_sorting_kernel import compile_moe_sorting

    launch, *_ = compile_moe_sorting(num_experts=EXPERTS, topk=CHOSEN, max_tokens=TOKENS)
    most = TOKENS * CHOSEN + EXPERTS * 32
    ids, of_blocks = torch.empty(most, dtype=torch.int32), torch.empty(most, dtype=torch.int32)
    weights, count = torch.empty(most), torch.empty(2, dtype=torch.int32)
    given = torch.ones(TOKENS, CHOSEN)
    empty, mask = torch.empty(0, dtype=torch.int32), torch.ones(1, dtype=torch.int32)

    def call() -> Any:
        outputs = ids, weights, of_blocks, count, empty, mask
        launch(experts, given, *outputs, TOKENS, 0, 1)
        valid = ids[: int(count[0])]
        valid = valid[(valid & 0xFFFFFF) < TOKENS]
        order = (valid & 0xFFFFFF) * CHOSEN + (valid >> 24)
        return order, experts.flatten().bincount(minlength=EXPERTS).cumsum(0)

    return call


def combine(parts: Any, weights: Any) -> Call:
    """Without weights, which are 1 here."""
    from kernels.moe.moe_gemm_2stage import compile_moe_reduction

    tokens, chosen, columns = parts.shape
    launch = compile_moe_reduction(topk=chosen, model_dim=columns, dtype_str="f16")
    y, none = torch.empty(tokens, columns, dtype=parts.dtype), torch.empty(1, dtype=torch.int32)

    def call() -> Any:
        launch(*map(address, (parts, y, none, none)), tokens, STREAM)
        return y

    return call


def rotate_and_cache(*made: Any) -> Call:
    from kernels.attention.fused_rope_cache_kernel import build_fused_rope_cache_module as build

    q, k, v, cos, sin, at, keys, values, slots = made
    launch = build(64, num_q_heads=8, num_kv_heads=1, block_size=16, dtype_str="f16")
    keys, values = keys.clone(), values.clone()
    of_q, of_k, one = torch.empty_like(q), torch.empty_like(k), torch.ones(1)
    given = (q, k, v, at, cos, sin, slots, keys, values, of_q, of_k, TOKENS, one, one)
    return lambda: (launch(*given), (of_q, of_k, keys, values))[1]


SOLUTIONS: dict[str, Solution] = {
    "softmax(x)": softmax,
    "softmax_backward(dy, y)": softmax_backward,
    "layer_norm(x, w, b)": layer_norm,
    "rms_norm(x, w)": norm(rmsnorm_kernel.build_rmsnorm_module),
    "add_layer_norm(x, r, w, b)": add_norm(layernorm_kernel.build_fused_add_layernorm_module),
    "add_rms_norm(x, r, w)": add_norm(rmsnorm_kernel.build_fused_add_rmsnorm_module),
    'layer_norm_quantized(x, "int8", w, b)': quantized_norm(
        layernorm_kernel.build_layernorm_dynamicquant_module
    ),
    'rms_norm_quantized(x, "int8", w)': quantized_norm(
        rmsnorm_kernel.build_rmsnorm_dynamicquant_module
    ),
    'add_rms_norm_quantized(x, r, "int8", w)': quantized_norm(
        rmsnorm_kernel.build_fused_add_rmsnorm_dynamicquant_module, adds=True
    ),
    "norm_backward(dy, x, w), layer norm": layer_norm_backward,
    "norm_backward(dy, x, w), rms norm": rms_norm_backward,
    **{f"matmul_preshuffled(a, b), {kind}": preshuffled for kind in ("f16", "bf16", "fp8", "i8")},
    "conv2d(x, w, padding=1)": convolve,
    "moe_route(logits, 2)": route,
    "moe_sort(experts, 8)": sort,
    "moe_combine(x, …)": combine,
    **{
        f"flash_attention(q, k, v{', causal=True' if causal else ''}), d = {d}": attend(causal)
        for causal in (False, True)
        for d in (64, 128)
    },
    "rotary_and_cache(q, k, v, …)": rotate_and_cache,
}
if TARGET == "gfx950":
    SOLUTIONS |= {f"matmul(a, b.T), {kind}": matmul for kind in ("f16", "bf16")}

if __name__ == "__main__":
    main(SOLUTIONS)
