"""The table of devices: name → the factory that opens one, resolved on use.

A device from outside is an entry point of the group `fly.devices`, of the name that `--device` has,
for a factory of the same signature: (target, options) → Device. Entry points are looked at for a
name that is not in the table.
"""

from __future__ import annotations

from fly_common.errors import MissingError, UsageError
from fly_common.resolve import entry_points, resolve

from fly_run.devices.options import Options, in_environment
from fly_run.devices.protocol import Device

GROUP = "fly.devices"
DEVICES: dict[str, str] = {
    "emulator": "fly_run.emulator.machine:Emulator",
}
AUTO = "emulator"  # the emulator is there on every machine
# Devices that have a name already, and what to say to who asks for one.
NOT_HERE = {
    "hip": "this version of fly-run launches on its emulator only, not through ROCm's HIP runtime",
    "cuda": "this version of fly-run launches on its emulator only, and runs AMD GPU code only",
}


def open_device(name: str, target: str, options: Options | None = None) -> Device:
    """A device for code of `target` ("gfx942"), for the caller alone; `name` is one of DEVICES, an
    entry point's, or "auto". MissingError where there is none such here, or where the device does
    not run that target. `fly_run.launch.runtime.device` gives the one that the process shares."""
    name = AUTO if name == "auto" else name
    options = in_environment(options)
    if name in DEVICES:
        return resolve(DEVICES[name])(target, options)
    guests = entry_points(GROUP)
    for guest in guests:
        if guest.name == name:
            return guest.load()(target, options)
    if name in NOT_HERE:
        raise MissingError(NOT_HERE[name], hint="use --device emulator, which needs no GPU")
    known = ", ".join(["auto", *DEVICES, *NOT_HERE, *(guest.name for guest in guests)])
    raise UsageError(f"--device {name}: no such device", hint=f"devices: {known}")
