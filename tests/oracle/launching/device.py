"""Launches the emulator under test with the interface of `launch.on_oracle`."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
from launching_on_device import Buffers, launch

from oracle.launching.launch import Run, Triple, pack


def on_emulator(
    data: bytes, kernel: str, grid: Triple, block: Triple, arguments: Sequence, dynamic_lds=0
) -> Run:
    """Runs on copies of the arguments."""
    from fly_image.amd.code_object import CodeObject
    from fly_run.emulator.machine import Emulator

    code = CodeObject.parse(data)
    device = Emulator(code.target)
    own = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    try:
        with Buffers(device) as buffers:
            kernarg = pack(data, kernel, own, buffers.add)
            launch(device, code, kernel, grid, block, kernarg, dynamic_lds)
    finally:
        device.close()
    return Run(own, 0)


@functools.cache
def implemented(target: str) -> frozenset[str]:
    """Returns the mnemonics, without encoding suffix, that the emulator claims to execute."""
    from fly_run.emulator.coverage import coverage
    from fly_run.emulator.semantics import table

    # The enumeration of `coverage` does not find every instruction.
    return coverage(target).plain_implemented | table.operations_of(target).keys()


@functools.cache
def found(target: str) -> frozenset[str]:
    """Returns the mnemonics of `implemented` that the enumeration finds."""
    return implemented(target) & known(target)


@functools.cache
def known(target: str) -> frozenset[str]:
    """Returns the mnemonics that the disassembler finds on a target."""
    from fly_run.emulator.coverage import coverage

    return coverage(target).plain
