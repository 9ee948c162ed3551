"""CUDA's driver API (libcuda).

Signatures and numbers: cuda.h of CUDA 13. The functions with a `_v2` are those that cuda.h's macros
stand for.
"""

from __future__ import annotations

import ctypes
import re
from ctypes import c_int, c_uint, c_void_p
from typing import ClassVar

from fly_common.errors import InputError, MissingError
from fly_host.native.specialisation import Describing
from fly_host.tiles import Tile

from fly_run.devices.gpu.device import Gpu, open_gpu
from fly_run.devices.gpu.driver import OUT, POINTER, TEXT, Driver, calls
from fly_run.devices.options import Options

# CUjit_option
_INFO, _INFO_SIZE, _ERROR, _ERROR_SIZE, _LINES = 3, 4, 5, 6, 13
_LOG = 8192  # bytes
_SHARED_STATIC, _SHARED_DYNAMIC = 1, 8  # CUfunction_attribute
_MAP_BYTES, _MAP_ALIGNMENT = 128, 64
# CUtensorMapDataType, by MLIR's names of element types
_ELEMENTS = {
    **dict.fromkeys(("i8", "f8E4M3FN", "f8E5M2"), 0),
    "i16": 1,
    "i32": 3,
    "i64": 5,
    "f16": 6,
    "f32": 7,
    "f64": 8,
    "bf16": 9,
}
_ROUNDED = {"f32": 11}  # those of types that are rounded as they are loaded, to TF32
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}  # CUtensorMapSwizzle
_PROMOTION = 3  # of accesses to 256 bytes in the L2 cache
# CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions", 32-bit multiply-add.
_LANES = {
    (8, 0): 64,
    (8, 6): 128,
    (8, 9): 128,
    (9, 0): 128,
    (10, 0): 128,
    (10, 3): 128,
    (12, 0): 128,
}
_USUAL_SHARED = 48 << 10  # bytes of a block that need no attribute (CUDA C++ Programming Guide)


class Cuda(Driver):
    NAME, PRODUCT = "cuda", "CUDA's driver"
    LIBRARIES = ("libcuda.so.1", "libcuda.so")
    MISSING = "libcuda.so.1 belongs to NVIDIA's driver: install that"
    END = 0
    CALLS = calls(
        {
            "init": "cuInit",
            "count": "cuDeviceGetCount",
            "name": "cuDeviceGetName",
            "attribute": "cuDeviceGetAttribute",
            "memory": "cuMemGetInfo_v2",
            "unload": "cuModuleUnload",
            "function": "cuModuleGetFunction",
            "variable": "cuModuleGetGlobal_v2",
            "function attribute": "cuFuncGetAttribute",
            "launch": "cuLaunchKernel",
            "alloc": "cuMemAlloc_v2",
            "free": "cuMemFree_v2",
            "copy to device": "cuMemcpyHtoDAsync_v2",
            "copy from device": "cuMemcpyDtoHAsync_v2",
            "copy on device": "cuMemcpyDtoDAsync_v2",
            "fill": "cuMemsetD8Async",
            "stream": "cuStreamCreate",
            "destroy stream": "cuStreamDestroy_v2",
            "wait for stream": "cuStreamSynchronize",
            "event": "cuEventCreate",
            "record": "cuEventRecord",
            "wait for event": "cuEventSynchronize",
            "elapsed": "cuEventElapsedTime",
            "destroy event": "cuEventDestroy_v2",
            "wait": "cuCtxSynchronize",
        },
        retain=("cuDevicePrimaryCtxRetain", (OUT, c_int)),
        release=("cuDevicePrimaryCtxRelease_v2", (c_int,)),
        current=("cuCtxGetCurrent", (OUT,)),
        switch=("cuCtxSetCurrent", (POINTER,)),
        load=("cuModuleLoadDataEx", (OUT, POINTER, c_uint, POINTER, POINTER)),
        describe=(
            "cuTensorMapEncodeTiled",
            (POINTER, c_int, c_uint, *[POINTER] * 5, *[c_int] * 4),
        ),
        launch_extended=("cuLaunchKernelEx", (POINTER,) * 4),
        set_function_attribute=("cuFuncSetAttribute", (POINTER, c_int, c_int)),
        error_name=("cuGetErrorName", (c_int, ctypes.POINTER(TEXT))),
        error_text=("cuGetErrorString", (c_int, ctypes.POINTER(TEXT))),
    )
    ATTRIBUTES: ClassVar = {  # CUdevice_attribute
        "clock": 13,  # kHz
        "processors": 16,
        "memory clock": 36,  # kHz
        "memory width": 37,  # bits
        "major": 75,
        "minor": 76,
        "shared": 97,  # bytes of a block, with the kernel's attribute
    }

    def text(self, status: int) -> str:
        words: list[str] = []
        for role in ("error name", "error text"):
            told = TEXT()
            if not self.status(role, status, ctypes.byref(told)) and told.value:
                words.append(told.value.decode(errors="replace"))
        return ": ".join(words) or f"status {status}"

    def architecture(self, device: int) -> str:
        return f"sm_{self.attribute('major', device)}{self.attribute('minor', device)}"

    def runs(self, architecture: str, target: str) -> bool:
        """PTX runs on its own architecture and on later ones, that for a target with an "a" on its
        own only, with an "f" on those of the same major version (PTX ISA, ".target"). Machine code
        runs on fewer; the driver refuses it when it is loaded."""
        wanted, has = _version(target), _version(architecture)
        if wanted is None or has is None or (wanted[2] == "f" and wanted[0] != has[0]):
            return False
        return wanted[:2] == has[:2] if wanted[2] == "a" else wanted[:2] <= has[:2]

    def lanes(self, architecture: str) -> int:
        version = _version(architecture)
        return 0 if version is None else _LANES.get(version[:2], 0)

    def retain(self, device: int) -> int:
        return self.handle("retain", device)

    def release(self, device: int) -> None:
        self.call("release", device)

    def current(self) -> int:
        return self.handle("current")

    def switch(self, context: int) -> None:
        self.call("switch", context or None)

    def load(self, data: bytes, doing: str) -> tuple[int, object]:
        """PTX is text that ends in a null byte. What its compiler says is part of the error."""
        info, error = (ctypes.create_string_buffer(_LOG) for _ in range(2))
        options = {
            _INFO: ctypes.addressof(info),
            _INFO_SIZE: _LOG,
            _ERROR: ctypes.addressof(error),
            _ERROR_SIZE: _LOG,
            _LINES: 1,
        }
        names = (c_int * len(options))(*options)
        values = (c_void_p * len(options))(*options.values())
        made = c_void_p()
        image = ctypes.create_string_buffer(data, len(data) + 1)
        arguments = (len(options), ctypes.addressof(names), ctypes.addressof(values))
        status = self.status("load", ctypes.byref(made), ctypes.addressof(image), *arguments)
        if status:
            found = self.error(self.CALLS["load"].name, status, doing)
            log = error.value.decode(errors="replace").strip()
            if log and isinstance(found, InputError):
                found.hint = log.replace("\n", "\n  ")
            raise found
        return made.value or 0, None

    def extended_launch(self) -> str | None:
        try:
            self.function("launch extended")
        except MissingError:  # a driver from before CUDA 11.8
            return None
        return "launch extended"

    def describe(self, tile: Tile) -> bytes:
        """cuTensorMapEncodeTiled, for dense boxes. Elements out of bounds are 0."""
        kind = (_ROUNDED if tile.rounded else _ELEMENTS).get(tile.dtype)
        if kind is None:
            raise InputError(f"TMA copies no {tile.dtype}")
        rank = len(tile.shape)
        room = ctypes.create_string_buffer(_MAP_BYTES + _MAP_ALIGNMENT)
        at = ctypes.addressof(room) + -ctypes.addressof(room) % _MAP_ALIGNMENT
        extents = (ctypes.c_uint64 * rank)(*tile.shape)
        strides = (ctypes.c_uint64 * max(1, rank - 1))(*tile.strides)
        box, steps = (c_uint * rank)(*tile.box), (c_uint * rank)(*([1] * rank))
        arrays = [ctypes.addressof(one) for one in (extents, strides, box, steps)]
        choices = (0, _SWIZZLES[tile.swizzle], _PROMOTION, 0)
        self.call("describe", at, kind, rank, tile.address, *arrays, *choices)
        return ctypes.string_at(at, _MAP_BYTES)

    def describing(self) -> Describing | None:
        try:
            address = self.address("describe")
        except MissingError:  # a driver from before CUDA 12
            return None
        elements, swizzles = tuple(_ELEMENTS.items()), tuple(_SWIZZLES.items())
        return Describing(address, elements, swizzles, _PROMOTION, tuple(_ROUNDED.items()))

    def allow_shared(self, function: int, device: int) -> None:
        most = self.attribute("shared", device)
        static = self.integer("function attribute", _SHARED_STATIC, function)
        if most > _USUAL_SHARED:
            self.call("set function attribute", function, _SHARED_DYNAMIC, most - static)


def _version(name: str) -> tuple[int, int, str] | None:
    """("sm_90a") → (9, 0, "a")."""
    match = re.fullmatch(r"sm_(\d+)(\d)([af]?)", name)
    return (int(match[1]), int(match[2]), match[3]) if match else None


def open_cuda(target: str, options: Options, ordinal: int | None = None) -> Gpu:
    """Opens CUDA device `ordinal`; for None the first that runs the target."""
    return open_gpu(Cuda, target, options, ordinal)
