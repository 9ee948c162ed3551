"""LLVM's triple and data layout for AMD's GPUs, and the code object version."""

from __future__ import annotations

TRIPLE = "amdgcn-amd-amdhsa"

# Code object version 6, which LLVM 22, ROCm 6 and ROCm 7 support. The IR sets it explicitly,
# because the default depends on LLVM's version, and the same input must give the same HSACO.
CODE_OBJECT_VERSION = 600

# LLVM 22's data layout of amdgcn. Address spaces: 1 global, 3 LDS, 4 constant, 5 private (allocas).
DATA_LAYOUT = (
    "e-m:e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32"
    "-p8:128:128:128:48-p9:192:256:256:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256"
    "-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9"
)
