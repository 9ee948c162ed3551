"""Machine code linked within this process, for machines without `ld.lld`.

Such machines run kernels that were compiled elsewhere. LLVM's ORC, which llvmlite has, links a
relocatable object in the process's memory; its functions are used as those of a `ctypes.CDLL` are.
A shared library is preferred where there is a linker: it loads in a third of the time, and
debuggers and profilers know it.
"""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

from fly_host.native.unavailable import NotCompiled

_count = itertools.count()
# The type of functions of C, as attributes of a library have it.
_Function: Any = ctypes.CDLL(None)._FuncPtr  # type: ignore[attr-defined]


class Linked:
    """The functions of an object, as attributes. They live as long as this does."""

    def __init__(self, binding: Any, data: bytes) -> None:
        """Links the object `data`, with symbols of this process. `binding` is llvmlite's
        module, with the native target initialised. NotCompiled if it can't be linked."""
        self._name = f"launcher-{next(_count)}"
        try:
            self._jit = binding.create_lljit_compiler(use_jit_link=True, suppress_errors=True)
            builder = binding.JITLibraryBuilder().add_object_img(data).add_current_process()
            # The code is freed with any of these trackers, not with the last of them.
            self._trackers = [builder.link(self._jit, self._name)]
        except RuntimeError as error:
            reason = (str(error) or "no reason given").splitlines()[0]
            raise NotCompiled(f"linking the launcher failed: {reason}") from None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            found = self._jit.lookup(self._name, name)
        except RuntimeError:
            raise AttributeError(f"the launcher has no function {name}") from None
        self._trackers.append(found)
        function = _Function(found[name])
        function.__name__ = name
        setattr(self, name, function)
        return function
