"""Cases of kernels/norm: a residual or scales and quantization too, and gradients in two stages."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.nn import functional

from flydsl_kernels.case import DTYPES, Comparison, case, random
from flydsl_kernels.norm import CLOSE, RED, _norm_parts, _rms

LAYERNORM, RMSNORM = "norm/layernorm_kernel.py", "norm/rmsnorm_kernel.py"
BACKWARD = "norm/rmsnorm_bwd_kernel.py"


@case("layernorm_smoothquant bf16 3x1500", LAYERNORM, race=RED, what="layernorm", fused=False,
      smooth=True, columns=1500, dtype="bf16")  # fmt: skip
@case("fused_add_layernorm_dynamicquant f16 2x2048", LAYERNORM, race=RED, what="layernorm",
      fused=True, smooth=False, columns=2048, dtype="f16")  # fmt: skip
@case("fused_add_layernorm_smoothquant f32 3x77", LAYERNORM, race=RED, what="layernorm",
      fused=True, smooth=True, columns=77, dtype="f32", target="gfx1201")  # fmt: skip
@case("fused_add_rmsnorm_dynamicquant f32 2x1000", RMSNORM, race=RED, what="rmsnorm", fused=True,
      smooth=False, columns=1000, dtype="f32")  # fmt: skip
@case("fused_add_rmsnorm_smoothquant bf16 3x4096", RMSNORM, race=RED, what="rmsnorm", fused=True,
      smooth=True, columns=4096, dtype="bf16", target="gfx950")  # fmt: skip
def quantized(
    what: str, fused: bool, smooth: bool, columns: int, dtype: str
) -> Iterator[Comparison]:
    import importlib

    module = importlib.import_module(f"kernels.norm.{what}_kernel")
    x, gamma, beta, _ = _norm_parts(3, columns, dtype)
    residual, total = random(3, columns, seed=4, dtype=x.dtype), torch.zeros_like(x)
    weights = random(columns, seed=9, dtype=x.dtype).abs() + 0.5
    q, scale = torch.zeros(3, columns, dtype=torch.int8), torch.zeros(3)
    given = [x, *([residual] if fused else []), gamma, *([beta] if what == "layernorm" else [])]
    given += [*([weights] if smooth else []), q, *([total] if fused else []), scale]
    name = f"{'fused_add_' * fused}{what}_{'smooth' if smooth else 'dynamic'}quant"
    getattr(module, f"build_{name}_module")(columns, dtype)(*given, 3)
    if fused:
        x = (x.float() + residual.float()).to(x.dtype)
        yield Comparison("total", total, x, *CLOSE[dtype])
    if what == "layernorm":
        wanted = functional.layer_norm(x.double(), (columns,), gamma.double(), beta.double())
    else:
        wanted = _rms(x, gamma)
    wanted = wanted * (weights.double() if smooth else 1)
    step = wanted.abs().amax(1, keepdim=True) / 127
    yield Comparison("scale", scale, step[:, 0], 1e-4, 1e-2)
    yield Comparison("q · scale", q.double() * scale[:, None] / step, wanted / step, 1.6)


@case("fused_add_rmsnorm_bwd f16 4x520", BACKWARD, dtype="f16", rows=4, columns=520, fused=True)
@case("rmsnorm_bwd_two_stage bf16 9x1024", BACKWARD, dtype="bf16", rows=9, columns=1024,
      programs=4)  # fmt: skip
@case("fused_add_rmsnorm_bwd_two_stage f32 5x300", BACKWARD, dtype="f32", rows=5, columns=300,
      fused=True, programs=8, target="gfx1201")  # fmt: skip
def gradients(
    dtype: str, rows: int, columns: int, fused: bool = False, programs: int = 0
) -> Iterator[Comparison]:
    """`programs`: blocks that sum the weights' gradient in parts, so that it has the weights'
    type; without them it is summed by atomics, in f32."""
    from kernels.norm import rmsnorm_bwd_kernel as module

    x, gamma, _, dx = _norm_parts(rows, columns, dtype)
    dy, dresidual = (random(rows, columns, seed=n, dtype=DTYPES[dtype]) for n in (5, 6))
    rstd = (x.float().square().mean(1) + 1e-5).rsqrt()
    dgamma = torch.zeros(columns, dtype=x.dtype if programs else torch.float32)
    parts = torch.zeros(max(programs, 1), columns)
    build = getattr(
        module, f"build_{'fused_add_' * fused}rmsnorm_bwd{'_two_stage' * bool(programs)}_module"
    )
    launch = build(columns, dtype, *([programs] if programs else []))
    given = [x, gamma, dy, *([dresidual] if fused else []), rstd, dx, dgamma]
    launch(*given, *([parts] if programs else []), rows)
    fine, scale = x.double().requires_grad_(), gamma.double().requires_grad_()
    _rms(fine, scale).backward(dy.double())
    wanted = fine.grad + (dresidual.double() if fused else 0)
    yield Comparison("dx", dx, wanted, *CLOSE[dtype])
    close = CLOSE[dtype] if programs else (1e-3, 1e-3)
    yield Comparison("dgamma", dgamma, scale.grad, *close)
