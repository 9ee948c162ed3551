"""Fixtures of tests of launchers."""

from __future__ import annotations

from pathlib import Path

import pytest
from fly_host.native import library


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of its own."""
    monkeypatch.setenv("FLY_CACHE_DIR", str(tmp_path / "cache"))
    library._loaded.clear()
    return tmp_path / "cache"
