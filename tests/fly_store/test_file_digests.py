"""Digests of files: in pieces, and ahead in a thread."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from pathlib import Path

import pytest
from fly_common.errors import MissingError
from fly_store import file_digests


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    monkeypatch.setattr(file_digests, "_known", {})
    monkeypatch.setattr(file_digests, "_threads", {})


def large(folder: Path) -> Path:
    path = folder / "large"
    path.write_bytes(os.urandom(file_digests.LARGE))
    os.utime(path, (0, time.time() - 100))
    return path


@pytest.mark.parametrize("size", [0, 1, 999, 1000, 1001, 4321])
def test_pieces(size: int, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(file_digests, "PIECE", 1000)
    data = os.urandom(size)
    (tmp_path / "file").write_bytes(data)
    assert file_digests.digest_of(tmp_path / "file") == hashlib.sha256(data).hexdigest()


def test_ahead(tmp_path: Path, monkeypatch) -> None:
    """It is taken once, by another thread; who asks waits for it."""
    path, go, takers = large(tmp_path), threading.Event(), []
    hash = file_digests._hash

    def slow(path: str) -> str:
        takers.append(threading.current_thread())
        assert go.wait(60)
        return hash(path)

    monkeypatch.setattr(file_digests, "_hash", slow)
    file_digests.digest_ahead(path)
    file_digests.digest_ahead(path)
    threading.Timer(0.05, go.set).start()
    assert file_digests.digest_of(path) == hashlib.sha256(path.read_bytes()).hexdigest()
    assert len(takers) == 1
    assert takers[0] is not threading.current_thread()


def test_ahead_of_what_is_kept_starts_nothing(tmp_path: Path, monkeypatch) -> None:
    path = large(tmp_path)
    digest = file_digests.digest_of(path)
    monkeypatch.setattr(file_digests, "_known", {})
    file_digests.digest_ahead(path)
    assert not file_digests._threads
    assert list(file_digests._known.values()) == [digest]


def test_ahead_of_a_missing_file_leaves_the_error_to_who_asks(tmp_path: Path) -> None:
    file_digests.digest_ahead(tmp_path / "none")
    with pytest.raises(MissingError, match="none: No such file"):
        file_digests.digest_of(tmp_path / "none")
