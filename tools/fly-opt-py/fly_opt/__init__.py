"""fly-opt-py: MLIR → MLIR → LLVM IR.

    compile(source, options, name) -> bytes     the stage
    fingerprint(options) -> str                 what its result depends on, for a cache key
    Options                                     what a call asks for

Each is imported when it is first used: `fly-opt-py --help` and a cache hit pay for neither MLIR nor
the other two.
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
