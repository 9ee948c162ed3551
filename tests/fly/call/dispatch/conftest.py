"""Fixtures of tests of native calls."""

from pathlib import Path

import pytest
from fly_trace.session.load import load_file as load

from fly.call import function as calling
from fly.call import known_calls

from .native_programs import PROGRAM


@pytest.fixture
def made(tmp_path: Path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return load(str(path))


@pytest.fixture
def slow(monkeypatch):
    """Counts the calls that go the Python way."""
    seen = []
    run = calling.JitFunction.run

    def counted(self, arguments, named):
        seen.append(self.name)
        return run(self, arguments, named)

    monkeypatch.setattr(calling.JitFunction, "run", counted)
    monkeypatch.setattr(known_calls, "LOOK_AFTER", 1000.0)
    return seen
