"""The dialect `fly_nvvm`, for features specific to NVIDIA hardware.

Here are instruction types, tensor maps and the ops that use them. What else `fx.nvvm` offers is an
op of MLIR's `gpu` and `nvvm` dialects or one of LLVM's intrinsics.
"""

from __future__ import annotations

from fly_dialect.extension import Extension
from fly_dialect.nvidia import tensor_map
from fly_dialect.op_info import OpInfo

NAMESPACE = "fly_nvvm"

NVVM = Extension(
    ops=(
        OpInfo("make_tensor_map", 1, 1, check=tensor_map.check_make, dialect=NAMESPACE),
        OpInfo("tma_load", None, 0, check=tensor_map.check_load, pure=False, dialect=NAMESPACE),
        OpInfo(
            "tma_multicast",
            None,
            0,
            check=tensor_map.check_multicast,
            pure=False,
            dialect=NAMESPACE,
        ),
        OpInfo("tma_store", None, 0, check=tensor_map.check_store, pure=False, dialect=NAMESPACE),
        OpInfo("wgmma_wait", 1, 1, tensor_map.infer_wait, pure=False, dialect=NAMESPACE),
    ),
    types={"tensor_map": tensor_map.read},
    atoms={
        "fly_dialect.atoms.nvidia.async_copy": ("fly_nvvm.sm80.cp_async",),
        "fly_dialect.atoms.nvidia.matrix_copy": (
            "fly_nvvm.sm75.ldmatrix",
            "fly_nvvm.sm90.stmatrix",
        ),
        "fly_dialect.atoms.nvidia.mma": ("fly_nvvm.sm80.mma",),
        "fly_dialect.atoms.nvidia.wgmma": ("fly_nvvm.sm90.wgmma", "fly_nvvm.sm90.wgmma_rs"),
    },
)
