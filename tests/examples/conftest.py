"""Tests of the `hip` device are collected where fly-run has it."""

from fly_run.devices import registry

collect_ignore = [] if "hip" in registry.DEVICES else ["test_hip_library.py"]
