"""What runs kernels: the protocol, and the table of devices.

A device sees buffers of host memory under addresses of its own, and launches kernels of a code
object on them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from fly_common.errors import MissingError, UsageError
from fly_image.amd.code_object import CodeObject

if TYPE_CHECKING:
    from fly_run.emulator.watch.observe import Observer

Triple = tuple[int, int, int]
# Called now and then while a kernel runs: workgroups done, workgroups in all.
Progress = Callable[[int, int], None]


MFMA = ("exact", "fast")  # how matrix instructions may be computed


@dataclass(frozen=True)
class Options:
    """How a device is to run kernels, whichever it is; what one can't do it ignores or refuses.

    `max_instructions` ends a launch after so many wave instructions. `threads` is how many host
    threads share a long grid; unless it is given, as many as there are processors, and one where
    the order of workgroups would show. `observers` hear of instructions as they are executed.
    `mfma` is how matrix instructions are computed where they are emulated: "exact", as the best
    public model of the hardware has it, or "fast", as chains of fused multiply-adds.
    `strict` ends a launch that reads registers before their loads have arrived, races on LDS, or
    lets uninitialised values matter; FLY_STRICT=1 in the environment asks for it too.
    """

    max_instructions: int | None = None
    threads: int | None = None
    progress: Progress | None = None
    observers: tuple[Observer, ...] = ()
    mfma: str = "exact"
    strict: bool = False


class Device(Protocol):
    """A GPU or what stands for one. Errors of a kernel while it runs are fly_common.errors.Fault.

    `name` is shown to users; `instructions` counts wave instructions executed so far, None where
    the device can't tell.
    """

    name: str

    @property
    def instructions(self) -> int | None: ...

    @property
    def remarks(self) -> tuple[str, ...]:
        """What users should know of how the launches so far were computed, a line each."""
        ...

    def bind(self, name: str, host: int, nbytes: int, writable: bool) -> int:
        """Makes `nbytes` bytes of host memory at address `host` visible to kernels, and returns
        their device address. `name` is what faults call it. The memory must outlive the device."""
        ...

    def launch(
        self,
        code: CodeObject,
        kernel: str,
        grid: Triple,
        block: Triple,
        kernarg: bytes,
        dynamic_lds: int,
    ) -> None:
        """Runs `grid` workgroups of `block` work items. `kernarg` holds the explicit arguments at
        the offsets that the metadata gives; the device fills the hidden ones."""
        ...

    def synchronize(self) -> None:
        """Returns when every launch has ended and host memory holds the results."""
        ...

    def close(self) -> None: ...


def _open_emulator(target: str, options: Options) -> Device:
    from fly_run.emulator.machine import Emulator

    return Emulator(target, options)


DEVICES: dict[str, Callable[[str, Options], Device]] = {
    "emulator": _open_emulator,
}
AUTO = "emulator"  # the emulator is there on every machine
# Devices that have a name already, and what to say to who asks for one.
NOT_HERE = {
    "hip": "this version of fly-run launches on its emulator only, not through ROCm's HIP runtime",
    "cuda": "this version of fly-run launches on its emulator only, and runs AMD GPU code only",
}


def open_device(name: str, target: str, options: Options | None = None) -> Device:
    """A device for code of `target` ("gfx942"); `name` is one of DEVICES, or "auto". MissingError
    where there is none such here, or where the device does not run that target."""
    name = AUTO if name == "auto" else name
    if name in NOT_HERE:
        raise MissingError(NOT_HERE[name], hint="use --device emulator, which needs no GPU")
    if name not in DEVICES:
        known = ", ".join(["auto", *DEVICES, *NOT_HERE])
        raise UsageError(f"--device {name}: no such device", hint=f"devices: {known}")
    return DEVICES[name](target, options or Options())
