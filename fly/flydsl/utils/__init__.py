"""`flydsl.utils`: the log and the environment variables."""

from __future__ import annotations

from typing import Any

__all__ = ["env", "log"]


def __getattr__(name: str) -> Any:
    import importlib

    if name == "log":
        return importlib.import_module("fly.flydsl.utils.logger").log
    if name == "env":
        return importlib.import_module("fly.flydsl.utils.env")
    raise AttributeError(f"module 'flydsl.utils' has no attribute {name!r}")
