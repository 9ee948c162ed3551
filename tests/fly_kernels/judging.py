"""Judges kernels of `fly.kernels` by torch: in f64, and by the error of torch in their own type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

SLACK = 2.0  # how many times torch's own error is allowed
ROUNDINGS = 4.0  # and how many roundings of the result's type, where torch rounds later


def tensor(seed: int, shape: tuple[int, ...], dtype: torch.dtype, scale: float = 3.0) -> Any:
    """Normally distributed numbers."""
    random = torch.Generator().manual_seed(seed)
    numbers = torch.randn(shape, generator=random, dtype=torch.float64) * scale
    return numbers.to(dtype)


def error(found: torch.Tensor, exact: torch.Tensor) -> float:
    """The greatest difference. NaN and infinities must be where they are in `exact`."""
    found = found.double()
    assert found.shape == exact.shape, f"{tuple(found.shape)}, not {tuple(exact.shape)}"
    finite = exact.isfinite()
    torch.testing.assert_close(found[~finite], exact[~finite], equal_nan=True, rtol=0, atol=0)
    return float((found - exact)[finite].abs().max()) if finite.any() else 0.0


def judge(
    found: Any,
    reference: Callable[..., Any],
    *arguments: Any,
    same_type: bool = True,
    roundings: float = ROUNDINGS,
) -> None:
    """Compares results with `reference(*arguments)` in f64. Allowed is SLACK times the error that
    the reference has in the arguments' own type, and so many roundings of the greatest number."""
    exact = reference(*map(_double, arguments))
    own = reference(*arguments)
    several = (found, exact, own) if isinstance(exact, tuple) else ((found,), (exact,), (own,))
    for ours, right, torchs in zip(*several, strict=True):
        if same_type:
            assert ours.dtype == torchs.dtype
        finite = right[right.isfinite()]
        greatest = float(finite.abs().max()) if finite.numel() else 0.0
        allowed = SLACK * error(torchs, right) + roundings * greatest * torch.finfo(ours.dtype).eps
        assert (worst := error(ours, right)) <= allowed, f"{worst:.3g} > {allowed:.3g}"


def check_quantized(found: Any, exact: torch.Tensor, dtype: str) -> None:
    """Compares (y, scales) of a type of 8 bits with the exact numbers: each is as close as any of
    its type is, with the row's scale."""
    y, scales = found
    kind = getattr(torch, dtype)
    assert (y.dtype, scales.dtype) == (kind, torch.float32)
    every = torch.arange(256, dtype=torch.uint8).view(kind).double()
    every = every[every.isfinite() & (every > -128)]
    greatest = exact.abs().amax(-1)
    torch.testing.assert_close(scales.double() * every.max(), greatest, rtol=1e-2, atol=0)
    wanted = exact / scales[..., None].double()
    nearest = (every - wanted[..., None]).abs().amin(-1)
    assert ((y.double() - wanted).abs() <= nearest + wanted.abs() * 4e-3).all()


def gradients(function: Callable[..., Any], *arguments: Any, seed: int = 99) -> tuple[Any, ...]:
    """The gradients of the floating-point tensors among `arguments`, for random gradients of the
    result."""
    inputs = [one.detach().clone().requires_grad_() if _is_float(one) else one for one in arguments]
    made = function(*inputs)
    wanted = [one for one in inputs if _is_float(one)]
    return torch.autograd.grad(made, wanted, tensor(seed, made.shape, made.dtype, 1.0))


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _double(value: Any) -> Any:
    return value.double() if _is_float(value) else value
