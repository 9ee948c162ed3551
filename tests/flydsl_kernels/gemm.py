"""Cases of kernels/gemm on gfx942 and RDNA."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.nn import functional

from flydsl_kernels.case import DTYPES, Comparison, case, random


def stream() -> Any:
    """The current stream, as FlyDSL takes it."""
    import flydsl.expr as fx

    return fx.Stream(None)


def blocked(b: torch.Tensor) -> torch.Tensor:
    """B's rows in groups of 16, and 64 bytes of their columns, as 16 bytes of each row in turn."""
    size = 16 // b.element_size()
    rows, columns = b.shape
    bits = b.view(torch.int8) if b.element_size() == 1 else b
    made = bits.reshape(rows // 16, 16, columns // (4 * size), 4, size)
    wide = bits.reshape(rows // 16, 16, columns // (2 * size), 2, size)
    parts = made if b.element_size() == 1 and columns % (4 * size) == 0 else wide
    del made
    return parts.permute(0, 2, 3, 1, 4).contiguous().view(b.dtype).reshape(rows, columns)


def quantized(x: torch.Tensor, kind: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows with a scale each, so that the greatest element is the type's greatest number."""
    most = 127 if kind is torch.int8 else torch.finfo(kind).max
    scale = x.abs().amax(1, keepdim=True) / most
    held = (x / scale).round() if kind is torch.int8 else x / scale
    return held.to(kind), scale


FP8 = {"gfx942": torch.float8_e4m3fnuz, "gfx950": torch.float8_e4m3fn}
ACTIVATIONS = {
    "bias": torch.Tensor.float,
    "bias_relu": torch.relu,
    "bias_silu": functional.silu,
    "bias_gelu": functional.gelu,
}
KINDS = {"fp16": torch.float16, "bf16": torch.bfloat16, "int8": torch.int8}


@case("preshuffle_gemm fp16 33x128x256", "gemm/preshuffle_gemm.py", kind="fp16", m=33, n=128, k=256)
@case("preshuffle_gemm bf16 48x64x512", "gemm/preshuffle_gemm.py", kind="bf16", m=48, n=64, k=512)
@case("preshuffle_gemm fp8 33x128x512", "gemm/preshuffle_gemm.py", kind="fp8", m=33, n=128, k=512)
@case("preshuffle_gemm int8 16x128x512", "gemm/preshuffle_gemm.py", kind="int8", m=16, n=128, k=512)
@case(
    "preshuffle_gemm bf16 gfx950",
    "gemm/preshuffle_gemm.py",
    target="gfx950",
    kind="bf16",
    m=33,
    n=64,
    k=512,
)
@case(
    "preshuffle_gemm fp8 gfx950",
    "gemm/preshuffle_gemm.py",
    target="gfx950",
    kind="fp8",
    m=16,
    n=64,
    k=512,
)
@case(
    "preshuffle_gemm fp16 bias_relu",
    "gemm/preshuffle_gemm.py",
    kind="fp16",
    m=20,
    n=64,
    k=256,
    epilogue="bias_relu",
)
def preshuffle(
    kind: str, m: int, n: int, k: int, epilogue: str = "none", tile: Any = None, **options: Any
) -> Iterator[Comparison]:
    """`tile`: rows, columns and depth of a block's tile. Options are the kernel's own."""
    from flydsl.runtime.device import get_rocm_arch
    from kernels.gemm.preshuffle_gemm import compile_preshuffle_gemm

    tile_m, tile_n, tile_k = tile or (16, 64, 256 if kind in ("fp8", "int8") else 128)
    launch = compile_preshuffle_gemm(
        N=n,
        K=k,
        tile_m=tile_m,
        tile_n=tile_n,
        tile_k=tile_k,
        in_dtype=kind,
        out_dtype="bf16",
        epilogue=epilogue,
        **options,
    )
    dtype = KINDS.get(kind, FP8[get_rocm_arch()])
    a, b = random(m, k), random(n, k, seed=1)
    scale_a = scale_b = torch.ones(1, 1)
    bias = random(n, seed=3, dtype=torch.bfloat16)
    if kind in ("fp16", "bf16"):
        a, b = a.to(dtype), b.to(dtype)
    else:
        (a, scale_a), (b, scale_b) = quantized(a, dtype), quantized(b, dtype)
    wanted = (a.float() * scale_a) @ (b.float() * scale_b).T
    if epilogue != "none":
        wanted = ACTIVATIONS[epilogue](wanted + bias.float())
    rows = -(-m // tile_m) * tile_m
    out = torch.full((rows, n), -8192.0, dtype=torch.bfloat16)
    flat = [one.view(torch.int8) if one.element_size() == 1 else one for one in (a, blocked(b))]
    # The kernel reads the scales of whole tiles, also of rows that A has not.
    held = torch.ones(rows)
    held[: scale_a.numel()] = scale_a.reshape(-1)
    scales = (held, scale_b.reshape(-1).contiguous())
    c = out[:m]
    launch(c.reshape(-1), *(one.reshape(-1) for one in flat), *scales, bias, m, n, stream())
    yield Comparison("c", c, wanted, 0.05, 0.02)
    yield Comparison("rows beyond", out[m:], torch.full_like(out[m:], -8192.0))


@case(
    "rdna3_f16_gemm bf16 128x128x64",
    "gemm/rdna3_f16_gemm.py",
    target="gfx1100",
    kind="bf16",
    out="bf16",
    size=(128, 128, 64),
)
@case(
    "rdna3_f16_gemm f16 256x128x128",
    "gemm/rdna3_f16_gemm.py",
    target="gfx1100",
    kind="f16",
    out="f32",
    size=(256, 128, 128),
)
@case(
    "rdna_f16_gemm bf16 128x128x64",
    "gemm/rdna_f16_gemm.py",
    target="gfx1201",
    kind="bf16",
    out="bf16",
    size=(128, 128, 64),
)
@case(
    "rdna_f16_gemm f16 256x128x128",
    "gemm/rdna_f16_gemm.py",
    target="gfx1201",
    kind="f16",
    out="f32",
    size=(256, 128, 128),
)
def wmma(
    kind: str, out: str, size: tuple[int, int, int], close: float = 0.1, **options: Any
) -> Iterator[Comparison]:
    from flydsl.runtime.device import get_rocm_arch

    if get_rocm_arch().startswith("gfx11"):
        from kernels.gemm.rdna3_f16_gemm import create_wmma_gemm_module
    else:
        from kernels.gemm.rdna_f16_gemm import create_wmma_gemm_module
    m, n, k = size
    launch, *_ = create_wmma_gemm_module(m, n, k, in_dtype=kind, out_dtype=out, **options)
    a, b = random(m, k, dtype=DTYPES[kind]), random(n, k, seed=1, dtype=DTYPES[kind])
    c = torch.zeros(m, n, dtype=DTYPES[out])
    launch(c, a, b, stream())
    yield Comparison("c", c, a.float() @ b.float().T, close, close / 10)


@case("rdna3_gemm_autotuned bf16 64x64x128", "gemm/rdna3_f16_gemm_autotune.py", target="gfx1100")
def autotuned() -> Iterator[Comparison]:
    from kernels.gemm.rdna3_f16_gemm_autotune import rdna3_gemm_autotuned

    a, b = random(64, 128, dtype=torch.bfloat16), random(64, 128, seed=1, dtype=torch.bfloat16)
    c = torch.zeros(64, 64, dtype=torch.bfloat16)
    rdna3_gemm_autotuned(c, a, b)
    yield Comparison("c", c, a.float() @ b.float().T, 0.1, 0.01)


@case(
    "rdna_fp8_preshuffle_gemm 32x128x128",
    "gemm/rdna_fp8_preshuffle_gemm.py",
    target="gfx1201",
    size=(32, 128, 128),
)
@case(
    "rdna_fp8_preshuffle_gemm 64x256x256",
    "gemm/rdna_fp8_preshuffle_gemm.py",
    target="gfx1201",
    size=(64, 256, 256),
)
def rdna_fp8(size: tuple[int, int, int], **options: int) -> Iterator[Comparison]:
    from kernels.gemm import rdna_fp8_preshuffle_gemm as module

    m, n, k = size
    launch = module.compile_fp8_gemm(M=m, N=n, K=k, **options)
    a, scale_a = module.fp8_quantize_per_token(random(m, k))
    b, scale_b = module.fp8_quantize_per_channel(random(k, n, seed=1))
    c = torch.zeros(m, n, dtype=torch.bfloat16)
    wanted = (a.float() * scale_a[:, None]) @ (b.float() * scale_b[None])
    given = (a.view(torch.float32), module.preshuffle_b_fp8(b).view(torch.float32))
    launch(c, *given, scale_a, scale_b, stream())
    yield Comparison("c", c, wanted, 0.1, 0.02)
