"""Arrays that programs make for a caller: of the kind of the arrays that the caller gives."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fly_common.errors import MissingError
from fly_common.record import record
from fly_numerics.element_types import ELEMENT_TYPES
from fly_run.launch.arrays.protocol import NUMPY, Arrays

from fly.call.arrays.views import as_value, is_of_ml_dtypes

if TYPE_CHECKING:
    import numpy as np


@record
class TorchArrays:
    """torch's tensors on a device. See `fly_run.launch.arrays.protocol.Arrays`."""

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
        memory = self.memory(flat)
        # Not a view for autograd, which refuses to change those of an operator in place.
        made = torch.empty(0, dtype=kind, device=self.device)
        return made.set_(flat.untyped_storage(), 0, shape, strides), memory

    def strided(
        self, array: Any, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
    ) -> Any:
        return array.as_strided(shape, strides, array.storage_offset() + offset)

    def memory(self, array: Any) -> np.ndarray:
        return as_value(array, "of the host program")


@record
class MlDtypesArrays:
    """NumPy's arrays, of the types of the package ml_dtypes where NumPy lacks one."""

    def empty(
        self, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...], elements: int
    ) -> tuple[Any, np.ndarray]:
        array, memory = NUMPY.empty(dtype, shape, strides, elements)
        row = ELEMENT_TYPES[dtype]
        named = None if row.is_numpys else getattr(sys.modules["ml_dtypes"], row.long_name, None)
        return array if named is None else array.view(named), memory

    def strided(
        self, array: Any, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
    ) -> Any:
        return NUMPY.strided(self.memory(array), shape, strides, offset).view(array.dtype)

    def memory(self, array: Any) -> np.ndarray:
        return as_value(array, "of the host program")


TORCH = TorchArrays()
ML_DTYPES = MlDtypesArrays()


def arrays_for(values: Iterable[Any]) -> Arrays:
    """torch's if one of the values is a tensor of torch, on the first tensor's device; else
    NumPy's, with the types of ml_dtypes if one of the values has such a type."""
    values = [*values]
    torch = sys.modules.get("torch")
    if torch is not None:
        tensor = next((value for value in values if isinstance(value, torch.Tensor)), None)
        if tensor is not None:
            return TORCH if tensor.device.type == "cpu" else TorchArrays(tensor.device)
    named = "ml_dtypes" in sys.modules and any(map(is_of_ml_dtypes, values))
    return ML_DTYPES if named else NUMPY
