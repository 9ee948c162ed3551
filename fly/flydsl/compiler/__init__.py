"""`flydsl.compiler`, usually imported as `flyc`: kernels, host functions, their arguments."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fly.flydsl.compiler.backends import *  # noqa: F403
    from fly.flydsl.compiler.jit_argument import *  # noqa: F403
    from fly.flydsl.compiler.jit_function import *  # noqa: F403
    from fly.flydsl.compiler.kernel_function import kernel as kernel

_HOMES = {
    "backends": (
        "BaseBackend",
        "GPUTarget",
        "compile_backend_name",
        "get_backend",
        "register_backend",
    ),
    "jit_argument": ("JitArgumentRegistry", "from_c_void_p", "from_dlpack", "from_torch_tensor"),
    "jit_function": ("CompiledFunction", "compile", "jit"),
    "kernel_function": ("kernel",),
}

__all__ = sorted(name for names in _HOMES.values() for name in names)


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{home}"), name)
            return value
    raise AttributeError(f"module 'flydsl.compiler' has no attribute {name!r}")
