"""Arrays in the memory of a device, described as NumPy describes arrays of host memory.

    array = device_array(("cuda", 0), address, shape, strides, "float32")
    array.shape, array.strides, array.dtype, array.flags, array.ctypes.data

Everything that checks arrays and computes what they cover works on them as on any other array. What
would read or write elements raises instead: the address is not one of this process's memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from fly_common.errors import InputError
from fly_host import refusals

Place = tuple[str, int]


class DeviceArray(np.ndarray):
    """An array in device memory at `place`, ("cuda", 0). Made by `device_array` only."""

    place: Place

    def __array_finalize__(self, source: Any) -> None:
        """A view of memory of the device is in the device's memory too."""
        place = getattr(source, "place", None)
        if place is not None:
            self.place = place

    def __repr__(self) -> str:
        return f"<{self.dtype.name} array of shape {self.shape} on {show(self.place)}>"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)


def _refuse(array: Any, *_: Any, **__: Any) -> Any:
    raise InputError(
        f"the elements of this array are in the memory of {show(array.place)}",
        hint="pass x.cpu()",
    )


# What would read or write elements.
_SPECIAL = """getitem setitem iter contains bool int float complex index array_ufunc array_function
    reduce reduce_ex copy deepcopy"""
_METHODS = """tobytes tolist item copy astype dump dumps tofile fill sort sum min max mean any all
    flatten byteswap"""
for _name in (*(f"__{one}__" for one in _SPECIAL.split()), *_METHODS.split()):
    setattr(DeviceArray, _name, _refuse)


class _Interface:
    """What NumPy makes an array of without looking at its elements."""

    def __init__(self, interface: dict[str, Any]):
        self.__array_interface__ = interface


def device_array(
    place: Place,
    address: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: str,
    writable: bool = True,
) -> DeviceArray:
    """Describes memory of a device; `strides` in elements, `dtype` as NumPy names it."""
    kind = np.dtype(dtype)
    interface = {
        "version": 3,
        "shape": tuple(shape),
        "strides": tuple(stride * kind.itemsize for stride in strides),
        "typestr": kind.str,
        # NumPy takes null for "no data": then there are no elements.
        "data": (address or 1 << 12, not writable),
    }
    made = np.asarray(_Interface(interface)).view(DeviceArray)
    made.place = place
    return made


def place_of(array: Any) -> Place | None:
    """Where an array is; None for host memory."""
    return array.place if isinstance(array, DeviceArray) else None


def common_place(arrays: Iterable[tuple[str, Any]]) -> Place | None:
    """The place of all arrays, given with their names. InputError where they differ."""
    found: tuple[str, Place | None] | None = None
    for name, array in arrays:
        place = place_of(array)
        if found is None:
            found = name, place
        elif found[1] != place:
            raise InputError(
                refusals.places(found[0], where(found[1]), name, where(place)),
                hint=f"all arrays of a call must be in one place: {_move(found, (name, place))}",
            )
    return None if found is None else found[1]


def some_place(values: Iterable[Any]) -> Place | None:
    """The place of the first array that is not in host memory."""
    return next((value.place for value in values if isinstance(value, DeviceArray)), None)


def _move(first: tuple[str, Place | None], second: tuple[str, Place | None]) -> str:
    name, place = (second[0], first[1]) if first[1] is not None else (first[0], second[1])
    assert place is not None
    return f"{name}.to('{show(place)}')"


def show(place: Place) -> str:
    """("cuda", 0) → "cuda:0"."""
    return f"{place[0]}:{place[1]}"


def where(place: Place | None) -> str:
    """For messages: "on cuda:0"."""
    return "in host memory" if place is None else f"on {show(place)}"
