"""The language that kernels are written in, usually imported as `fx`. See docs/language.md."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

from fly_trace import expr as _language

if TYPE_CHECKING:
    from fly_trace.expr import *  # noqa: F403

__all__ = _language.__all__


def __getattr__(name: str) -> Any:
    value = getattr(_language, name)
    # The language is asked each time for a backend's namespace, which not every trace may use.
    if not isinstance(value, ModuleType):
        globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
