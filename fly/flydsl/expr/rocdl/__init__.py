"""`flydsl.expr.rocdl`: the language's names for AMD's targets, and builders of MLIR's dialect
`rocdl`, which take values of the language. The first that has a name gives it:

1. `matrix`, `moves` and `inline_asm`: FlyDSL's forms of instructions;
2. `fx.rocdl` of the language;
3. the dialect: `rocdl.exp2(T.f32, x)`.
"""

from __future__ import annotations

import importlib
from typing import Any

from fly_trace.backends.amd import rocdl as _language

_HOMES = ("matrix", "moves", "inline_asm", "universal", "cdna5")
_MODULES = (
    "cdna3",
    "cdna4",
    "cdna5",
    "cluster",
    "enum",
    "inline_asm",
    "rdna3",
    "rdna4",
    "tdm_ops",
    "universal",
)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    for home in _HOMES:
        module = importlib.import_module(f"{__name__}.{home}")
        if name in module.__all__:
            break
    else:
        from fly.flydsl._mlir.added import fly_rocdl

        module = fly_rocdl if name in fly_rocdl.__all__ else _language
        if module is _language and name not in (*_language.__all__, "SyncScope"):
            from fly.flydsl._mlir.dialects import rocdl as module
    value = globals()[name] = getattr(module, name)
    return value
