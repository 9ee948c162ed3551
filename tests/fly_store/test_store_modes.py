"""What `FLY_CACHE` may say, and what a store says that keeps nothing."""

import os
from pathlib import Path

import pytest
from fly_common.errors import UsageError
from fly_store.store import Store, default_store, key_of

KEY = key_of("stage", b"input")


@pytest.mark.parametrize(
    ("mode", "keeps", "explains"),
    [
        (None, True, False),
        ("", True, False),
        ("on", True, False),
        ("1", True, False),
        ("explain", True, True),
        ("off", False, False),
        ("0", False, False),
    ],
)
def test_modes(mode, keeps, explains, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("FLY_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("FLY_CACHE_LIMIT", raising=False)
    if mode is None:
        monkeypatch.delenv("FLY_CACHE", raising=False)
    else:
        monkeypatch.setenv("FLY_CACHE", mode)
    store = default_store()
    assert (store.folder is not None, store.explain) == (keeps, explains)
    assert store.limit == 4 * 2**30
    assert store.put(KEY, b"made") is keeps
    assert store.get(KEY) == (b"made" if keeps else None)


@pytest.mark.parametrize("mode", ["yes", "2", "ON", "of", "on "])
def test_other_modes_are_refused(mode, monkeypatch):
    monkeypatch.setenv("FLY_CACHE", mode)
    with pytest.raises(UsageError, match="must be on, off or explain"):
        default_store()


def test_a_folder_that_cannot_be_made_keeps_nothing(tmp_path: Path, capsys):
    (tmp_path / "file").write_text("in the way")
    store = Store(tmp_path / "file" / "store")
    assert store.put(KEY, b"made") is False
    assert store.get(KEY) is None
    assert store.obtain(KEY, lambda: b"made") == b"made"
    assert os.listdir(tmp_path) == ["file"]
