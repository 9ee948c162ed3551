"""The language: what kernels import as `fx`. Nothing here imports MLIR; tracing does.

FlyDSL's names. `fx.max` and `fx.min` are `maximum` and `minimum`: NaN goes through.
"""

from __future__ import annotations

from typing import Any

from fly_trace import tracing
from fly_trace.annotations import Constexpr, Stream
from fly_trace.arithmetic import describe
from fly_trace.device import (
    atomic_add,
    atomic_and,
    atomic_cas,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_xchg,
    atomic_xor,
    barrier,
    block_dim,
    block_idx,
    dynamic_shared,
    grid_dim,
    known_block_size,
    lane_id,
    num_warp_threads,
    shared_array,
    shuffle_down,
    shuffle_idx,
    shuffle_up,
    shuffle_xor,
    thread_idx,
)
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
from fly_trace.functions import (
    abs_,
    bitcast,
    ceil,
    ceildiv,
    cos,
    erf,
    exp,
    exp2,
    floor,
    fma,
    log,
    log2,
    maximum,
    maxnumf,
    minimum,
    minnumf,
    pow_,
    rsqrt,
    sin,
    sqrt,
    tanh,
    where,
)
from fly_trace.tensors import Tensor
from fly_trace.values import Scalar

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
    "Tensor",
    "Uint8",
    "Uint16",
    "Uint32",
    "Uint64",
    "abs",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_xchg",
    "atomic_xor",
    "barrier",
    "bitcast",
    "block_dim",
    "block_idx",
    "ceil",
    "ceildiv",
    "const_expr",
    "cos",
    "dynamic_shared",
    "erf",
    "exp",
    "exp2",
    "floor",
    "fma",
    "grid_dim",
    "known_block_size",
    "lane_id",
    "log",
    "log2",
    "max",
    "maximum",
    "maxnumf",
    "min",
    "minimum",
    "minnumf",
    "num_warp_threads",
    "pow",
    "range_constexpr",
    "rsqrt",
    "shared_array",
    "shuffle_down",
    "shuffle_idx",
    "shuffle_up",
    "shuffle_xor",
    "sin",
    "sqrt",
    "tanh",
    "thread_idx",
    "where",
]

Boolean = BOOL
Int8, Int16, Int32, Int64 = I8, I16, I32, I64
Uint8, Uint16, Uint32, Uint64 = U8, U16, U32, U64
Float16, BFloat16, Float32, Float64 = F16, BF16, F32, F64


def range_constexpr(*bounds: Any) -> range:
    """A range whose loop Python runs: the body is traced once for each number."""
    given = [getattr(bound, "number", bound) for bound in bounds]
    for bound, number in zip(bounds, given, strict=True):
        if not hasattr(type(number), "__index__") or isinstance(number, Scalar):
            tracing.refuse(
                f"range_constexpr takes numbers known while tracing, not {describe(bound)}",
                "use range(…), or make it an fx.Constexpr",
            )
    return range(*given)


def const_expr(value: Any) -> Any:
    """The value, which must be known while tracing."""
    if isinstance(value, Scalar) and value.number is None:
        tracing.refuse("const_expr takes a value that is known while tracing")
    return value.number if isinstance(value, Scalar) else value


max, min, abs, pow = maximum, minimum, abs_, pow_
