"""fly-opt-py: MLIR → MLIR → LLVM IR.

    compile(source, options, name) -> bytes     runs the stage
    fingerprint(options) -> str                 what the result depends on, for a cache key
    Options                                     the options of a call

Each is imported on first use: `fly-opt-py --help` and a cache hit import neither MLIR nor the
other two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fly_opt.identity import fingerprint
    from fly_opt.pipeline.options import Options
    from fly_opt.pipeline.stage import compile

_HOMES = {
    "compile": "pipeline.stage",
    "fingerprint": "identity",
    "Options": "pipeline.options",
}

__all__ = ["Options", "compile", "fingerprint"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"fly_opt.{_HOMES[name]}"), name)
