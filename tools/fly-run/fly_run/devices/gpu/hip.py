"""HIP (libamdhip64). Not yet run on AMD hardware.

Signatures and numbers: hip_runtime_api.h of ROCm 6 and 7. hipGetDeviceProperties is a macro there
for the function that fills the struct of version 6.
"""

from __future__ import annotations

import ctypes
from ctypes import c_int
from typing import ClassVar

from fly_run.devices.gpu.device import Gpu, open_gpu
from fly_run.devices.gpu.driver import OUT, OUT_INT, POINTER, TEXT, Driver, calls
from fly_run.devices.options import Options

# hipDeviceProp_tR0600: its size, and where gcnArchName (256 bytes) is.
_PROPERTIES, _ARCHITECTURE = 1472, 1160
_ROOM = 8192  # a later version of the struct may be longer


class Hip(Driver):
    NAME, PRODUCT = "hip", "HIP's library"
    LIBRARIES = (
        "libamdhip64.so.7",
        "libamdhip64.so.6",
        "libamdhip64.so",
        "/opt/rocm/lib/libamdhip64.so",
    )
    MISSING = (
        "libamdhip64.so belongs to ROCm; install that, use --device emulator, or compile for the"
        " GPU that is here: --target, or FLY_TARGET"
    )
    END = 3
    CALLS = calls(
        {
            "init": "hipInit",
            "count": "hipGetDeviceCount",
            "name": "hipDeviceGetName",
            "attribute": "hipDeviceGetAttribute",
            "memory": "hipMemGetInfo",
            "unload": "hipModuleUnload",
            "function": "hipModuleGetFunction",
            "variable": "hipModuleGetGlobal",
            "launch": "hipModuleLaunchKernel",
            "alloc": "hipMalloc",
            "free": "hipFree",
            "copy to device": "hipMemcpyHtoDAsync",
            "copy from device": "hipMemcpyDtoHAsync",
            "copy on device": "hipMemcpyDtoDAsync",
            "fill": "hipMemsetD8Async",
            "stream": "hipStreamCreateWithFlags",
            "destroy stream": "hipStreamDestroy",
            "wait for stream": "hipStreamSynchronize",
            "event": "hipEventCreateWithFlags",
            "record": "hipEventRecord",
            "wait for event": "hipEventSynchronize",
            "elapsed": "hipEventElapsedTime",
            "destroy event": "hipEventDestroy",
            "wait": "hipDeviceSynchronize",
        },
        properties=("hipGetDevicePropertiesR0600", (POINTER, c_int)),
        current=("hipGetDevice", (OUT_INT,)),
        switch=("hipSetDevice", (c_int,)),
        load=("hipModuleLoadData", (OUT, POINTER)),
    )
    ATTRIBUTES: ClassVar = {  # hipDeviceAttribute_t
        "clock": 5,  # kHz
        "memory width": 59,  # bits
        "memory clock": 60,  # kHz
        "processors": 63,  # compute units
    }

    def text(self, status: int) -> str:
        words: list[str] = []
        for name in ("hipGetErrorName", "hipGetErrorString"):
            function = getattr(self._library, name)
            function.argtypes, function.restype = (c_int,), TEXT
            told = function(status)
            if told:
                words.append(told.decode(errors="replace"))
        return ": ".join(words) or f"status {status}"

    def architecture(self, device: int) -> str:
        """Features follow a colon: "gfx942:sramecc+:xnack-"."""
        room = ctypes.create_string_buffer(_ROOM)
        assert len(room) >= _PROPERTIES
        self.call("properties", ctypes.addressof(room), device)
        return room.raw[_ARCHITECTURE : _ARCHITECTURE + 256].split(b"\0")[0].decode()

    def runs(self, architecture: str, target: str) -> bool:
        return architecture.partition(":")[0] == target

    def lanes(self, architecture: str) -> int:
        """AMD's CDNA 2 and 3 white papers: 128 multiply-adds a compute unit, packed by two."""
        return 128 if architecture.startswith(("gfx90a", "gfx94", "gfx95")) else 0

    def retain(self, device: int) -> int:
        """HIP's contexts are its devices."""
        return device

    def release(self, device: int) -> None:
        pass

    def current(self) -> int:
        return self.integer("current")

    def switch(self, context: int) -> None:
        self.call("switch", context)

    def load(self, data: bytes, doing: str) -> tuple[int, object]:
        """HIP reads from the image as long as the module is loaded."""
        image = ctypes.create_string_buffer(data, len(data))
        return self.handle("load", ctypes.addressof(image), doing=doing), image

    # Dynamic LDS needs no attribute; hipFuncSetAttribute takes the address of a host function.


def open_hip(target: str, options: Options, ordinal: int | None = None) -> Gpu:
    """Opens HIP device `ordinal`; for None the first of the target."""
    return open_gpu(Hip, target, options, ordinal)
