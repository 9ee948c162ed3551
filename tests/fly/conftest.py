"""Gives each test a store of its own. The emulator's library is shared by the session."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from backends import clean_registry, template  # noqa: F401


@pytest.fixture(autouse=True)
def private_cache(tmp_path: Path, monkeypatch, handlers: Path) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("FLY_CACHE_DIR", str(folder))
    monkeypatch.delenv("FLY_CACHE", raising=False)
    monkeypatch.delenv("FLY_TARGET", raising=False)
    return folder


@pytest.fixture
def shared_handlers(handlers: Path, private_cache: Path) -> None:
    """Links the emulator's library into the test's cache, for processes that the test starts."""
    private_cache.mkdir()
    (private_cache / handlers.name).symlink_to(handlers)


# Tests of optional packages are collected only if those are installed.
_NEEDED = {
    "call/arrays/test_ml_dtypes.py": "ml_dtypes",
    "torch/test_torch.py": "torch",
    "torch/test_torch_gpu.py": "torch",
}
collect_ignore = [name for name, package in _NEEDED.items() if find_spec(package) is None]
