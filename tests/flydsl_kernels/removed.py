"""What the kernels of the checkout, of FlyDSL 0.3.2, use that FlyDSL 0.4.2 has not any more.

Only where FlyDSL itself traces them; `install` leaves alone what a version of FlyDSL has.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

# Target → bytes of LDS that a workgroup may have, from LLVM's AMDGPUUsage.
LDS = {"gfx942": 65536, "gfx950": 163840, "gfx1100": 65536, "gfx1201": 65536, "gfx1250": 327680}


def check_smem_capacity(allocated_bytes: int, arch: str | None = None) -> None:
    """RuntimeError if a workgroup of the target has no room for so many bytes of LDS."""
    most = LDS.get(arch or "", allocated_bytes)
    if allocated_bytes > most:
        raise RuntimeError(f"{allocated_bytes} bytes of LDS; {arch} has {most}")


def install() -> None:
    import flydsl.expr as fx
    from flydsl.expr import primitive
    from flydsl.utils import smem_allocator

    if not hasattr(smem_allocator, "check_smem_capacity"):
        smem_allocator.check_smem_capacity = check_smem_capacity
    plain = primitive.ptr_load

    @functools.wraps(plain)
    def ptr_load(ptr: Any, result_type: Any = None) -> Any:
        """Takes any class with an `ir_type`, which 0.4.2 makes an object of the value of."""
        if inspect.isclass(result_type) and result_type.__init__ is object.__init__:
            result_type = getattr(result_type, "ir_type", result_type)
        return plain(ptr, result_type)

    fx.ptr_load = primitive.ptr_load = ptr_load
