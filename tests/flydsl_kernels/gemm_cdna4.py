"""Cases of kernels/gemm on gfx950."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from flydsl_kernels.case import Comparison, case, pointer, random
from flydsl_kernels.gemm import quantized, stream

# The magnitudes of four-bit floats (E2M1, OCP Microscaling Formats 1.0, 5.3.3).
E2M1 = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])


def microscaled(
    rows: int, columns: int, seed: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Random packed four-bit floats, scales of 32 (E8M0 bytes), and the numbers that they mean."""
    generator = torch.Generator().manual_seed(seed)
    codes = torch.randint(0, 16, (rows, columns), generator=generator, dtype=torch.uint8)
    scales = torch.randint(124, 130, (rows, columns // 32), generator=generator, dtype=torch.uint8)
    values = E2M1[(codes & 7).long()] * torch.where(codes >= 8, -1.0, 1.0)
    meant = values * torch.exp2(scales.float() - 127).repeat_interleave(32, 1)
    return codes[:, 0::2] | codes[:, 1::2] << 4, scales, meant


def blocks_of_16(b: torch.Tensor) -> torch.Tensor:
    """Rows in groups of 16; of each, 16 bytes of every row in turn."""
    rows, size = b.shape
    parts = b.reshape(rows // 16, 16, size // 64, 4, 16)
    return parts.permute(0, 2, 3, 1, 4).contiguous().reshape(rows, size)


def scale_blocks(scales: torch.Tensor) -> torch.Tensor:
    """Scales in the order of the lanes that need them: blocks of 32 rows by 8 columns."""
    rows, columns = scales.shape
    parts = scales.reshape(rows // 32, 2, 16, columns // 8, 2, 4)
    return parts.permute(0, 3, 5, 2, 4, 1).contiguous().reshape(rows, columns)


@case(
    "fp8_gemm_8wave 128x256x256",
    "gemm/fp8_gemm_8wave.py",
    target="gfx950",
    waves=8,
    size=(128, 256, 256),
)
@case(
    "fp8_gemm_8wave preshuffled",
    "gemm/fp8_gemm_8wave.py",
    target="gfx950",
    waves=8,
    size=(128, 256, 384),
    shuffled=True,
)
@case(
    "fp8_gemm_4wave 64x64x256",
    "gemm/fp8_gemm_4wave.py",
    target="gfx950",
    waves=4,
    size=(64, 64, 256),
)
@case(
    "fp8_gemm_4wave preshuffled",
    "gemm/fp8_gemm_4wave.py",
    target="gfx950",
    waves=4,
    size=(128, 128, 384),
    shuffled=True,
)
def fp8(
    waves: int,
    size: tuple[int, int, int],
    shuffled: bool = False,
    block: tuple[int, int] | None = None,
    **options: bool,
) -> Iterator[Comparison]:
    from kernels.gemm.fp8_gemm_4wave import compile_fp8_gemm_4w
    from kernels.gemm.fp8_gemm_8wave import compile_fp8_gemm_8w

    m, n, k = size
    build = compile_fp8_gemm_8w if waves == 8 else compile_fp8_gemm_4w
    block = block or ((128, 256) if waves == 8 else (64, 64))
    launch = build(K=k, BLOCK_M=block[0], BLOCK_N=block[1], b_preshuffled=shuffled, **options)
    a, scale_a = quantized(random(m, k), torch.float8_e4m3fn)
    b, scale_b = quantized(random(n, k, seed=1), torch.float8_e4m3fn)
    bits = b.view(torch.int8)
    if shuffled:
        bits = bits.reshape(n // 16, 16, k // 64, 4, 16).permute(0, 2, 3, 1, 4).contiguous()
    c = torch.zeros(m, n, dtype=torch.bfloat16)
    flat = (a.view(torch.int8), bits, c, scale_a, scale_b)
    launch(*(one.reshape(-1) for one in flat), m, n, stream())
    wanted = (a.float() * scale_a) @ (b.float() * scale_b).T
    yield Comparison("c", c, wanted, 0.1, 0.02)


@case("fp4_gemm_4wave 256x256x1024", "gemm/fp4_gemm_4wave.py", target="gfx950")
def fp4(m: int = 256, n: int = 256, k: int = 1024) -> Iterator[Comparison]:
    from kernels.gemm.fp4_gemm_4wave import compile_fp4_gemm_4w

    a, scale_a, fine_a = microscaled(m, k, 0)
    b, scale_b, fine_b = microscaled(n, k, 1)
    c = torch.zeros(m, n, dtype=torch.bfloat16)
    scales = (scale_blocks(scale_a), scale_blocks(scale_b))
    flat = (a, blocks_of_16(b), c, *scales)
    compile_fp4_gemm_4w(K=k, MN=(m, n))(*(one.reshape(-1) for one in flat), m, n, stream())
    yield Comparison("c", c, fine_a @ fine_b.T, 1.0, 0.02)


@case(
    "mxfp4_preshuffle fp4 40x128x256",
    "gemm/mxfp4_preshuffle.py",
    target="gfx950",
    m=40,
    n=128,
    k=256,
)
@case(
    "mxfp4_preshuffle fp4 64x256x512",
    "gemm/mxfp4_preshuffle.py",
    target="gfx950",
    m=64,
    n=256,
    k=512,
)
def mxfp4(
    m: int, n: int, k: int, tile: tuple[int, int, int] = (32, 128, 256)
) -> Iterator[Comparison]:
    from kernels.gemm.mxfp4_preshuffle import launch_gemm

    rows = -(-m // 32) * 32
    a, scale_a, fine_a = microscaled(rows, k, 0)
    b, scale_b, fine_b = microscaled(n, k, 1)
    out = torch.zeros(m, n, dtype=torch.bfloat16)
    given = (a[:m].contiguous(), blocks_of_16(b), scale_blocks(scale_a), scale_blocks(scale_b))
    held = (out.view(torch.uint8), *given)
    strides = (-1,) * 6
    kinds = ("fp4", "bf16", "fp4")
    launch_gemm(*map(pointer, held), m, n, stream(), n, k, *tile, *kinds, 1, *strides, 0)
    yield Comparison("c", out, fine_a[:m] @ fine_b.T, 1.0, 0.02)


@case(
    "gemm_a16w16 bf16 nt 100x96x128",
    "gemm/gemm_a16w16_gfx950.py",
    target="gfx950",
    kind=torch.bfloat16,
    layout="nt",
    size=(100, 96, 128),
)
@case(
    "gemm_a16w16 fp16 nn bias",
    "gemm/gemm_a16w16_gfx950.py",
    target="gfx950",
    kind=torch.float16,
    layout="nn",
    size=(64, 128, 192),
    bias=True,
)
@case(
    "gemm_a16w16 bf16 tt split",
    "gemm/gemm_a16w16_gfx950.py",
    target="gfx950",
    kind=torch.bfloat16,
    layout="tt",
    size=(128, 128, 256),
    split=2,
)
def a16w16(
    kind: torch.dtype,
    layout: str,
    size: tuple[int, int, int],
    bias: bool = False,
    split: int = 1,
    out: torch.dtype | None = None,
    **options: Any,
) -> Iterator[Comparison]:
    from kernels.gemm.gemm_a16w16_gfx950 import gemm_a16w16

    m, n, k = size
    a, b = random(m, k, dtype=kind), random(k, n, seed=1, dtype=kind)
    if layout[0] == "t":
        a = a.t().contiguous().t()
    if layout[1] == "t":
        b = b.t().contiguous().t()
    c = torch.zeros(m, n, dtype=out or kind)
    added = random(n, seed=2, dtype=kind) if bias else None
    asked = {
        "block_m": 64,
        "block_n": 64,
        "block_k": 64,
        "stages": 2,
        "m_waves": 2,
        "n_waves": 2,
        "k_waves": 1,
        "group_m": 0,
        "use_half_tile_interleaved": False,
        "split_k": split,
        **options,
    }
    gemm_a16w16(a, b, c, bias=added, user_kwargs=asked, layout=layout)
    wanted = a.float() @ b.float() + (0 if added is None else added.float())
    slices = split * int(options.get("k_waves", 1))  # of K, whose sums are rounded to 16 bits
    yield Comparison("c", c, wanted, 0.1 * slices, 0.02)
