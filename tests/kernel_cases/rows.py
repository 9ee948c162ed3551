"""Calls of kernels of rows."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from fly_kernels.judging import check_quantized

from fly import kernels
from kernel_cases.case import Case
from kernel_cases.choice import FLOATS, INTEGERS, Choice

# By target, the types of 8 bits that it converts to.
EIGHT_BITS = {
    "gfx942": ("int8", "float8_e4m3fnuz", "float8_e5m2fnuz"),
    "gfx950": ("int8", "float8_e4m3fn", "float8_e5m2"),
    "gfx1201": ("int8", "float8_e4m3fn", "float8_e5m2"),
}
LONGEST = (600, 600, 600, 5000, 9000, 40_000)


def shape_of(choice: Choice, least: int = 0) -> list[int]:
    """Some rows, longer ones if there are few."""
    longest = choice.one(LONGEST)
    if longest > 600:
        return [choice.whole(1, 2), choice.whole(longest // 2, longest)]
    outer = [choice.extent(6) for _ in range(choice.whole(0, 3))]
    return [*outer, choice.extent(longest, least)]


def softmax(choice: Choice) -> Case:
    shape, dtype = shape_of(choice), choice.one(FLOATS)
    dim, log = choice.whole(-len(shape), len(shape) - 1), choice.chance(0.5)
    own, of_torch = (
        (kernels.log_softmax, torch.log_softmax) if log else (kernels.softmax, torch.softmax)
    )
    return Case(
        lambda x: own(x, dim),
        lambda x: of_torch(x, dim),
        [choice.normal(shape, dtype, special=0.2)],
        f"{own.name}(dim={dim})",
        differentiable=[0],
    )


def parameter(choice: Choice, length: int, dtype: torch.dtype) -> torch.Tensor:
    """A weight or a bias, of the row's type or wider."""
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    return choice.normal([length], choice.one((dtype, wide)), 1.0)


def norm(choice: Choice) -> Case:
    shape, dtype = shape_of(choice, 1), choice.one(FLOATS)
    centred, added, eps = choice.chance(0.5), choice.chance(0.4), choice.one((1e-5, 0.1))
    arguments = [choice.normal(shape, dtype) for _ in range(1 + added)]
    named = [name for name in ("weight", "bias")[: 1 + centred] if choice.chance(0.7)]
    arguments += [parameter(choice, shape[-1], dtype) for _ in named]
    name = ("add_" if added else "") + ("layer_norm" if centred else "rms_norm")

    def call(*given: Any) -> Any:
        parameters = dict(zip(named, given[1 + added :], strict=True))
        return getattr(kernels, name)(*given[: 1 + added], **parameters, eps=eps)

    def exact(*given: Any) -> Any:
        total = given[0] + given[1] if added else given[0]
        parameters = dict(zip(named, given[1 + added :], strict=True))
        made = norm_of_torch(total, eps, centred, **parameters)
        return (made, total) if added else made

    differentiable = [*range(len(arguments))]
    text = f"{name}({', '.join(named)}, eps={eps})"
    return Case(call, exact, arguments, text, differentiable=differentiable)


def norm_of_torch(x: Any, eps: float, centred: bool, weight: Any = None, bias: Any = None) -> Any:
    """A norm in the type of x, with parameters of any type."""
    wide = torch.promote_types(x.dtype, torch.float32)
    y = x.to(wide)
    shape = y.shape[-1:]
    y = F.layer_norm(y, shape, eps=eps) if centred else F.rms_norm(y, shape, eps=eps)
    y = y if weight is None else y * weight.to(wide)
    y = y if bias is None else y + bias.to(wide)
    return y.to(x.dtype)


def quantized(choice: Choice, target: str) -> Case:
    shape, dtype = shape_of(choice, 1), choice.one(FLOATS[:3])
    kind = choice.one(EIGHT_BITS.get(target, ("int8",)))
    name = choice.one(
        ("quantize_rows", "layer_norm_quantized", "rms_norm_quantized", "add_rms_norm_quantized")
    )
    count = 2 if name.startswith("add") else 1
    arguments = [choice.normal(shape, dtype) for _ in range(count)]
    if name != "quantize_rows" and choice.chance(0.7):
        arguments.append(parameter(choice, shape[-1], dtype))

    def exact(*given: torch.Tensor) -> torch.Tensor:
        x = given[0] + given[1] if count == 2 else given[0]
        if name == "quantize_rows":
            return x.double()
        weight = given[count].double() if len(given) > count else None
        eps = 1e-5 if name.startswith("layer") else 1e-6
        return norm_of_torch(x.double(), eps, name.startswith("layer"), weight)

    def check(found: Any, given: Any) -> None:
        y = found[0].view(getattr(torch, kind))  # NumPy has the bits of 8-bit floats
        check_quantized((y, found[1]), exact(*given), kind)
        if count == 2:
            torch.testing.assert_close(found[2], given[0] + given[1], rtol=0, atol=0)

    def call(*given: Any) -> Any:
        return getattr(kernels, name)(*given[:count], kind, *given[count:])

    return Case(call, exact, arguments, f"{name}({kind})", check)


def cross_entropy(choice: Choice) -> Case:
    shape, dtype = shape_of(choice, 1), choice.one(FLOATS)
    smoothing, reduction = choice.one((0.0, 0.1, 1.0)), choice.one(("mean", "sum", "none"))
    ignored = choice.one((-100, 0, shape[-1] - 1))
    targets = choice.integers(shape[:-1], choice.one((torch.int64, torch.int32)), 0, shape[-1] - 1)
    targets = torch.where(
        torch.rand(targets.shape, generator=choice.numbers) < 0.2, ignored, targets
    )

    def exact(x: Any, targets: Any) -> Any:
        wide = torch.promote_types(x.dtype, torch.float32)
        made = F.cross_entropy(
            x.to(wide).reshape(-1, x.shape[-1]),
            targets.reshape(-1).long(),
            label_smoothing=smoothing,
            ignore_index=ignored,
            reduction=reduction,
        )
        return made.reshape(targets.shape) if reduction == "none" else made

    return Case(
        lambda x, targets: kernels.cross_entropy(x, targets, smoothing, ignored, reduction),
        exact,
        [choice.normal(shape, dtype), targets],
        f"cross_entropy({smoothing}, {ignored}, {reduction!r})",
        differentiable=[0],
        # Torch's sums of f64, which are the exact ones here, have roundings, too.
        options={"roundings": 16.0 + shape[-1], "same_type": False},
    )


def top_k(choice: Choice) -> Case:
    shape = shape_of(choice, 1)
    dtype = choice.one((*FLOATS[:3], *INTEGERS[:4], torch.uint16, torch.uint32))
    k, largest = choice.whole(1, min(64, shape[-1])), choice.chance(0.5)
    if dtype.is_floating_point:
        x = choice.normal(shape, dtype, special=0.2)
    else:
        limits = torch.iinfo(dtype)
        x = choice.integers(shape, dtype, *choice.one(((limits.min, limits.max), (-3, 3))))

    def check(found: Any, given: Any) -> None:
        wide = given[0].double() + 0.0
        order = torch.sort(wide, descending=largest, stable=True, dim=-1).indices[..., :k]
        torch.testing.assert_close(found[1].long(), order, rtol=0, atol=0)
        values = given[0].double().gather(-1, order)
        assert found[0].dtype == dtype
        torch.testing.assert_close(found[0].double(), values, rtol=0, atol=0, equal_nan=True)

    return Case(
        lambda x: kernels.top_k(x, k, largest),
        lambda x: torch.topk(x, k, -1, largest),
        [x],
        f"top_k({k}, {largest})",
        check,
    )
