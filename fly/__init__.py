"""GPU kernels in Python, compiled by a chain of filters: the library that applications import.

    import fly
    import fly.expr as fx

Importing it costs next to nothing: what a name needs is imported when the name is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from fly_common import __version__ as __version__

if TYPE_CHECKING:
    from fly_common.errors import Fault, FlyError, InputError, MissingError, UsageError
    from fly_trace.decorators import kernel

    from fly.chains import Chain, chain, run
    from fly.compiled import Compiled, load
    from fly.function import jit
    from fly.marked import from_dlpack
    from fly.stage import Stage


# Name → the module that has it.
_HOMES = {
    "Chain": "fly.chains",
    "Compiled": "fly.compiled",
    "Fault": "fly_common.errors",
    "FlyError": "fly_common.errors",
    "InputError": "fly_common.errors",
    "MissingError": "fly_common.errors",
    "Stage": "fly.stage",
    "UsageError": "fly_common.errors",
    "chain": "fly.chains",
    "from_dlpack": "fly.marked",
    "jit": "fly.function",
    "kernel": "fly_trace.decorators",
    "load": "fly.compiled",
    "run": "fly.chains",
}
_MODULES = frozenset({"cache", "expr"})

__all__ = [
    "Chain",
    "Compiled",
    "Fault",
    "FlyError",
    "InputError",
    "MissingError",
    "Stage",
    "UsageError",
    "chain",
    "from_dlpack",
    "jit",
    "kernel",
    "load",
    "run",
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
