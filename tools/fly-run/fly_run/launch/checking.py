"""The arguments of a call, held against the parameters of a program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fly_host.program import Program, Scalar, Tensor

from fly_run.launch.arrays.tensors import check_array, check_symbols
from fly_run.launch.parameters import check_names, check_scalar

if TYPE_CHECKING:
    import numpy as np


def check(
    program: Program, values: Mapping[str, Any]
) -> tuple[dict[str, np.ndarray], dict[str, int | float | bool]]:
    """Arrays and scalars by name, checked and brought to what their parameters ask for.

    UsageError for names that are missing or unknown; InputError for a value that does not fit its
    parameter. Both say which and why. A scalar with a default and a stream may be left out.
    """
    check_names(program, values)
    tensors = {p.name: p for p in program.parameters if isinstance(p, Tensor)}
    arrays = {name: check_array(tensor, values[name]) for name, tensor in tensors.items()}
    check_symbols(tensors, {name: array.shape for name, array in arrays.items()})
    scalars = {
        p.name: check_scalar(p, values.get(p.name, p.default))
        for p in program.parameters
        if isinstance(p, Scalar)
    }
    return arrays, scalars
