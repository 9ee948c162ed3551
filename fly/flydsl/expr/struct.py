"""`flydsl.expr.struct`: structs, unions and shared memory. `fx.struct` is also the decorator."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from fly_trace.memory.structs import struct as _struct


class _Decorator(ModuleType):
    def __call__(self, plain: type) -> Any:
        # The frame whose names annotations may use is the caller's: `struct` looks one up.
        return _struct(plain)

    def __getitem__(self, items: Any) -> Any:
        return _struct[items]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        from fly_trace import expr

        return getattr(expr, name)


sys.modules[__name__].__class__ = _Decorator
