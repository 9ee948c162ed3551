"""Images that a device has loaded, and their kernels."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import weakref
from collections.abc import Iterator
from typing import Any

from fly_common.errors import FlyError, InputError
from fly_image.image import Image, KernelInterface

from fly_run.devices.gpu.context import MOST_NAMES, Context, undo
from fly_run.devices.gpu.driver import NOT_FOUND
from fly_run.devices.host_variables import checked


@contextlib.contextmanager
def about(what: str, kernel: str | None) -> Iterator[None]:
    """Says of a driver's errors what they are about."""
    try:
        yield
    except FlyError as error:
        if what:
            error.message = f"{what}: {error.message}"
        error.kernel = kernel
        raise


class GpuFunction:
    """A kernel. It keeps its module loaded."""

    def __init__(self, module: GpuModule, interface: KernelInterface):
        self.module, self.interface = module, interface
        self.context = module.context
        name = interface.name
        self.handle = self.context.handle_of("function", module.handle, name.encode(), kernel=name)
        self._allowed = False

    def allow_shared(self) -> None:
        """Lets a launch ask for as much shared memory as the device has."""
        if not self._allowed:
            name = self.interface.name
            with self.context, about(f"kernel {name}", name):
                self.context.driver.allow_shared(self.handle, self.context.device)
            self._allowed = True


class GpuVariable:
    """A variable. It keeps its module loaded. See Variable."""

    def __init__(self, module: GpuModule, name: str, address: int, nbytes: int):
        self.module, self.name = module, name
        self.address, self.nbytes = address, nbytes

    def read(self, nbytes: int | None = None) -> bytes:
        """See Variable."""
        size = checked(self.name, self.nbytes, nbytes)
        room = ctypes.create_string_buffer(max(1, size))
        if size:
            self._call("copy from device", ctypes.addressof(room), self.address, size, None)
        return room.raw[:size]

    def write(self, data: bytes) -> None:
        """See Variable."""
        room = ctypes.create_string_buffer(data, max(1, len(data)))
        if checked(self.name, self.nbytes, len(data)):
            self._call("copy to device", self.address, ctypes.addressof(room), len(data), None)

    def clear(self, nbytes: int | None = None) -> None:
        """See Variable."""
        if size := checked(self.name, self.nbytes, nbytes):
            self._call("fill", self.address, 0, size, None)

    def _call(self, role: str, *arguments: Any) -> None:
        context = self.module.context
        context.call(role, *arguments, doing=f"variable {self.name}")
        context.call("wait", doing=f"variable {self.name}")


class GpuModule:
    """A loaded image. It is unloaded when nobody holds it: native code may have its functions
    beyond `unload`."""

    def __init__(self, context: Context, image: Image, architecture: str):
        self.context, self.image = context, image
        driver = context.driver
        names = sorted(image.kernels)
        kernels = f"kernel{'' if len(names) == 1 else 's'} {', '.join(names[:MOST_NAMES])}"
        more = " and others" if len(names) > MOST_NAMES else ""
        only = names[0] if len(names) == 1 else None
        with context, about(kernels + more if names else "", only):
            try:
                self.handle, kept = driver.load(image.data, "")
            except InputError as error:
                if error.hint is None:
                    error.hint = (
                        f"the code is for {image.variant}; {driver.NAME}:{context.device} is"
                        f" {architecture}"
                    )
                raise
        self._functions: dict[str, GpuFunction] = {}
        self._loading = threading.Lock()
        # Its kernels may still run. `kept` has to live until then.
        calls = (("wait", 0), ("unload", self.handle))
        finalizer = weakref.finalize(self, _unload, context, os.getpid(), kept, calls)
        finalizer.atexit = False

    def function(self, name: str | None) -> GpuFunction:
        """See Module."""
        interface = self.image.kernel(name)
        with self._loading:
            found = self._functions.get(interface.name)
            if found is None:
                found = self._functions[interface.name] = GpuFunction(self, interface)
            return found

    def variable(self, name: str) -> GpuVariable | None:
        """See Module."""
        address, size = ctypes.c_void_p(), ctypes.c_size_t()
        places = (ctypes.byref(address), ctypes.byref(size))
        with self.context:
            status = self.context.driver.status("variable", *places, self.handle, name.encode())
        if status == NOT_FOUND:
            return None
        if status:
            raise self.context.error("variable", status, f"variable {name}")
        return GpuVariable(self, name, address.value or 0, size.value)

    def unload(self) -> None:
        """See Module. The functions hold the module, and the module them: without this the driver's
        module would live until Python looks for cycles."""
        with self._loading:
            self._functions.clear()


def _unload(
    context: Context, process: int, kept: object, calls: tuple[tuple[str, int], ...]
) -> None:
    undo(context, process, *calls)
