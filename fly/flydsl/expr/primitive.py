"""`flydsl.expr.primitive`: the language's functions of layouts, memory and atoms, where FlyDSL's
take what the language's do not."""

from __future__ import annotations

from typing import Any

import fly_trace.expr as _language

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(_language, name)
