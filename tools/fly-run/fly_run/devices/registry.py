"""The registry of devices: name → factory, resolved on use.

    auto            the first of the target's devices (`AUTO`) that is here
    hip, cuda       a GPU; "cuda:1" is the second
    emulator        code for AMD's GPUs
    cpu             code for NVIDIA's GPUs, compiled for the host
    exec:COMMAND    a command that launches (`fly_run.devices.external`)

Another package adds a device as an entry point of the group `fly.devices`, with the name that
`--device` takes, for a factory with the signature (target, options) → Device; or in the record of
its backend (`fly_backend.backend.Backend.devices`), or in that of a plugin that is active. Entry
points are only consulted for names that are neither in the table nor of a backend in use.
"""

from __future__ import annotations

import contextlib

from fly_backend import registry as backends
from fly_common.errors import MissingError, UsageError
from fly_common.quoting import quoted
from fly_common.resolve import entry_points, resolve
from fly_plugin import active

from fly_run.devices.options import Options, in_environment
from fly_run.devices.protocol import Device

GROUP = "fly.devices"
# Factories (target, options) → Device. Those of `NUMBERED` take the device's number, or None, too.
DEVICES: dict[str, str] = {
    "emulator": "fly_run.emulator.machine:Emulator",
    "cpu": "fly_run.cpu.device:Cpu",
    "hip": "fly_run.devices.gpu.hip:open_hip",
    "cuda": "fly_run.devices.gpu.cuda:open_cuda",
}
NUMBERED = frozenset(("hip", "cuda"))
COMMAND = "exec"
# The devices that "auto" tries, by the beginning of a target's name. Code of other targets is the
# emulator's, which refuses what it does not run.
AUTO: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("gfx", ("hip", "emulator")),
    ("sm_", ("cuda", "cpu")),
    ("", ("emulator",)),
)


def of_backend(name: str, backend: str | None) -> str:
    """Returns the device that `name` means for code of `backend`: for "auto" the first device of a
    backend from outside, else `name`."""
    if name != "auto" or backend is None or backend in backends.BUILT_IN:
        return name
    return next(iter(backends.find(backend).devices), name)


def open_device(name: str, target: str, options: Options | None = None) -> Device:
    """Opens a device for code of `target` ("gfx942"), exclusive to the caller; `name` is as above.
    MissingError if it is not available here or does not run that target.
    `fly_run.launch.runtime.device` returns the one that the process shares."""
    options = in_environment(options)
    if name == "auto":
        return _first(target, options)
    kind, colon, rest = name.partition(":")
    if kind == COMMAND and colon:
        from fly_run.devices.external import External

        return External(target, options, rest)
    if kind in NUMBERED:
        return resolve(DEVICES[kind])(target, options, _number(name, rest) if colon else None)
    if name in DEVICES:
        return resolve(DEVICES[name])(target, options)
    for backend in backends.loaded():
        if factory := backend.devices.get(name):
            return resolve(factory)(target, options)
    for one in active():
        if factory := one.plugin.devices.get(name):
            return resolve(factory)(target, options)
    guests = entry_points(GROUP)
    for guest in guests:
        if guest.name == name:
            return guest.load()(target, options)
    own = (name for one in backends.loaded() for name, factory in one.devices.items() if factory)
    every = [*dict.fromkeys([*DEVICES, *own]), f"{COMMAND}:COMMAND", *(one.name for one in guests)]
    known = ", ".join(["auto", *every])
    raise UsageError(f"--device {name}: no such device", hint=f"devices: {known}")


def owner(name: str) -> str | None:
    """Returns who has the device `name`, besides plugins, for messages; None if nobody has."""
    return "fly-run" if name in DEVICES or name in ("auto", COMMAND) else None


def numbered(name: str, target: str, number: int) -> str:
    """The name of the GPU of this number where `name` leaves the number open: "cuda:1" for
    "auto"."""
    if name == "auto":
        names = next(names for start, names in AUTO if target.startswith(start))
        name = next((one for one in names if one in NUMBERED), name)
    return f"{name}:{number}" if name in NUMBERED else name


def _number(name: str, text: str) -> int:
    if not text.isdecimal() or len(text) > 4:
        raise UsageError(
            f"--device {name}: {quoted(text)} is not the number of a device",
            hint=f"devices are counted from 0: {name.partition(':')[0]}:0",
        )
    return int(text)


def _first(target: str, options: Options) -> Device:
    """The device that "auto" stands for. An option of the emulator asks for the emulator, and
    `strict` for a device that is no GPU."""
    names = next(names for start, names in AUTO if target.startswith(start))
    if options.strict:
        names = names[-1:]
    if options.emulators is not None and "emulator" in names:
        names = ("emulator",)
    for name in names[:-1]:
        with contextlib.suppress(MissingError):
            return resolve(DEVICES[name])(target, options)
    return resolve(DEVICES[names[-1]])(target, options)
