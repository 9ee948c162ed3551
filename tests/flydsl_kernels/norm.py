"""Cases of kernels/norm."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.nn import functional

from flydsl_kernels.case import DTYPES, Comparison, case, pointer, random

CLOSE = {"f32": (1e-5, 1e-5), "f16": (2e-3, 2e-3), "bf16": (2e-2, 1e-2)}
RED = "s_red[0] is read by all waves while wave 0 writes the next reduction's partial result to it"


@case("softmax f32 3x1000", "norm/softmax_kernel.py", race=RED, rows=3, columns=1000, dtype="f32")
@case("softmax f16 2x2048", "norm/softmax_kernel.py", race=RED, rows=2, columns=2048, dtype="f16")
@case("softmax bf16 5x333", "norm/softmax_kernel.py", race=RED, rows=5, columns=333, dtype="bf16")
def softmax(rows: int, columns: int, dtype: str) -> Iterator[Comparison]:
    from kernels.norm.softmax_kernel import build_softmax_module

    a = random(rows, columns, dtype=DTYPES[dtype])
    c = torch.zeros_like(a)
    build_softmax_module(rows, columns, dtype)(a, c, rows)
    yield Comparison("c", c, torch.softmax(a.float(), 1), *CLOSE[dtype])


@case("softmax_bwd f32 3x777", "norm/softmax_bwd_kernel.py", rows=3, columns=777, dtype="f32")
@case("softmax_bwd bf16 2x2048", "norm/softmax_bwd_kernel.py", rows=2, columns=2048, dtype="bf16")
def softmax_bwd(rows: int, columns: int, dtype: str) -> Iterator[Comparison]:
    from kernels.norm.softmax_bwd_kernel import build_softmax_bwd_module

    y = torch.softmax(random(rows, columns), 1).to(DTYPES[dtype])
    dy = random(rows, columns, seed=1, dtype=DTYPES[dtype])
    dx = torch.zeros_like(y)
    build_softmax_bwd_module(columns, dtype)(dy, y, dx, rows)
    fine, steep = y.double(), dy.double()
    wanted = fine * (steep - (fine * steep).sum(1, keepdim=True))
    yield Comparison("dx", dx, wanted, *CLOSE[dtype])


def _norm_parts(rows: int, columns: int, dtype: str) -> tuple[torch.Tensor, ...]:
    kind = DTYPES[dtype]
    x = random(rows, columns, dtype=kind)
    gamma, beta = random(columns, seed=1, dtype=kind), random(columns, seed=2, dtype=kind)
    return x, gamma, beta, torch.zeros_like(x)


@case("layernorm f32 3x600", "norm/layernorm_kernel.py", rows=3, columns=600, dtype="f32")
@case("layernorm f16 2x8192", "norm/layernorm_kernel.py", rows=2, columns=8192, dtype="f16")
@case("layernorm bf16 3x2048", "norm/layernorm_kernel.py", rows=3, columns=2048, dtype="bf16")
def layernorm(rows: int, columns: int, dtype: str) -> Iterator[Comparison]:
    from kernels.norm.layernorm_kernel import build_layernorm_module

    x, gamma, beta, y = _norm_parts(rows, columns, dtype)
    build_layernorm_module(columns, dtype)(*map(pointer, (x, gamma, beta, y)), rows)
    wanted = functional.layer_norm(x.float(), (columns,), gamma.float(), beta.float())
    yield Comparison("y", y, wanted, *CLOSE[dtype])


@case("layernorm_bwd f32 3x600", "norm/layernorm_kernel.py", rows=3, columns=600, dtype="f32")
@case("layernorm_bwd bf16 2x4096", "norm/layernorm_kernel.py", rows=2, columns=4096, dtype="bf16")
def layernorm_bwd(rows: int, columns: int, dtype: str) -> Iterator[Comparison]:
    from kernels.norm.layernorm_kernel import build_layernorm_bwd_module

    x, gamma, _, dx = _norm_parts(rows, columns, dtype)
    dy = random(rows, columns, seed=5, dtype=DTYPES[dtype])
    mean = x.float().mean(1)
    rstd = (x.float().var(1, unbiased=False) + 1e-5).rsqrt()
    dgamma, dbeta = torch.zeros(columns), torch.zeros(columns)
    given = (x, gamma, dy, mean, rstd, dx, dgamma, dbeta)
    build_layernorm_bwd_module(columns, dtype)(*map(pointer, given), rows)
    fine, scale, shift = (one.double().requires_grad_() for one in (x, gamma, torch.zeros(columns)))
    functional.layer_norm(fine, (columns,), scale, shift, 1e-5).backward(dy.double())
    yield Comparison("dx", dx, fine.grad, *((1e-4, 1e-4) if dtype == "f32" else CLOSE[dtype]))
    yield Comparison("dgamma", dgamma, scale.grad, 1e-4, 1e-4)
    yield Comparison("dbeta", dbeta, shift.grad, 1e-4, 1e-4)


@case(
    "fused_add_layernorm bf16 3x2048",
    "norm/layernorm_kernel.py",
    rows=3,
    columns=2048,
    dtype="bf16",
)
@case("fused_add_layernorm f16 2x513", "norm/layernorm_kernel.py", rows=2, columns=513, dtype="f16")
def fused_add_layernorm(rows: int, columns: int, dtype: str) -> Iterator[Comparison]:
    from kernels.norm.layernorm_kernel import build_fused_add_layernorm_module

    x, gamma, beta, y = _norm_parts(rows, columns, dtype)
    residual = random(rows, columns, seed=4, dtype=DTYPES[dtype])
    total = torch.zeros_like(x)
    given = (x, residual, gamma, beta, y, total)
    build_fused_add_layernorm_module(columns, dtype)(*given, rows)
    added = (x.float() + residual.float()).to(x.dtype).float()
    wanted = functional.layer_norm(added, (columns,), gamma.float(), beta.float())
    yield Comparison("total", total, added, *CLOSE[dtype])
    yield Comparison("y", y, wanted, *(2 * one for one in CLOSE[dtype]))


@case(
    "layernorm_dynamicquant bf16 3x2048",
    "norm/layernorm_kernel.py",
    race=RED,
    columns=2048,
    dtype="bf16",
)
@case(
    "layernorm_dynamicquant f32 3x700",
    "norm/layernorm_kernel.py",
    race=RED,
    columns=700,
    dtype="f32",
)
def layernorm_dynamicquant(columns: int, dtype: str) -> Iterator[Comparison]:
    from kernels.norm.layernorm_kernel import build_layernorm_dynamicquant_module

    x, gamma, beta, _ = _norm_parts(3, columns, dtype)
    q, scale = torch.zeros(3, columns, dtype=torch.int8), torch.zeros(3)
    given = (x, gamma, beta, q, scale)
    build_layernorm_dynamicquant_module(columns, dtype)(*given, 3)
    wanted = functional.layer_norm(x.float(), (columns,), gamma.float(), beta.float())
    yield Comparison("scale", scale, wanted.abs().amax(1) / 127, 1e-4, 1e-2)
    step = (wanted.abs().amax(1) / 127)[:, None]
    yield Comparison("q · scale", q.float() * scale[:, None] / step, wanted / step, 1.6)


@case("rmsnorm f32 3x600", "norm/rmsnorm_kernel.py", rows=3, columns=600, dtype="f32")
@case("rmsnorm bf16 2x8192", "norm/rmsnorm_kernel.py", rows=2, columns=8192, dtype="bf16")
@case("rmsnorm f16 5x128", "norm/rmsnorm_kernel.py", rows=5, columns=128, dtype="f16")
def rmsnorm(
    rows: int, columns: int, dtype: str, weights: str | None = None, eps: float = 1e-5
) -> Iterator[Comparison]:
    """With another type of weights the kernel stores its factors 1 / rms too."""
    from kernels.norm.rmsnorm_kernel import build_rmsnorm_module

    x, gamma, _, y = _norm_parts(rows, columns, dtype)
    if weights is None:
        build_rmsnorm_module(columns, dtype, eps=eps)(x, gamma, y, rows)
    else:
        gamma, rstd = gamma.to(DTYPES[weights]), torch.zeros(rows)
        build = build_rmsnorm_module(columns, dtype, True, eps, weight_dtype_str=weights)
        build(x, gamma, y, rstd, rows)
        factors = (x.double().square().mean(1) + eps).rsqrt()
        yield Comparison("rstd", rstd, factors, 1e-5, 1e-5)
    yield Comparison("y", y, _rms(x, gamma, eps), *CLOSE[dtype])


def _rms(x: torch.Tensor, gamma: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    fine = x.double()
    return fine * (fine.square().mean(1, keepdim=True) + eps).rsqrt() * gamma.double()


@case("fused_add_rmsnorm bf16 3x4096", "norm/rmsnorm_kernel.py", rows=3, columns=4096, dtype="bf16")
@case("fused_add_rmsnorm f32 2x300", "norm/rmsnorm_kernel.py", rows=2, columns=300, dtype="f32")
def fused_add_rmsnorm(rows: int, columns: int, dtype: str) -> Iterator[Comparison]:
    from kernels.norm.rmsnorm_kernel import build_fused_add_rmsnorm_module

    x, gamma, _, y = _norm_parts(rows, columns, dtype)
    residual, total = random(rows, columns, seed=4, dtype=x.dtype), torch.zeros_like(x)
    given = (x, residual, gamma, y, total)
    build_fused_add_rmsnorm_module(columns, dtype)(*given, rows)
    added = (x.float() + residual.float()).to(x.dtype)
    yield Comparison("total", total, added, *CLOSE[dtype])
    yield Comparison("y", y, _rms(added, gamma), *(2 * one for one in CLOSE[dtype]))


@case(
    "rmsnorm_dynamicquant bf16 3x2048",
    "norm/rmsnorm_kernel.py",
    race=RED,
    columns=2048,
    dtype="bf16",
    smooth=False,
)
@case(
    "rmsnorm_smoothquant f16 3x700",
    "norm/rmsnorm_kernel.py",
    race=RED,
    columns=700,
    dtype="f16",
    smooth=True,
)
def rmsnorm_quant(columns: int, dtype: str, smooth: bool) -> Iterator[Comparison]:
    from kernels.norm import rmsnorm_kernel

    x, gamma, _, _ = _norm_parts(3, columns, dtype)
    q, scale = torch.zeros(3, columns, dtype=torch.int8), torch.zeros(3)
    weights = random(columns, seed=9, dtype=x.dtype).abs() + 0.5
    if smooth:
        build, given = (
            rmsnorm_kernel.build_rmsnorm_smoothquant_module,
            (x, gamma, weights, q, scale),
        )
    else:
        build, given = rmsnorm_kernel.build_rmsnorm_dynamicquant_module, (x, gamma, q, scale)
    build(columns, dtype)(*given, 3)
    wanted = _rms(x, gamma) * (weights.double() if smooth else 1)
    step = wanted.abs().amax(1, keepdim=True) / 127
    yield Comparison("scale", scale, step[:, 0], 1e-4, 1e-2)
    yield Comparison("q · scale", q.double() * scale[:, None] / step, wanted / step, 1.6)


@case("rmsnorm_bwd f32 3x600", "norm/rmsnorm_bwd_kernel.py", rows=3, columns=600, dtype="f32")
@case("rmsnorm_bwd bf16 2x2048", "norm/rmsnorm_bwd_kernel.py", rows=2, columns=2048, dtype="bf16")
def rmsnorm_bwd(rows: int, columns: int, dtype: str) -> Iterator[Comparison]:
    from kernels.norm.rmsnorm_bwd_kernel import build_rmsnorm_bwd_module

    x, gamma, _, dx = _norm_parts(rows, columns, dtype)
    dy = random(rows, columns, seed=5, dtype=x.dtype)
    rstd = (x.float().square().mean(1) + 1e-5).rsqrt()
    dgamma = torch.zeros(columns)
    given = (x, gamma, dy, rstd, dx, dgamma)
    build_rmsnorm_bwd_module(columns, dtype)(*given, rows)
    fine, scale = x.double().requires_grad_(), gamma.double().requires_grad_()
    _rms(fine, scale).backward(dy.double())
    yield Comparison("dx", dx, fine.grad, *CLOSE[dtype])
    yield Comparison("dgamma", dgamma, scale.grad, 1e-3, 1e-3)


@case("rmsnorm_autotuned bf16 3x4096", "norm/rmsnorm_autotune.py")
def rmsnorm_autotuned() -> Iterator[Comparison]:
    from kernels.norm.rmsnorm_autotune import rmsnorm_autotuned

    x, gamma, _, y = _norm_parts(3, 4096, "bf16")
    rmsnorm_autotuned(x, gamma, y, 3)
    yield Comparison("y", y, _rms(x, gamma), *CLOSE["bf16"])
