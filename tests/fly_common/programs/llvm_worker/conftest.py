"""The worker's tests: there is no worker before and after each of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fly_common.programs import process
from fly_common.programs.llvm_worker import client

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The programs that were started, with their input there. There is no worker before and after
    each test."""
    monkeypatch.delenv(client.VARIABLE, raising=False)
    found: list[str] = []
    real = process.start

    def start(program, arguments, data=b"", pass_fds=()):
        found.append(os.path.basename(program))
        return real(program, arguments, data, pass_fds)

    monkeypatch.setattr(process, "start", start)
    client._end()
    yield found
    client._end()
    assert client._lock.acquire(blocking=False)  # every request was answered
    client._lock.release()
