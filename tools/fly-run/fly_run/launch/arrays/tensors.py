"""Checks arrays given as tensor arguments, and describes them for the program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fly_common.errors import InputError
from fly_common.quoting import quoted
from fly_host import refusals
from fly_host.program import Tensor
from fly_host.readers.values import Extents
from fly_host.refusals import describe

from fly_run.launch.arrays import dtypes

if TYPE_CHECKING:
    import numpy as np


def check_array(tensor: Tensor, value: object) -> np.ndarray:
    """Returns `value` if it is an array that fits the parameter. InputError otherwise."""
    import numpy as np

    name, wanted = tensor.name, tensor.dtype
    if not isinstance(value, np.ndarray):
        raise InputError(
            f"{name} is {describe(tensor)}; {quoted(value)} is not an array",
            hint=f"for an array of one value: {name}=full({_shape_text(tensor)},{wanted},{value})",
        )
    if not dtypes.holds(value.dtype, wanted):
        raise InputError(
            refusals.dtype(name, wanted, dtypes.name_of(value.dtype)),
            hint=_conversion(value.dtype, wanted),
        )
    if value.ndim != len(tensor.shape):
        raise InputError(
            refusals.rank(name, len(tensor.shape), value.ndim, value.shape),
            hint=f"{name} is {describe(tensor)}",
        )
    for dimension, (extent, there) in enumerate(zip(tensor.shape, value.shape, strict=True)):
        if isinstance(extent, int) and extent != there:
            raise InputError(refusals.extent(name, dimension, extent, value.shape))
    _check_strides(tensor, value)
    _check_multiples(tensor, value)
    if tensor.access != "r" and not value.flags.writeable:
        raise InputError(
            f"{name} is {describe(tensor)}, but the array is read-only",
            hint="pass a copy: np.array(x)",
        )
    if tensor.access != "r" and _overlaps_itself(value):
        strides = tuple(stride // value.itemsize for stride in value.strides)
        raise InputError(
            refusals.overlap(name, describe(tensor), value.shape, strides),
            hint="pass a copy, which has memory for each element: np.array(x), x.clone()",
        )
    if not value.flags.aligned:
        raise InputError(refusals.alignment(name), hint="pass a copy: np.array(x)")
    if tensor.alignment and value.ctypes.data % tensor.alignment:
        raise InputError(
            refusals.alignment(name, tensor.alignment),
            hint="it is part of another array: pass a copy: x.copy(), x.clone()",
        )
    return value


def _overlaps_itself(array: np.ndarray) -> bool:
    """Whether two elements of an array share memory, as may happen in an expanded or strided
    view."""
    modes = [(abs(step), n) for n, step in zip(array.shape, array.strides, strict=True) if n > 1]
    if not array.size:
        return False
    reach = array.itemsize  # bytes up to the end of the last element, over the modes so far
    for step, extent in sorted(modes):
        if step < reach:
            break
        reach += step * (extent - 1)
    else:
        return False
    span = sum(step * (extent - 1) for step, extent in modes) + array.itemsize
    if array.size > span // array.itemsize:
        return True  # more elements than there is memory for
    import numpy as np

    # Interleaved modes, which are rare: compare all offsets.
    places = np.zeros(1, np.int64)
    for step, extent in modes:
        places = np.add.outer(places, np.arange(extent, dtype=np.int64) * step).ravel()
    places.sort()
    return bool((np.diff(places) < array.itemsize).any())


def _shape_text(tensor: Tensor) -> str:
    extents = [str(extent) if isinstance(extent, int) else "100" for extent in tensor.shape]
    return f"({','.join(extents)}{',' if len(extents) == 1 else ''})"


def _conversion(dtype: np.dtype, wanted: str) -> str:
    if dtypes.holds(dtype.newbyteorder(), wanted):
        return (
            "its byte order is not this machine's; convert it: x.astype(x.dtype.newbyteorder('='))"
        )
    if wanted in dtypes.ML_DTYPES:
        return dtypes.spelled(wanted)
    return f"convert it: x.astype('{dtypes.numpy_dtype(wanted).name}')"


def _check_strides(tensor: Tensor, array: np.ndarray) -> None:
    """Strides only matter if a dimension has more than one element."""
    for dimension, stride in enumerate(array.strides):
        if array.shape[dimension] > 1 and stride % array.itemsize and array.size:
            raise InputError(
                f"stride {dimension} of {tensor.name} is {stride} bytes, which is not a multiple"
                " of the"
                f" element's {array.itemsize}",
                hint="pass a copy: np.ascontiguousarray(x)",
            )
    wanted = _canonical(array.shape) if tensor.contiguous else tensor.strides
    found = tuple(stride // array.itemsize for stride in array.strides)
    for dimension, (want, have) in enumerate(zip(wanted, found, strict=True)):
        if want is not None and want != have and array.shape[dimension] > 1 and array.size:
            raise InputError(
                refusals.stride(tensor.name, tensor.contiguous, dimension, want, have),
                hint="pass a copy: np.ascontiguousarray(x)",
            )


def _check_multiples(tensor: Tensor, array: np.ndarray) -> None:
    """Checks the divisibility that the kernel assumes."""
    strides = (
        stride // array.itemsize if extent > 1 and array.size else 0
        for extent, stride in zip(array.shape, array.strides, strict=True)
    )
    found = zip(tensor.multiples, (*array.shape, *strides), strict=False)
    for number, (divisor, value) in enumerate(found):
        if value % divisor:
            what = "extent" if number < array.ndim else "stride"
            raise InputError(
                refusals.multiple(tensor.name, what, number % array.ndim, divisor, value),
                hint="the kernel was compiled for such arrays: pad the array, or compile without"
                " div=",
            )


def _canonical(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the strides of a C-contiguous array, in elements."""
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def extents_of(tensor: Tensor, array: np.ndarray) -> Extents:
    """Returns an array's extents and strides for the program. NumPy leaves the stride of a
    dimension of one element unspecified; if the parameter fixes it, the kernel may rely on it."""
    canonical = _canonical(array.shape)
    strides = [stride // array.itemsize for stride in array.strides]
    for dimension, stated in enumerate(tensor.strides):
        if tensor.contiguous:
            strides[dimension] = canonical[dimension]
        elif stated is not None:
            strides[dimension] = stated
        elif array.shape[dimension] < 2 and tensor.multiples:
            strides[dimension] = 0
    return Extents(array.shape, tuple(strides))


def check_symbols(
    tensors: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, int]:
    """Returns the extents of symbols. InputError if two arrays disagree. Tensors that are not in
    `shapes` are ignored."""
    known: dict[str, tuple[int, str]] = {}
    for name, shape in shapes.items():
        for symbol, extent in zip(tensors[name].shape, shape, strict=True):
            if not isinstance(symbol, str):
                continue
            before, first = known.setdefault(symbol, (extent, name))
            if before != extent:
                raise InputError(
                    refusals.symbol(symbol, first, before, name, extent),
                    hint=f"{first} has shape {shapes[first]}, {name} {shape}",
                )
    return {symbol: extent for symbol, (extent, _) in known.items()}
