"""Kernels run on the emulator; torch judges them."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from chosen_targets import USUAL, first

collect_ignore_glob = [] if find_spec("torch") else ["test_*.py"]


@pytest.fixture(params=first(("gfx942", *(name for name in USUAL if name != "gfx942"))))
def target(request, monkeypatch) -> str:
    """The target of `fly.kernels`: gfx942, in heavy tests also others."""
    monkeypatch.setenv("FLY_TARGET", request.param)
    monkeypatch.setenv("FLY_DEVICE", "emulator")
    return request.param


@pytest.fixture
def strict(target, monkeypatch) -> None:
    """Runs kernels in strict mode, which executes some thousand instructions a second."""
    monkeypatch.setenv("FLY_STRICT", "1")
