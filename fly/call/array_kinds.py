"""Arrays that programs make for a caller: of the kind of the arrays that the caller gives."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fly_common.errors import MissingError
from fly_common.record import record
from fly_numerics.element_types import ELEMENT_TYPES
from fly_run.launch.arrays import NUMPY, Arrays

from fly.call.arrays import as_value

if TYPE_CHECKING:
    import numpy as np


@record
class TorchArrays:
    """torch's tensors on a device. See `fly_run.launch.arrays.Arrays`."""

    device: Any = "cpu"

    def empty(
        self, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...], elements: int
    ) -> tuple[Any, np.ndarray]:
        import torch

        kind = getattr(torch, ELEMENT_TYPES[dtype].long_name)
        try:
            flat = torch.empty(elements, dtype=kind, device=self.device)
        except RuntimeError as error:  # torch's only error of its allocator
            raise MissingError(f"torch has no memory: {str(error).splitlines()[0]}") from None
        return flat.as_strided(shape, strides), self.memory(flat)

    def strided(
        self, array: Any, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
    ) -> Any:
        return array.as_strided(shape, strides, array.storage_offset() + offset)

    def memory(self, array: Any) -> np.ndarray:
        return as_value(array, "of the host program")


TORCH = TorchArrays()


def arrays_for(values: Iterable[Any]) -> Arrays:
    """torch's if one of the values is a tensor of torch, on the first tensor's device; else
    NumPy's."""
    torch = sys.modules.get("torch")
    if torch is None:
        return NUMPY
    tensor = next((value for value in values if isinstance(value, torch.Tensor)), None)
    if tensor is None:
        return NUMPY
    return TORCH if tensor.device.type == "cpu" else TorchArrays(tensor.device)
