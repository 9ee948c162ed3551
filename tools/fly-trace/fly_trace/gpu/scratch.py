"""Shared memory of the primitives of a block. Calls that need the same arrays use them in turn."""

from __future__ import annotations

from typing import Any

from fly_trace.core import tracing
from fly_trace.gpu.device import shared_array
from fly_trace.memory.tensors import Tensor
from fly_trace.values.dtypes import DType


def array(
    role: str, dtype: DType, count: int, number: int = 0, *, of_waves: bool = False
) -> Tensor:
    """An array of `count` elements in shared memory, the same for all calls in a kernel with these
    arguments. of_waves: as of `shared_array`."""
    builder = tracing.kernel("a primitive of a block")
    key = role, dtype, count, number, of_waves
    if key not in builder.scratch:
        builder.scratch[key] = shared_array(dtype, count, of_waves=of_waves)
    found: Any = builder.scratch[key]
    return found
