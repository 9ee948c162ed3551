"""`flydsl.expr.extern`: functions of LLVM bitcode."""

from fly_trace.expr.ffi import *  # noqa: F403
