"""`flydsl.runtime.device`: the target."""

from __future__ import annotations

import os

# The first that is set names the target.
VARIABLES = ("FLYDSL_GPU_ARCH", "ARCH", "HSA_OVERRIDE_GFX_VERSION", "FLY_TARGET")


def get_rocm_arch() -> str:
    """The chip that programs are compiled for, such as gfx942: that of the variables, else the
    backend's default. HSA_OVERRIDE_GFX_VERSION may be 9.4.2."""
    for name in VARIABLES:
        value = os.environ.get(name, "").lower()
        if value.startswith("gfx"):
            return value
        parts = value.split(".")
        if len(parts) == 3:
            return "gfx" + "".join(parts)
    from fly_backend.registry import find

    return find("rocm").default_target


def get_rocm_device_count() -> int:
    """The number of devices: the emulator is one."""
    return 1


def is_rdna_arch(arch: str | None = None) -> bool:
    """Whether waves have 32 lanes and buffer descriptors RDNA's flags: gfx10, gfx11, gfx120x."""
    return (arch or get_rocm_arch()).lower().startswith(("gfx10", "gfx11", "gfx120"))


def get_warp_size(arch: str | None = None) -> int:
    """Lanes of a wave."""
    return 32 if (arch or get_rocm_arch()).lower().startswith(("gfx10", "gfx11", "gfx12")) else 64


def check_smem_capacity(allocated_bytes: int, arch: str | None = None) -> None:
    """Raises RuntimeError if a block of the chip has less shared memory. A chip that is not known
    is not checked."""
    from fly_target import registry

    row = registry.BUILT_IN.get(arch) if arch is not None else None
    if row is not None and allocated_bytes > row.lds:
        raise RuntimeError(
            f"{allocated_bytes} bytes of shared memory are allocated, but {arch} has {row.lds}"
        )
