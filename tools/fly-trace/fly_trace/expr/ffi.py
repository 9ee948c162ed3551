"""`fx.ffi`: functions of LLVM bitcode."""

from fly_trace.gpu.external_functions import Function, function

__all__ = ["Function", "function"]
