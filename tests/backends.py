"""Backends for tests: the registry without what a test adds, and the one of the examples."""

from __future__ import annotations

from pathlib import Path

import pytest
from fly_backend import registry
from fly_backend.backend import Backend

TEMPLATE = Path(__file__).parents[1] / "examples" / "backend-template"


@pytest.fixture
def clean_registry(monkeypatch) -> None:
    """Forgets, after the test, the backends that it has registered and used."""
    monkeypatch.setattr(registry, "_factories", dict(registry._factories))
    monkeypatch.setattr(registry, "_found", dict(registry._found))
    monkeypatch.delenv("FLY_BACKEND", raising=False)
    monkeypatch.delenv("FLY_TARGET", raising=False)


@pytest.fixture
def template(clean_registry, monkeypatch) -> Backend:
    """The backend of examples/backend-template, registered in this process."""
    monkeypatch.syspath_prepend(str(TEMPLATE))
    from fly_backend_template.backend import BACKEND

    registry.register("template", lambda: BACKEND)
    return BACKEND
