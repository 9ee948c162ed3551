"""Images that a device has loaded, and their kernels."""

from __future__ import annotations

import os
import threading
import weakref

from fly_common.errors import InputError
from fly_image.image import Image, KernelInterface

from fly_run.devices.gpu.context import Context, undo


class GpuFunction:
    """A kernel. It keeps its module loaded."""

    def __init__(self, module: GpuModule, interface: KernelInterface):
        self.module, self.interface = module, interface
        self.context = module.context
        name = interface.name
        self.handle = self.context.handle_of(
            "function", module.handle, name.encode(), doing=f"kernel {name}"
        )
        self._allowed = False

    def allow_shared(self) -> None:
        """Lets a launch ask for as much shared memory as the device has."""
        if not self._allowed:
            with self.context:
                self.context.driver.allow_shared(self.handle, self.context.device)
            self._allowed = True


class GpuModule:
    """A loaded image. It is unloaded when nobody holds it: native code may have its functions
    beyond `unload`."""

    def __init__(self, context: Context, image: Image, architecture: str):
        self.context, self.image = context, image
        driver = context.driver
        with context:
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

    def unload(self) -> None:
        """See Module. The functions hold the module, and the module them: without this the driver's
        module would live until Python looks for cycles."""
        with self._loading:
            self._functions.clear()


def _unload(
    context: Context, process: int, kept: object, calls: tuple[tuple[str, int], ...]
) -> None:
    undo(context, process, *calls)
