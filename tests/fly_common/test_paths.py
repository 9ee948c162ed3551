"""The cache folder: chosen, else the platform's; private, or refused with its reason."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from fly_common import paths
from fly_common.errors import MissingError, UsageError
from fly_common.paths import cache_dir, private_cache_dir, why_not_private


@pytest.fixture
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("FLY_CACHE_DIR", "XDG_CACHE_HOME", "HOME", "TMPDIR"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def somebody_elses(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Makes a path belong to somebody else than the user."""

    def give_away(path: Path) -> None:
        if os.geteuid() == 0:
            os.chown(path, 4242, -1, follow_symlinks=False)
        else:
            monkeypatch.setattr(os, "geteuid", lambda: 4242)

    return give_away


def test_the_chosen_folder_wins(monkeypatch, tmp_path):
    monkeypatch.setenv("FLY_CACHE_DIR", str(tmp_path / "mine"))
    assert cache_dir() == str(tmp_path / "mine")
    assert not os.path.exists(cache_dir())


def test_an_empty_choice_is_none(monkeypatch, tmp_path):
    monkeypatch.setenv("FLY_CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_dir() == str(tmp_path / "fly")


@pytest.mark.usefixtures("nothing_set")
def test_the_platforms_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_dir() == str(tmp_path / ".cache" / "fly")


@pytest.mark.usefixtures("nothing_set")
@pytest.mark.parametrize("variable", ["FLY_CACHE_DIR", "XDG_CACHE_HOME"])
def test_a_relative_folder_is_refused(monkeypatch, variable):
    monkeypatch.setenv(variable, "caches/mine")
    with pytest.raises(UsageError) as caught:
        cache_dir()
    assert str(caught.value) == (
        f"{variable}=caches/mine: is a relative path\n"
        f"  the cache directory must be an absolute path: {variable}=$PWD/caches/mine"
    )


@pytest.mark.usefixtures("nothing_set")
def test_home_is_asked_of_the_system_where_the_variable_is_unset(monkeypatch, tmp_path):
    import pwd

    entry = pwd.struct_passwd(("me", "x", 1, 1, "", str(tmp_path), "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda _: entry)
    assert cache_dir() == str(tmp_path / ".cache" / "fly")


@pytest.mark.usefixtures("nothing_set")
@pytest.mark.parametrize("home", [None, "", "~", "relative"])
def test_without_a_home_it_is_a_private_temporary_folder(monkeypatch, tmp_path, home):
    import pwd

    def unknown(number: int) -> None:
        raise KeyError(number)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.chdir(tmp_path)
    if home is not None:
        monkeypatch.setenv("HOME", home)
    assert cache_dir() == f"/tmp/fly-{os.geteuid()}"
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    folder = private_cache_dir()
    assert folder == str(tmp_path / f"fly-{os.geteuid()}")
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    assert os.listdir(tmp_path) == [os.path.basename(folder)]


def test_it_is_made_for_the_user_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("FLY_CACHE_DIR", str(tmp_path / "a" / "b"))
    previous = os.umask(0)
    try:
        assert private_cache_dir() == str(tmp_path / "a" / "b")
    finally:
        os.umask(previous)
    for made in ("a", "a/b"):
        assert stat.S_IMODE((tmp_path / made).stat().st_mode) == 0o700


def test_a_folder_that_others_may_read_is_left_as_it_is(monkeypatch, tmp_path):
    tmp_path.chmod(0o755)
    monkeypatch.setenv("FLY_CACHE_DIR", str(tmp_path))
    assert private_cache_dir() == str(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


@pytest.mark.parametrize(
    ("mode", "who"), [(0o770, "its group"), (0o702, "everyone"), (0o1777, "everyone")]
)
def test_a_folder_that_others_can_write_is_refused(monkeypatch, tmp_path, mode, who):
    """Its own sticky bit helps nothing: others could still add files."""
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(mode)
    monkeypatch.setenv("FLY_CACHE_DIR", str(folder))
    with pytest.raises(MissingError) as caught:
        private_cache_dir()
    assert str(caught.value) == (
        f"the cache directory {folder} is not private: {folder} can be written by {who}\n"
        f"  chmod -R go-w {folder}, or set FLY_CACHE_DIR to a directory of your own"
    )
    assert stat.S_IMODE(folder.stat().st_mode) == mode
    # Once that is mended, this process too goes on with it.
    folder.chmod(0o755)
    assert private_cache_dir() == str(folder)


def test_a_folder_above_that_others_can_write_is_refused_unless_it_is_sticky(tmp_path):
    above = tmp_path / "shared"
    (above / "cache").mkdir(parents=True)
    above.chmod(0o777)
    assert why_not_private(str(above / "cache")) == (
        f"{above} can be written by everyone",
        f"chmod go-w {above}, or set FLY_CACHE_DIR to a directory of your own",
    )
    above.chmod(0o1777)
    assert why_not_private(str(above / "cache")) is None
    # One that is yet to be made is no better.
    above.chmod(0o777)
    assert why_not_private(str(above / "new" / "cache"))


def test_somebody_elses_folder_is_refused(monkeypatch, tmp_path, somebody_elses):
    folder = tmp_path / "cache"
    folder.mkdir()
    somebody_elses(folder)
    monkeypatch.setenv("FLY_CACHE_DIR", str(folder))
    with pytest.raises(MissingError, match="belongs to ") as caught:
        private_cache_dir()
    assert caught.value.hint == "set FLY_CACHE_DIR to a directory of your own"


def test_a_link_is_followed_only_to_what_is_private(tmp_path, somebody_elses):
    real = tmp_path / "real"
    real.mkdir(mode=0o700)
    link = tmp_path / "link"
    link.symlink_to(real)
    assert why_not_private(str(link)) is None
    assert why_not_private(str(link / "cache")) is None
    real.chmod(0o770)
    assert why_not_private(str(link / "cache")) == (
        f"{real} can be written by its group",
        f"chmod go-w {real}, or set FLY_CACHE_DIR to a directory of your own",
    )
    real.chmod(0o700)
    somebody_elses(link)
    assert why_not_private(str(link)) is not None


def test_tmp_itself_is_not_to_be_mended(monkeypatch):
    reason = why_not_private("/tmp")
    assert reason == ("/tmp can be written by everyone", paths.CHOOSE)
