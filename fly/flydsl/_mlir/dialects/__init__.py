"""The dialects: `from flydsl._mlir.dialects import llvm`. Each is made when it is
first imported."""

from __future__ import annotations

import sys
from typing import Any

from fly.flydsl._mlir import building

# Those that FlyDSL's programs import. FlyDSL's own are in `added` entirely.
NAMES = (
    *("arith", "builtin", "cf", "func", "gpu", "index", "llvm", "math", "memref", "nvvm", "rocdl"),
    *("scf", "ub", "vector", "amdgpu", "fly", "fly_rocdl"),
)
# `_arith_ops_gen` is the generated part of `arith`, which has all of it.
_GENERATED = {f"_{name}_{part}_gen": name for name in NAMES for part in ("ops", "enum")}

for _name in NAMES:
    _made = building.Dialect(_name)
    globals()[_name] = sys.modules[f"{__name__}.{_name}"] = _made
for _name, _whole in _GENERATED.items():
    globals()[_name] = sys.modules[f"{__name__}.{_name}"] = globals()[_whole]


def __getattr__(name: str) -> Any:
    raise AttributeError(f"fly.flydsl has no dialect {name}: it has {', '.join(NAMES)}")
