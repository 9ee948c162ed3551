"""Checks a kernel's workgroup size attributes before MLIR translates them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

_SIZES = ("flat", "reqd")
# Function attributes that the pipeline sets, and the class of their value.
FUNCTION_ATTRIBUTES = {
    "rocdl.kernel": "UnitAttr",
    "rocdl.flat_work_group_size": "StringAttr",
    "rocdl.reqd_work_group_size": "DenseI32ArrayAttr",
}


def wrong_workgroup(function: ir.Operation) -> str | None:
    """Returns what is wrong if a kernel's two workgroup size attributes contradict each other."""
    from fly_dialect.bindings import ir

    flat, wanted = (function.attributes.get(f"rocdl.{name}_work_group_size") for name in _SIZES)
    if not isinstance(flat, ir.StringAttr) or not isinstance(wanted, ir.DenseI32ArrayAttr):
        return None
    size = math.prod(wanted)
    if flat.value == f"{size},{size}":
        return None
    return (
        f'rocdl.flat_work_group_size is "{flat.value}", but rocdl.reqd_work_group_size requires'
        f' "{size},{size}"'
    )
