"""The registry of devices: name → factory, resolved on use.

Another package adds a device as an entry point of the group `fly.devices`, with the name that
`--device` takes, for a factory with the signature (target, options) → Device; or in the record of
its backend (`fly_backend.backend.Backend.devices`). Entry points are only consulted for names that
are neither in the table nor of a backend in use.
"""

from __future__ import annotations

from fly_backend import registry as backends
from fly_common.errors import MissingError, UsageError
from fly_common.resolve import entry_points, resolve

from fly_run.devices.options import Options, in_environment
from fly_run.devices.protocol import Device

GROUP = "fly.devices"
DEVICES: dict[str, str] = {
    "emulator": "fly_run.emulator.machine:Emulator",
}
AUTO = "emulator"  # the emulator is available on every machine
# Reserved names without a device yet, and the hint for each.
NOT_HERE = {
    "hip": "this version of fly-run launches on its emulator only, not through ROCm's HIP runtime",
    "cuda": "this version of fly-run launches on its emulator only, and runs AMD GPU code only",
}


def of_backend(name: str, backend: str | None) -> str:
    """Returns the device that `name` means for code of `backend`: for "auto" the first device of a
    backend from outside, else `name`."""
    if name != "auto" or backend is None or backend in backends.BUILT_IN:
        return name
    return next(iter(backends.find(backend).devices), name)


def open_device(name: str, target: str, options: Options | None = None) -> Device:
    """Opens a device for code of `target` ("gfx942"), exclusive to the caller; `name` is a key of
    DEVICES, an entry point's name, or "auto". MissingError if it is not available here or does not
    run that target. `fly_run.launch.runtime.device` returns the one that the process shares."""
    name = AUTO if name == "auto" else name
    options = in_environment(options)
    if name in DEVICES:
        return resolve(DEVICES[name])(target, options)
    for backend in backends.loaded():
        if factory := backend.devices.get(name):
            return resolve(factory)(target, options)
    guests = entry_points(GROUP)
    for guest in guests:
        if guest.name == name:
            return guest.load()(target, options)
    if name in NOT_HERE:
        raise MissingError(NOT_HERE[name], hint="use --device emulator, which needs no GPU")
    own = (name for one in backends.loaded() for name, factory in one.devices.items() if factory)
    known = ", ".join(
        ["auto", *dict.fromkeys([*DEVICES, *own]), *NOT_HERE, *(guest.name for guest in guests)]
    )
    raise UsageError(f"--device {name}: no such device", hint=f"devices: {known}")
