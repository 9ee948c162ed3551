"""Runs of kernels compiled from OpenCL C, for tests of the emulator."""

from __future__ import annotations

from collections.abc import Callable

N = 1000


Run = Callable[..., None]
