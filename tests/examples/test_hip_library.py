"""The `hip` device runs every example on the HIP library whose device is the emulator."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from chosen_targets import some

sys.path.insert(0, str(Path(__file__).parent))
from example_cases import CASES


@pytest.mark.heavy
@pytest.mark.parametrize("target", some(("gfx942",), "gfx1100"))
def test_every_example_by_the_hip_device(target):
    tool = str(Path(sys.executable).with_name("fly-run"))
    script = str(Path(__file__).with_name("run_on_hip.py"))
    command = [tool, "--hip", target, "--", sys.executable, script, target]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    names = [case.name for case in CASES if target in case.targets]
    assert done.stdout.splitlines() == [f"{name}: right" for name in names], done.stderr
    assert len(names) > 10
