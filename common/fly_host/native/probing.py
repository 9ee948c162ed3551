"""What this process offers to native code: torch's and NumPy's functions, looked for once.

torch's are in its shared libraries: `aoti_torch_*` is its stable C interface; wrapping a tensor as
a Python object and asking for its negative bit are C++ functions, whose symbols may change. What is
missing is replaced by Python's way, which is slower.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fly_numerics.element_types import ELEMENT_TYPES

from fly_host.native.unavailable import Unavailable

OBJECT_TYPE = 8  # where PyObject.ob_type is
CELL_CONTENTS = 16  # where PyCellObject.ob_ref is
TABLE_VERSION = 1  # the major version of DLPack's table of functions
_WRAP = "_Z16THPVariable_WrapRKN2at10TensorBaseE"
_IS_NEG = "_ZN2at6native6is_negERKNS_6TensorE"
_SHIM = (
    "aoti_torch_empty_strided",
    "aoti_torch__reinterpret_tensor",
    "aoti_torch_get_data_ptr",
    "aoti_torch_delete_tensor_object",
)
_NEW_FROM_DESCR, _SET_BASE_OBJECT = 94, 282  # places in NumPy's table (numpy/__multiarray_api.h)
DEVICES = {1: 0, 2: 1, 3: 0, 10: 1}  # DLPack's device types → torch's; torch calls HIP cuda


@dataclass(frozen=True)
class Torch:
    """`dltensor` is the address of the function that reads a tensor. `tensor_at` is where in a
    Python tensor the C++ one is, None where that is not known. `functions` are the addresses of
    those that allocate, empty where they are not there; `dtypes` torch's numbers of our types."""

    dltensor: int
    tensor_at: int | None
    is_neg: int
    functions: dict[str, int]
    dtypes: dict[str, int]

    @property
    def allocates(self) -> bool:
        return bool(self.functions)


def check_python() -> None:
    """Unavailable where objects are laid out in another way than launchers take for granted."""
    import sysconfig

    if sys.implementation.name != "cpython" or not (3, 11) <= sys.version_info[:2] <= (3, 14):
        raise Unavailable(f"launchers know CPython 3.11 to 3.14, this is {sys.version.split()[0]}")
    if sysconfig.get_config_var("Py_GIL_DISABLED") or hasattr(sys, "getobjects"):
        raise Unavailable("objects have another layout in this build of Python")
    if not _laid_out_as_known():
        raise Unavailable("objects have another layout in this version of Python")
    if ctypes.sizeof(ctypes.c_void_p) != 8 or sys.byteorder != "little":
        raise Unavailable("launchers need a processor of 64 bits, least significant byte first")


@functools.cache
def _laid_out_as_known() -> bool:
    """Whether objects have their type where launchers look for it, and cells their contents where
    the dispatcher of `fly.call` does."""

    def closure(value: object) -> Callable[[], object]:
        return lambda: value

    contents = object()
    cells = closure(contents).__closure__
    assert cells is not None
    cell = cells[0]
    found = [(cell, CELL_CONTENTS, contents)]
    found += [(one, OBJECT_TYPE, type(one)) for one in (1, 1.5, True, "text", cell, contents)]
    return all(
        ctypes.c_uint64.from_address(id(one) + place).value == id(held)
        for one, place, held in found
    )


@functools.cache
def torch() -> Torch:
    """What torch offers. Unavailable without its table of DLPack functions."""
    module: Any = sys.modules["torch"]
    capsule = getattr(module.Tensor, "__dlpack_c_exchange_api__", None)
    if capsule is None:
        raise Unavailable(f"torch {module.__version__} has no __dlpack_c_exchange_api__")
    table = _capsule(capsule, b"dlpack_exchange_api")
    # version (two 32-bit integers), the table before it, then functions.
    words = (ctypes.c_uint64 * 6).from_address(table)
    if words[0] & 0xFFFFFFFF != TABLE_VERSION:
        raise Unavailable(
            f"torch's table of DLPack functions is of version {words[0] & 0xFFFFFFFF}"
        )
    folder = os.path.join(os.path.dirname(module.__file__), "lib")
    main, binding = (_library(folder, name) for name in ("libtorch_cpu.so", "libtorch_python.so"))
    is_neg, place = _address(main, _IS_NEG), _tensor_at(module)
    if not is_neg or place is None:
        is_neg, place = id(module.Tensor.is_neg), None
    functions = {name: _address(main, name) for name in _SHIM}
    functions["THPVariable_Wrap"] = _address(binding, _WRAP)
    dtypes = _dtypes(main)
    if not all(functions.values()):
        functions = {}
    return Torch(words[5], place, is_neg, functions, dtypes)


def device_of(tensor: Any) -> tuple[int, int]:
    """DLPack's device of a tensor, by the function that launchers call: `__dlpack_device__` tells
    pinned memory from other memory of the CPU. RuntimeError for a tensor without one."""
    read = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(torch().dltensor)
    found = (ctypes.c_int32 * 12)()
    read(tensor, ctypes.addressof(found))
    return found[2], found[3]


def _capsule(capsule: object, name: bytes | None) -> int:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return pointer(capsule, name)


def _library(folder: str, name: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(os.path.join(folder, name))
    except OSError:
        return None


def _address(library: ctypes.CDLL | None, name: str) -> int:
    """The address of a function, 0 where there is none."""
    function = getattr(library, name, None)
    return ctypes.cast(function, ctypes.c_void_p).value or 0 if function else 0


def _tensor_at(module: Any) -> int | None:
    """Where in a Python tensor the pointer to torch's own one is, which `_cdata` tells."""
    try:
        tensors = [module.empty(1), module.empty(2, 3)]
        for offset in (16, 24, 32):
            words = [ctypes.c_uint64.from_address(id(tensor) + offset).value for tensor in tensors]
            if words == [tensor._cdata for tensor in tensors]:
                return offset
    except (AttributeError, RuntimeError):
        pass
    return None


def _dtypes(library: ctypes.CDLL | None) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, row in ELEMENT_TYPES.items():
        function = getattr(library, f"aoti_torch_dtype_{row.long_name}", None)
        if row.long_name and function is not None:
            function.restype, function.argtypes = ctypes.c_int32, []
            found[name] = function()
    return found


@functools.cache
def numpy_functions() -> dict[str, int]:
    """The addresses of PyArray_NewFromDescr and PyArray_SetBaseObject."""
    import numpy

    core: Any = getattr(numpy, "_core", None) or numpy.core  # NumPy 2 or 1
    table = _capsule(core._multiarray_umath._ARRAY_API, None)
    words = (ctypes.c_uint64 * (_SET_BASE_OBJECT + 1)).from_address(table)
    return {
        "PyArray_NewFromDescr": words[_NEW_FROM_DESCR],
        "PyArray_SetBaseObject": words[_SET_BASE_OBJECT],
    }
