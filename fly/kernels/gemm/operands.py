"""Operands of products: what is refused, how they lie in memory, and the types of results."""

from __future__ import annotations

from typing import Any

from fly_common.errors import UsageError
from fly_common.quoting import quoted
from fly_numerics.element_types import ELEMENT_TYPES, ElementType

from fly.kernels.arrays import contiguous, strides
from fly.kernels.gemm.epilogue import ACTIVATIONS, Epilogue
from fly.kernels.gemm.plans import access, element_type


def as_operand(x: Any) -> Any:
    """Matrices whose rows or columns have adjacent elements, copied if they have not."""
    steps = strides(x)
    adjacent = any(steps[i] == 1 or x.shape[i] == 1 for i in (1, 2))
    return x if adjacent and min(steps) >= 0 else contiguous(x)


def check_operands(a: Any, b: Any) -> None:
    """UsageError for operands of different types, and for shapes that can't be multiplied."""
    if a.dtype != b.dtype:
        raise UsageError(f"a is of {a.dtype} and b of {b.dtype}", hint="convert one of them")
    if min(a.ndim, b.ndim) < 1 or a.shape[-1] != b.shape[max(0, b.ndim - 2)]:
        shapes = f"{tuple(a.shape)} and {tuple(b.shape)}"
        raise UsageError(f"matrices of shapes {shapes} can't be multiplied")


def check_added(**arrays: Any) -> None:
    """UsageError for arrays that can't be added to sums: of bools, and of types without bytes."""
    for name, array in arrays.items():
        if array is not None and (kind := element_type(array.dtype)).bits % 8:
            raise UsageError(f"{name} is of {kind.long_name}", hint="convert it, as to float32")


def check_bias(bias: Any, columns: int, what: str, of: str = "columns") -> None:
    """UsageError for a bias without an element for each column, and for one that can't be added;
    `what` and `of` tell what has columns."""
    check_added(bias=bias)
    if bias is not None and tuple(bias.shape) != (columns,):
        raise UsageError(f"bias has shape {tuple(bias.shape)}, and {what} {columns} {of}")


def with_bias(epilogue: Epilogue, bias: Any) -> tuple[Any, Epilogue]:
    """A bias as kernels read it, and the epilogue that adds it; as they are if it is None."""
    if bias is None:
        return None, epilogue
    bias = contiguous(bias)
    return bias, epilogue._replace(bias=True).limited(access(bias[None, None], 2))


def check_activation(activation: str | None) -> None:
    """UsageError for an activation that is not known."""
    if activation not in (None, *ACTIVATIONS):
        known = ", ".join(ACTIVATIONS)
        raise UsageError(f"activation is {quoted(activation)}", hint=f"the activations are {known}")


def result_type(a: Any, out_dtype: Any) -> ElementType:
    """The type of results: `out_dtype`, of NumPy or torch, or the usual one for operands like a.
    UsageError for a type without whole bytes."""
    if out_dtype is not None:
        found = element_type(out_dtype)
        if found.bits % 8:
            raise UsageError(f"results can't be of {found.long_name}")
        return found
    usual = element_type(a.dtype)
    if usual.bits != 8:
        return usual
    return ELEMENT_TYPES["f32" if usual.kind == "float" else "i32"]


def as_matrices(a: Any, b: Any) -> tuple[Any, Any]:
    """The operands, a row and a column of which may have one dimension, with two and more."""
    return a[None] if a.ndim == 1 else a, b[:, None] if b.ndim == 1 else b


def leading_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of batches of products. UsageError for batches that do not fit."""
    import numpy as np

    try:
        return np.broadcast_shapes(tuple(a), tuple(b))
    except ValueError:
        raise UsageError(f"batches of {tuple(a)} and {tuple(b)} can't be multiplied") from None


def wide(x: Any) -> Any:
    """The type of sums of products of a torch tensor."""
    import torch

    return torch.promote_types(x.dtype, torch.float32)


def before(activation: str, gradient: Any, x: Any) -> Any:
    """The gradient of x, from that of activation(x), in x's type."""
    from torch.ops import aten

    gradient = gradient.to(x.dtype)
    if activation == "relu":
        return gradient * (x > 0)
    return {"gelu": aten.gelu_backward, "silu": aten.silu_backward}[activation](gradient, x)
