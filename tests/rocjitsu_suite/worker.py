"""Launches cases of tests/kernels on a device, and stores the arrays that they leave.

    python -m rocjitsu_suite.worker FOLDER --target gfx1250 --device hip

FOLDER has a code object for each level, and in the file `cases` lines "CASE LEVEL". For each case
it writes CASE.LEVEL.npz, or CASE.LEVEL.txt with the error of the launch, before it starts the next
one: the emulator may end the process. Before the first one it writes the file `device`: empty, or
why there is no such device.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import launching_on_device
import numpy as np
from fly_common.errors import FlyError
from fly_image.amd.code_object import CodeObject
from fly_run.devices.protocol import FROM_DEVICE, TO_DEVICE
from fly_run.devices.registry import open_device
from kernels.case import Case, Launch
from kernels.cases import CASES
from kernels.launching import pack

Job = tuple[Case, str]


def jobs(lines: list[str]) -> Iterator[Job]:
    named = {case.name: case for case in CASES}
    for line in lines:
        name, level = line.split()
        yield named[name], level


def stem(case: Case, level: str) -> str:
    return f"{case.name}.{level.strip('-')}"


@contextmanager
def copied(device: Any, launch: Launch) -> Iterator[dict[int, int]]:
    """Copies the arrays to the device for the block, and back behind it; their addresses by
    position."""
    places = {}
    try:
        for position, array in launch.arrays().items():
            places[position] = device.alloc(max(1, array.nbytes))
            device.copy(places[position], array.ctypes.data, array.nbytes, TO_DEVICE)
        yield places
        for position, array in launch.arrays().items():
            device.copy(array.ctypes.data, places[position], array.nbytes, FROM_DEVICE)
    finally:
        for address in places.values():
            device.free(address)


def run(device: Any, code: CodeObject, case: Case) -> dict[int, np.ndarray]:
    """Returns the arrays after the launch, by position."""
    launch = case.launch()
    for position, array in launch.arrays().items():
        launch.arguments[position] = np.ascontiguousarray(array).copy()
    kernel = code.kernel(case.kernel)
    with copied(device, launch) as places:
        packed = pack(kernel, launch, lambda position, _: places[position])
        launching_on_device.launch(device, code, kernel.name, launch.grid, launch.block, packed)
    return launch.arrays()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", required=True)
    parser.add_argument("--device", default="hip")
    wanted = parser.parse_args()
    try:
        device = open_device(wanted.device, wanted.target)
    except FlyError as error:
        (wanted.folder / "device").write_text(error.message)
        sys.exit(3)
    (wanted.folder / "device").write_text("")
    codes: dict[str, CodeObject] = {}
    for case, level in jobs((wanted.folder / "cases").read_text().splitlines()):
        if level not in codes:
            codes[level] = CodeObject.parse(
                (wanted.folder / f"{level.strip('-')}.hsaco").read_bytes()
            )
        file = wanted.folder / stem(case, level)
        try:
            arrays = run(device, codes[level], case)
        except FlyError as error:
            file.with_suffix(file.suffix + ".txt").write_text(error.message)
            continue
        part = file.with_suffix(file.suffix + ".part")  # a file in time, or none
        with part.open("wb") as out:
            np.savez(out, **{str(position): array for position, array in arrays.items()})
        part.replace(file.with_suffix(file.suffix + ".npz"))


if __name__ == "__main__":
    main()
