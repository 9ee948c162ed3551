"""The two ways in which a kernel is written: `fly` and, as FlyDSL's programs do, `fly.flydsl`."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

FRONTS = {"fly": ("fly", "fly.expr"), "flydsl": ("fly.flydsl.compiler", "fly.flydsl.expr")}


@pytest.fixture(params=sorted(FRONTS))
def front(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """(flyc, fx), for gfx1250, in strict mode."""
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx1250")
    monkeypatch.setenv("FLY_TARGET", "gfx1250")
    monkeypatch.setenv("FLY_STRICT", "1")
    flyc, fx = map(importlib.import_module, FRONTS[request.param])
    return flyc, fx
