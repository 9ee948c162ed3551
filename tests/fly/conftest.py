"""Each test has a store of its own. The emulator's library takes seconds to build: it is shared."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from fly_run.emulator import library


@pytest.fixture(scope="session")
def handlers() -> Path:
    """The emulator's library, in the cache that this test session was started with."""
    return library.load().path


@pytest.fixture(autouse=True)
def private_cache(tmp_path: Path, monkeypatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("FLY_CACHE_DIR", str(folder))
    monkeypatch.delenv("FLY_CACHE", raising=False)
    monkeypatch.delenv("FLY_TARGET", raising=False)
    return folder


@pytest.fixture
def shared_handlers(handlers: Path, private_cache: Path) -> None:
    """The emulator's library in the test's own cache, for processes that it starts."""
    private_cache.mkdir()
    (private_cache / handlers.name).symlink_to(handlers)


# What needs a package that is not required is collected where that is installed.
collect_ignore = [
    f"test_{package}.py" for package in ("torch", "ml_dtypes") if find_spec(package) is None
]
