"""Kernels to import and call, with NumPy arrays and torch tensors: see docs/kernels.md.

    from fly.kernels import softmax

Nothing is imported or compiled before it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# The functions of each module. None has the name of a module.
_FUNCTIONS = {
    "attention.batches": "flash_attention flash_attention_backward",
    "attention.packed": "flash_attention_varlen flash_attention_varlen_backward",
    "attention.paged": "paged_attention",
    "attention.rotary": "rotary_embedding rotary_and_cache",
    "cross_entropies": "cross_entropy cross_entropy_rows cross_entropy_backward",
    "dropouts": "dropout",
    "gemm.experts.expert_routing": "moe_route",
    "gemm.experts.expert_sorting": "moe_sort",
    "gemm.group_sums": "group_products",
    "gemm.grouped_gemm": "grouped_matmul",
    "gemm.convolution.convolutions": "conv2d",
    "gemm.matrix_product": "matmul",
    "gemm.experts.mixture_of_experts": "moe moe_gather moe_combine",
    "gemm.preshuffled.preshuffled_product": "preshuffle matmul_preshuffled",
    "gemm.scaled.scaled_product": "scaled_matmul",
    "histograms": "histogram",
    "normalization": """
        layer_norm rms_norm add_layer_norm add_rms_norm norm_backward
        layer_norm_quantized rms_norm_quantized add_rms_norm_quantized
    """,
    "prefix_sums": "prefix_sum",
    "quantization": "quantize_rows",
    "row_softmax": "softmax log_softmax softmax_backward log_softmax_backward",
    "selections": "top_k",
}
_MODULES = {name: module for module, names in _FUNCTIONS.items() for name in names.split()}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
