"""Cases of gfx1250: products of fp8 and fp4 with scales, moved by the tensor data mover."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from flydsl_kernels.case import Comparison, case
from flydsl_kernels.gemm import stream

E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
E2M1 = torch.cat([E2M1, -E2M1])
OUTPUTS = {"bf16": torch.bfloat16, "f16": torch.float16}


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def floats8(rows: int, columns: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Bytes that are E4M3 numbers of both signs up to 8, and their values."""
    codes = torch.randint(0, 0x51, (rows, columns), generator=generator(seed))
    signs = torch.randint(0, 2, (rows, columns), generator=generator(seed + 100)) << 7
    made = (codes | signs).to(torch.uint8)
    return made, made.view(torch.float8_e4m3fn).double()


def floats4(rows: int, columns: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Bytes of two E2M1 numbers each, the lower half first, and their values."""
    made = torch.randint(0, 256, (rows, columns // 2), generator=generator(seed))
    values = torch.stack([E2M1[made & 15], E2M1[made >> 4]], -1).reshape(rows, columns)
    return made.to(torch.uint8), values.double()


def scales(rows: int, blocks: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """E8M0 numbers from 1/4 to 4, and their values."""
    made = torch.randint(125, 130, (rows, blocks), generator=generator(seed))
    return made.to(torch.uint8), 2.0 ** (made.double() - 127)


def in_tiles(bits: torch.Tensor) -> torch.Tensor:
    """Rows in groups of 16, with 16 bytes of each row in turn."""
    rows, columns = bits.shape
    return bits.reshape(rows // 16, 16, columns // 16, 16).permute(0, 2, 1, 3).contiguous()


def in_words(bits: torch.Tensor) -> torch.Tensor:
    """Scales in groups of 32 rows, with four scales of each row in turn. Missing rows are zero."""
    rows, blocks = bits.shape
    groups = -(-rows // 32)
    held = torch.zeros(groups * 32, blocks, dtype=torch.uint8)
    held[:rows] = bits
    return held.reshape(groups, 32, blocks // 4, 4).permute(0, 2, 1, 3).reshape(groups, -1)


def address(tensor: torch.Tensor) -> Any:
    import ctypes

    import flydsl.compiler as flyc
    import flydsl.expr as fx

    return flyc.from_c_void_p(fx.Int8, ctypes.c_void_p(tensor.data_ptr()))


def strided(bits: torch.Tensor, stride: int) -> torch.Tensor:
    """A matrix with `stride` elements from row to row; those beyond its columns are not zero."""
    held = torch.full((bits.shape[0], stride), 0x38, dtype=bits.dtype)
    held[:, : bits.shape[1]] = bits
    return held


def output(m: int, stride: int, kind: str) -> torch.Tensor:
    return torch.full((m + 3, stride), -8192.0, dtype=OUTPUTS[kind])


def compared(c: torch.Tensor, wanted: torch.Tensor, kind: str) -> Iterator[Comparison]:
    """Also that nothing beyond the result's rows and columns was written."""
    m, n = wanted.shape
    unit = 2.0**-8 if kind == "bf16" else 2.0**-11
    yield Comparison("c", c[:m, :n], wanted, float(wanted.abs().mean()) * 1e-4, 2 * unit)
    rest = c.clone()
    rest[:m, :n] = -8192.0
    yield Comparison("what is beyond", rest, torch.full_like(rest, -8192.0))


FILE = "gemm/gemm_a8w4_mxscale_gfx1250.py"


@case("gemm_a8w4 33x64x512", FILE, target="gfx1250", size=(33, 64, 512, 64, 64, 128, 2, 2, 2))
@case(
    "gemm_a8w4 128x256x512 f16",
    FILE,
    target="gfx1250",
    size=(128, 256, 512, 128, 256, 128, 2, 2, 2),
    kind="f16",
)
@case(
    "gemm_a8w4 100x128x768 strides, three buffers",
    FILE,
    target="gfx1250",
    size=(100, 128, 768, 64, 64, 256, 2, 1, 3),
    extra=(64, 96),
)
@case("gemm_a8w4 1x64x256", FILE, target="gfx1250", size=(1, 64, 256, 32, 32, 128, 1, 2, 2))
@case(
    "gemm_a8w4 130x128x512 cluster",
    FILE,
    target="gfx1250",
    size=(130, 128, 512, 64, 64, 128, 2, 2, 2),
    cluster=(2, 2),
)
def mx_scaled(
    size: tuple[int, ...],
    kind: str = "bf16",
    extra: tuple[int, int] = (0, 0),
    cluster: tuple[int, int] = (1, 1),
) -> Iterator[Comparison]:
    from kernels.gemm.gemm_a8w4_mxscale_gfx1250 import launch_gemm_a8w4_mxscale

    m, n, k, *tile = size
    (a, a_values), (b, b_values) = floats8(m, k, 0), floats4(n, k, 1)
    (sa, sa_values), (sb, sb_values) = scales(m, k // 32, 2), scales(n, k // 32, 3)
    left, right = (
        values * scale.repeat_interleave(32, 1)
        for values, scale in ((a_values, sa_values), (b_values, sb_values))
    )
    lda, ldc = k + extra[0], n + extra[1]
    c, held, tiled = output(m, ldc, kind), strided(a, lda), in_tiles(b)
    operands = (c, address(held), address(tiled), in_words(sa), in_words(sb), m, stream())
    *tile, buffers = tile
    options = (*tile, int(kind == "f16"), buffers, *cluster)
    launch_gemm_a8w4_mxscale(*operands, n, k, lda, ldc, *options)
    yield from compared(c, left @ right.T, kind)


FILE8 = "gemm/gemm_a8w8_gfx1250.py"


@case("gemm_a8w8 64x64x512", FILE8, target="gfx1250", size=(64, 64, 512, 64, 64, 128, 2, 2, 2))
@case(
    "gemm_a8w8 33x96x512 strides, f16",
    FILE8,
    target="gfx1250",
    size=(33, 96, 512, 32, 96, 128, 1, 2, 3),
    kind="f16",
    extra=(128, 64),
)
@case(
    "gemm_a8w8 100x256x512 quadrants",
    FILE8,
    target="gfx1250",
    size=(100, 256, 512, 128, 128, 256, 2, 2, 2),
)
@case(
    "gemm_a8w8 block scales 65x256x512",
    FILE8,
    target="gfx1250",
    size=(65, 256, 512, 64, 128, 128, 2, 2, 2),
    blocks=True,
)
@case(
    "gemm_a8w8 block scales 40x384x512 unaligned",
    FILE8,
    target="gfx1250",
    size=(40, 384, 512, 32, 192, 128, 1, 2, 2),
    blocks=True,
)
@case(
    "gemm_a8w8 130x128x512 cluster",
    FILE8,
    target="gfx1250",
    size=(130, 128, 512, 64, 64, 128, 2, 2, 2),
    cluster=(2, 1),
)
def products8(
    size: tuple[int, ...],
    kind: str = "bf16",
    extra: tuple[int, int] = (0, 0),
    cluster: tuple[int, int] = (1, 1),
    blocks: bool = False,
) -> Iterator[Comparison]:
    """Scales of rows and columns in f32, or (`blocks`) E8M0 for blocks of 128 values of A and
    128 x 128 of B."""
    from kernels.gemm.gemm_a8w8_gfx1250 import launch_gemm_a8w8

    m, n, k, *tile, buffers = size
    (a, left), (b, right) = floats8(m, k, 0), floats8(n, k, 1)
    if blocks:
        (sa, sa_values), (sb, sb_values) = scales(m, k // 128, 2), scales(n // 128, k // 128, 3)
        left = left * sa_values.repeat_interleave(128, 1)
        right = right * sb_values.repeat_interleave(128, 0).repeat_interleave(128, 1)
        sa = sa.T.contiguous()
        wanted = left @ right.T
    else:
        sa, sb = (torch.rand(one, generator=generator(one)) * 0.01 + 0.01 for one in (m, n))
        wanted = (left @ right.T) * sa.double()[:, None] * sb.double()
    lda, ldc = k + extra[0], n + extra[1]
    c, held, tiled = output(m, ldc, kind), strided(a, lda), in_tiles(b)
    operands = (address(one) for one in (c, held, tiled, sa, sb))
    sizes = (n, k, m if blocks else 0, lda, ldc)
    options = (*tile, int(kind == "f16"), buffers, *cluster, blocks)
    launch_gemm_a8w8(*operands, m, stream(), *sizes, *options)
    yield from compared(c, wanted, kind)
