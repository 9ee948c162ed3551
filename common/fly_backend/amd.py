"""The backend `rocm`: AMD GPUs through LLVM's AMDGPU backend and ROCm's code objects."""

from __future__ import annotations

from fly_backend.backend import Backend

ROCM = Backend(
    name="rocm",
    default_target="gfx942",
    namespaces={"rocdl": "fly_trace.backends.amd.rocdl"},
    namespace="fly_rocdl",
    upstream=("rocdl",),
    intrinsics="llvm.amdgcn.",
    dialect="fly_dialect.amd.extension:ROCDL",
    lowering="fly_opt.backends.amd.lowering:ROCM",
    codegen="fly_llc.backends.amd.codegen:AMDGPU",
    rings="fly_trace.backends.amd.rings:RINGS",
    linker="fly_link.backends.amd.linker:LLD",
    clusters="fly_trace.backends.amd.clusters",
    cluster_attribute="rocdl.cluster_dims",
    devices={"emulator": ""},
)
