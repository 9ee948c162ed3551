"""Kernels to import and call, with NumPy arrays and torch tensors: see docs/kernels.md.

    from fly.kernels import softmax

Nothing is imported or compiled before it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# The module of each function.
_MODULES = {
    "softmax": "row_softmax",
    "log_softmax": "row_softmax",
    "softmax_backward": "row_softmax",
    "log_softmax_backward": "row_softmax",
    "matmul": "gemm.matrix_product",
    "grouped_matmul": "gemm.grouped_gemm",
    "group_products": "gemm.grouped_gemm",
    "preshuffle": "gemm.preshuffled_gemm",
    "matmul_preshuffled": "gemm.preshuffled_gemm",
    "conv2d": "gemm.implicit_gemm",
    "moe_route": "gemm.expert_routing",
    "moe_sort": "gemm.expert_routing",
    "moe_gather": "gemm.mixture_of_experts",
    "moe_combine": "gemm.mixture_of_experts",
    "moe": "gemm.mixture_of_experts",
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
