"""The backend `cuda`: NVIDIA GPUs through LLVM's NVPTX backend and PTX."""

from __future__ import annotations

from fly_backend.backend import Backend

CUDA = Backend(
    name="cuda",
    default_target="sm_90a",
    namespaces={"nvvm": "fly_trace.backends.nvidia.nvvm"},
    namespace="fly_nvvm",
    upstream=("nvvm",),
    intrinsics="llvm.nvvm.",
    dialect="fly_dialect.nvidia.extension:NVVM",
    lowering="fly_opt.backends.nvidia.lowering:CUDA",
    codegen="fly_llc.backends.nvidia.codegen:NVPTX",
    rings="fly_trace.backends.nvidia.rings:RINGS",
    linker="fly_link.backends.nvidia.linker:PTXAS",
    clusters="fly_trace.backends.nvidia.clusters",
    cluster_attribute="nvvm.cluster_dim",
    devices={"cuda": ""},
    object_suffix=".ptx",
    image_suffix=".cubin",
)
