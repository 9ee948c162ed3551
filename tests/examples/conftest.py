"""Tests of the `hip` device are collected where fly-run has it, those with torch where that is."""

from importlib.util import find_spec

from fly_run.devices import registry

collect_ignore = [
    *([] if "hip" in registry.DEVICES else ["test_hip_library.py"]),
    *([] if find_spec("torch") else ["test_torch.py"]),
]
