"""LLVM's triple and data layout for NVIDIA's GPUs, and the version of PTX."""

from __future__ import annotations

TRIPLE = "nvptx64-nvidia-cuda"

# LLVM 22's data layout of nvptx64. Address spaces: 1 global, 3 shared, 4 constant, 5 local,
# 6 tensor memory, 7 shared memory of a cluster.
DATA_LAYOUT = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"

# PTX 8.8, which ptxas 12.9 and newer read and drivers from 575 on compile. The IR sets it
# explicitly, because LLVM's default depends on the processor and on LLVM's version.
PTX_FEATURE = "+ptx88"
