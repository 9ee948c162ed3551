"""Reading, writing, and how a tool ends, without a tool: `test_etiquette.py` has those."""

import os
import stat
import sys

import pytest
from fly_common import filter
from fly_common.command_line.command import Command
from fly_common.errors import FlyError, InputError, MissingError, Place, UsageError


def test_reading_a_file(tmp_path):
    (tmp_path / "in").write_bytes(b"\x00\xff")
    assert filter.read_input(str(tmp_path / "in")) == b"\x00\xff"
    assert filter.input_name("dir/in.ll") == "dir/in.ll"
    assert filter.input_name(None) == filter.input_name("-") == "<stdin>"


def test_what_can_not_be_read(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="is a directory"):
        filter.read_input(str(tmp_path))
    with pytest.raises(UsageError, match="gone: no such file"):
        filter.read_input(str(tmp_path / "gone"))
    with pytest.raises(UsageError, match="Not a directory"):
        filter.read_input("/dev/null/x")
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UsageError, match="standard input is closed"):
        filter.read_input(None)


def test_an_output_appears_whole_with_the_usual_permissions(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"old")
    before = os.umask(0o027)
    try:
        filter.write_output(b"new", str(path))
    finally:
        os.umask(before)
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["out"]


def test_a_reader_of_the_old_file_keeps_it(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"old")
    with open(path, "rb") as reader:
        filter.write_output(b"new", str(path))
        assert reader.read() == b"old"


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "out"
    path.write_bytes(b"old")

    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(MissingError, match="out: No space left on device"):
        filter.write_output(b"new", str(path))
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["out"]


def test_a_symbolic_link_stays(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    filter.write_output(b"new", str(tmp_path / "link"))
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_a_device_is_written_through():
    filter.write_output(b"x", "/dev/null")
    assert not stat.S_ISREG(os.stat("/dev/null").st_mode)
    with pytest.raises(MissingError, match="/dev/full: No space left"):
        filter.write_output(b"x" * 100_000, "/dev/full")


def test_outputs_that_can_not_be(tmp_path):
    with pytest.raises(UsageError, match="is a directory"):
        filter.write_output(b"", str(tmp_path))
    with pytest.raises(UsageError, match=r"the directory .*gone does not exist"):
        filter.write_output(b"", str(tmp_path / "gone" / "out"))


@pytest.fixture
def kept(monkeypatch, tmp_path):
    """The folder of kept inputs, and a standard input that holds b"data"."""
    monkeypatch.setenv("FLY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(filter, "read_input", lambda path: b"data")
    return tmp_path / "cache" / "failed"


def refuse(data, name):
    raise InputError("no", place=Place(name), hint="do better")


def test_a_refused_input_is_kept_with_the_command(kept):
    with pytest.raises(InputError) as caught:
        filter.stage(
            "fly-x", None, refuse, output=None, suffix=".ll", flags=["-O3"], others=["b c.o"]
        )
    (path,) = kept.iterdir()
    assert path.read_bytes() == b"data"
    assert path.suffix == ".ll"
    assert caught.value.render("fly-x") == (
        f"fly-x: error: <stdin>: no\n  do better\n  reproduce: fly-x -O3 {path} 'b c.o'"
    )


def test_the_kept_name_comes_from_the_content(kept):
    for _ in range(2):
        with pytest.raises(InputError):
            filter.stage("fly-x", "-", refuse, output=None, suffix=lambda data: f".{data.decode()}")
    (path,) = kept.iterdir()  # the same input twice is one file
    assert path.suffix == ".data"


def test_a_named_file_is_not_kept_again(kept):
    with pytest.raises(InputError, match=r"reproduce: fly-x k\.ll"):
        filter.stage("fly-x", "k.ll", refuse, output=None, suffix=".ll")
    assert not kept.exists()


def test_where_nothing_can_be_kept_the_refusal_still_says_why(kept, monkeypatch):
    monkeypatch.setenv("FLY_CACHE_DIR", "/dev/null/cache")
    with pytest.raises(InputError) as caught:
        filter.stage("fly-x", None, refuse, output=None, suffix=".ll")
    assert caught.value.hint == "do better"


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (InputError("wrong"), 1, "fly-x: error: wrong\n"),
        (UsageError("wrong", hint="so"), 2, "fly-x: error: wrong\n  so\n"),
        (MissingError("gone"), 3, "fly-x: error: gone\n"),
        (KeyboardInterrupt(), 130, ""),
        (MemoryError(), 3, "fly-x: error: out of memory\n"),
        (RecursionError(), 1, "fly-x: error: the input is nested too deeply\n"),
        (SystemExit(4), 4, ""),
        (
            ZeroDivisionError("division by zero"),
            1,
            "fly-x: error: internal: ZeroDivisionError: division by zero\n"
            "  this is a bug in fly-x; FLY_DEBUG=1 shows where\n",
        ),
    ],
)
def test_how_a_tool_ends(raised, code, said, capsys, monkeypatch):
    monkeypatch.delenv("FLY_DEBUG", raising=False)
    monkeypatch.setattr(sys, "argv", ["fly-x"])

    @Command.of()
    def command() -> None:
        raise raised

    with pytest.raises(SystemExit) as caught:
        filter.run(command, "fly-x")
    assert caught.value.code == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(said)
    assert bool(err) == bool(said)


def test_tracebacks_are_for_those_who_ask(monkeypatch):
    monkeypatch.setenv("FLY_DEBUG", "1")
    monkeypatch.setattr(sys, "argv", ["fly-x"])

    @Command.of()
    def command() -> None:
        raise InputError("wrong")

    with pytest.raises(FlyError, match="wrong"):
        filter.run(command, "fly-x")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FLY_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir(mode=0o700)
    return tmp_path / "cache"


def test_a_kept_input_is_the_users_alone(cache):
    previous = os.umask(0)
    try:
        path = filter.save_failed_input("fly-llc", b"wrong", ".ll")
    finally:
        os.umask(previous)
    assert path is not None
    assert os.path.dirname(path) == str(cache / "failed")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE((cache / "failed").stat().st_mode) == 0o700
    # The same input again: the same file, and nothing beside it.
    assert filter.save_failed_input("fly-llc", b"wrong", ".ll") == path
    assert [one.name for one in (cache / "failed").iterdir()] == [os.path.basename(path)]


def test_keeping_an_input_follows_no_link(cache, tmp_path):
    """A link in the place of the file is replaced; one in the place of the folder ends it."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    path = filter.save_failed_input("fly-llc", b"wrong", ".ll")
    os.unlink(path)
    os.symlink(victim, path)
    assert filter.save_failed_input("fly-llc", b"wrong", ".ll") == path
    assert not os.path.islink(path)
    os.unlink(path)
    (cache / "failed").rmdir()
    (tmp_path / "elsewhere").mkdir()
    (cache / "failed").symlink_to(tmp_path / "elsewhere")
    assert filter.save_failed_input("fly-llc", b"wrong", ".ll") is None
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert victim.read_bytes() == b"precious"


@pytest.mark.parametrize("which", ["", "failed"])
def test_no_input_is_kept_where_others_can_write(cache, which):
    (cache / "failed").mkdir(mode=0o700)
    (cache / which).chmod(0o777)
    assert filter.save_failed_input("fly-llc", b"wrong", ".ll") is None
    assert list((cache / "failed").iterdir()) == []


def test_an_error_of_the_system_without_a_number_says_what_it_says(capsys, monkeypatch):
    """As ctypes raises for a library that can't be loaded; it was "standard output: None"."""
    monkeypatch.delenv("FLY_DEBUG", raising=False)
    monkeypatch.setattr(sys, "argv", ["fly-x"])

    @Command.of()
    def command() -> None:
        raise OSError("x.so: file too short")

    monkeypatch.setattr(filter, "_redirect_to_null", lambda stream: None)
    with pytest.raises(SystemExit) as caught:
        filter.run(command, "fly-x")
    assert caught.value.code == 3
    assert capsys.readouterr().err == "fly-x: error: x.so: file too short\n"
