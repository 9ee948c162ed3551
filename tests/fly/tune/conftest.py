"""Measurements are counted, and configurations are compiled in the test's own process, unless a
test says otherwise."""

from __future__ import annotations

import pytest

from fly.tune import builders, sweep, winners


@pytest.fixture(autouse=True)
def _plain(monkeypatch, tmp_path):
    monkeypatch.delenv("FLY_AUTOTUNE", raising=False)
    monkeypatch.setattr(builders, "available", lambda: 0)
    winners._warned.clear()
    sweep._measured.clear()


@pytest.fixture
def measured(monkeypatch) -> list[str]:
    """The images that are measured, by their kernels' block sizes or whatever names them: one entry
    for each measurement."""
    found: list[str] = []
    measure = sweep.measure

    def counted(compiled, arguments, device, host):
        found.append(compiled.image.digest)
        return measure(compiled, arguments, device, host)

    monkeypatch.setattr(sweep, "measure", counted)
    return found
