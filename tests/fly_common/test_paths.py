"""The cache folder: chosen, else the platform's."""

import os

from fly_common.paths import cache_dir


def test_the_chosen_folder_wins(monkeypatch, tmp_path):
    monkeypatch.setenv("FLY_CACHE_DIR", str(tmp_path / "mine"))
    assert cache_dir() == str(tmp_path / "mine")
    assert not os.path.exists(cache_dir())


def test_an_empty_choice_is_none(monkeypatch, tmp_path):
    monkeypatch.setenv("FLY_CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_dir() == str(tmp_path / "fly")


def test_the_platforms_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("FLY_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_dir() == str(tmp_path / ".cache" / "fly")
