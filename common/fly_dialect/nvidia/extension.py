"""The dialect `fly_nvvm`, for features specific to NVIDIA hardware.

It has no ops, instruction types or address spaces yet: everything that `fx.nvvm` offers is an op of
MLIR's `gpu` and `nvvm` dialects or one of LLVM's intrinsics.
"""

from __future__ import annotations

from fly_dialect.extension import Extension

NVVM = Extension()
