"""`flydsl.compiler.backends`: the target that programs are compiled for."""

from __future__ import annotations

from typing import Any, NoReturn

from fly_common.errors import UsageError
from fly_common.record import record

__all__ = ["BaseBackend", "GPUTarget", "compile_backend_name", "get_backend", "register_backend"]


@record
class GPUTarget:
    """A backend's name, a chip, and the number of lanes of its waves."""

    backend: str
    arch: str
    warp_size: int


class BaseBackend:
    """What a program asks of a backend: `get_backend().target`. Other backends are this project's
    own (docs/backends.md)."""

    def __init__(self, target: GPUTarget):
        self.target = target


def compile_backend_name() -> str:
    """The name of the backend."""
    return "rocm"


def current_target() -> GPUTarget:
    """The target of what is compiled now."""
    from fly.flydsl.runtime.device import get_rocm_arch, get_warp_size

    arch = get_rocm_arch()
    return GPUTarget(compile_backend_name(), arch, get_warp_size(arch))


def get_backend(name: str | None = None, *, arch: str | None = None) -> BaseBackend:
    """The backend for the current target, or for `arch`."""
    from fly.flydsl.runtime.device import get_warp_size

    if name not in (None, compile_backend_name()):
        raise UsageError(f"flydsl has the backend {compile_backend_name()}, not {name}")
    if arch is None:
        return BaseBackend(current_target())
    return BaseBackend(GPUTarget(compile_backend_name(), arch, get_warp_size(arch)))


def register_backend(*_: Any, **__: Any) -> NoReturn:
    """Refused: a backend of FlyDSL names passes of FlyDSL's library."""
    raise UsageError(
        "a backend of FlyDSL names passes of FlyDSL's own library, which is not here",
        hint="write one of this project: docs/backends.md",
    )
