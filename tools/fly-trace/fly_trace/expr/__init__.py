"""The language: what kernels import as `fx`. Nothing here imports MLIR; tracing does.

FlyDSL's names. A name is imported from its module when it is first used; `fx.gpu`, `fx.math` and
the like are the modules themselves.
"""

from __future__ import annotations

import difflib
import importlib
from typing import TYPE_CHECKING, Any

from fly_trace import operators as operators
from fly_trace.annotations import Constexpr, Stream
from fly_trace.dtypes import (
    BF16,
    BOOL,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    DType,
)

if TYPE_CHECKING:
    from fly_trace.expr import gpu as gpu
    from fly_trace.expr import math as math
    from fly_trace.expr.gpu import *  # noqa: F403
    from fly_trace.expr.math import *  # noqa: F403
    from fly_trace.statics import const_expr as const_expr
    from fly_trace.statics import range_constexpr as range_constexpr
    from fly_trace.tensors import Tensor as Tensor

Boolean = BOOL
Int8, Int16, Int32, Int64 = I8, I16, I32, I64
Uint8, Uint16, Uint32, Uint64 = U8, U16, U32, U64
Float16, BFloat16, Float32, Float64 = F16, BF16, F32, F64

# Module → the names it gives to fx: what its `__all__` says.
NAMES = {
    "fly_trace.expr.gpu": """
        atomic_add atomic_and atomic_cas atomic_max atomic_min atomic_or atomic_xchg atomic_xor
        barrier block_dim block_idx dynamic_shared grid_dim known_block_size lane_id
        num_warp_threads shared_array shuffle_down shuffle_idx shuffle_up shuffle_xor thread_idx
        """,
    "fly_trace.expr.math": """
        abs bitcast ceil ceildiv cos erf exp exp2 floor fma log log2 max maximum maxnumf min
        minimum minnumf pow rsqrt sin sqrt tanh where
        """,
    "fly_trace.statics": "const_expr range_constexpr",
    "fly_trace.tensors": "Tensor",
}
_HOMES = {name: module for module, names in NAMES.items() for name in names.split()}
_MODULES = ("gpu", "math")

__all__ = [
    "BFloat16",
    "Boolean",
    "Constexpr",
    "DType",
    "Float16",
    "Float32",
    "Float64",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Stream",
    "Uint8",
    "Uint16",
    "Uint32",
    "Uint64",
    *_MODULES,
    *_HOMES,
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"fly_trace.expr.{name}")
    home = _HOMES.get(name)
    if home is None:
        near = difflib.get_close_matches(name, __all__, n=1)
        raise AttributeError(f"fx has no {name!r}{f'; is it {near[0]}?' if near else ''}")
    value = globals()[name] = getattr(importlib.import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
