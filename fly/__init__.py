"""GPU kernels in Python, compiled by a chain of filters. This is the library applications import.

    import fly
    import fly.expr as fx

Importing it is cheap: what a name needs is imported when the name is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from fly_common import __version__ as __version__

if TYPE_CHECKING:
    from fly_common.errors import Fault, FlyError, InputError, MissingError, UsageError
    from fly_trace.session.decorators import kernel

    from fly.backends import backend_name, get_backend, register_backend
    from fly.call.arrays.annotated_array import from_dlpack
    from fly.call.compiled import Compiled
    from fly.call.decorator import jit
    from fly.call.host_options import CompileOptions
    from fly.call.library import register_call
    from fly.call.loading import load
    from fly.call.specialisation import specialized
    from fly.chains.chain import Chain, chain, run
    from fly.chains.stage import Stage
    from fly.tune.config import Config
    from fly.tune.decorator import autotune


# Maps each public name to the module that defines it.
_HOMES = {
    "Chain": "fly.chains.chain",
    "CompileOptions": "fly.call.host_options",
    "Compiled": "fly.call.compiled",
    "Config": "fly.tune.config",
    "Fault": "fly_common.errors",
    "FlyError": "fly_common.errors",
    "InputError": "fly_common.errors",
    "MissingError": "fly_common.errors",
    "Stage": "fly.chains.stage",
    "UsageError": "fly_common.errors",
    "autotune": "fly.tune.decorator",
    "backend_name": "fly.backends",
    "chain": "fly.chains.chain",
    "from_dlpack": "fly.call.arrays.annotated_array",
    "get_backend": "fly.backends",
    "jit": "fly.call.decorator",
    "kernel": "fly_trace.session.decorators",
    "load": "fly.call.loading",
    "register_backend": "fly.backends",
    "register_call": "fly.call.library",
    "run": "fly.chains.chain",
    "specialized": "fly.call.specialisation",
}
_MODULES = frozenset({"cache", "expr", "torch"})

__all__ = [
    "Chain",
    "CompileOptions",
    "Compiled",
    "Config",
    "Fault",
    "FlyError",
    "InputError",
    "MissingError",
    "Stage",
    "UsageError",
    "autotune",
    "backend_name",
    "chain",
    "from_dlpack",
    "get_backend",
    "jit",
    "kernel",
    "load",
    "register_backend",
    "register_call",
    "run",
    "specialized",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"fly.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'fly' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, *_MODULES])
