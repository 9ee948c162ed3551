"""Kernels with planted defects: where they run, and whether the right line is reported."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fly_common.errors import Fault

# Targets of the emulator, and one whose code the device cpu runs.
DEVICES = ("gfx942", "gfx1100", "gfx1201", "sm_90a")


@contextmanager
def on(device: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Functions are compiled for a target, and run on the device that needs no GPU."""
    with monkeypatch.context() as patch:
        patch.setenv("FLY_TARGET", device)
        patch.setenv("FLY_DEVICE", "cpu" if device.startswith("sm_") else "emulator")
        yield


def defects(module, case) -> set[int]:
    """The numbers of the lines with the defect of a case: those before the next case."""
    lines = Path(module.__file__).read_text().splitlines()
    starts = [n for n, line in enumerate(lines, 1) if re.match(r"# -- \d+:", line)]
    at = next(n for n, line in enumerate(lines, 1) if line.startswith(f"def {case.__name__}("))
    begin = max(one for one in starts if one < at)
    found = {n for n in range(begin, at) if lines[n - 1].endswith("# defect")}
    assert found, case.__name__
    return found


def check_line(module, case, fault: Fault) -> None:
    """Fails unless the fault is reported at one of the case's defects."""
    assert fault.place is not None, fault
    assert fault.place.file == module.__file__
    assert fault.place.line in defects(module, case), fault
    assert fault.place.text.endswith("# defect")


def seen(fault: Fault) -> str:
    """The message behind the kernel's name."""
    match = re.fullmatch(r"kernel '(\w+)': (.*)", fault.message)
    assert match is not None, fault.message
    return match[2]
